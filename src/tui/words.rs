//! Numbers, times and names as people read them.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::base::clock::Timestamp;
use crate::store::lock::Holder;

/// The time of day: `10:31`.
#[must_use]
pub fn clock(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone).strftime("%H:%M").to_string()
}

/// The process that holds the folder: `process 1234`.
#[must_use]
pub fn holder(holder: &Holder) -> String {
    holder.process.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

/// The time of day to the second: `10:31:07`.
#[must_use]
pub fn clock_seconds(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone).strftime("%H:%M:%S").to_string()
}

/// The day, seen from `now`: `Today`, `Yesterday`, `Mon 2 March`, `2 March 2025`.
#[must_use]
pub fn day(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (local(at, zone), local(now, zone));
    if at.date() == now.date() {
        return "Today".to_owned();
    }
    if now.date().yesterday().is_ok_and(|yesterday| yesterday == at.date()) {
        return "Yesterday".to_owned();
    }
    let form = if at.year() == now.year() { "%a %-d %B" } else { "%-d %B %Y" };
    at.strftime(form).to_string()
}

/// The day in as few columns as it takes: the time of day of today, else `2 Mar`, `2 Mar 25`.
#[must_use]
pub fn short_day(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (then, today) = (local(at, zone), local(now, zone));
    if then.date() == today.date() {
        return clock(at, zone);
    }
    let form = if then.year() == today.year() { "%-d %b" } else { "%-d %b %y" };
    then.strftime(form).to_string()
}

fn local(at: Timestamp, zone: &TimeZone) -> DateTime {
    let at = jiff::Timestamp::from_millisecond(at.ms()).unwrap_or_default();
    zone.to_datetime(at)
}

/// A span of time: `0.4 s`, `12 s`, `2 min 5 s`, `1 h 4 min`.
#[must_use]
pub fn span(span: Duration) -> String {
    let (seconds, ms) = (span.as_secs(), span.as_millis());
    match seconds {
        0..10 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A span of time that still grows, in whole seconds.
#[must_use]
pub fn whole_seconds(growing: Duration) -> String {
    match growing.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => span(growing),
    }
}

/// A number of tokens: `950`, `12.4k`, `1.2M`.
#[must_use]
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..999_950 => scaled(count, 1000, "k"),
        _ => scaled(count, 1_000_000, "M"),
    }
}

fn scaled(count: u64, unit: u64, suffix: &str) -> String {
    let tenths = count.saturating_mul(10).saturating_add(unit / 2) / unit;
    match tenths % 10 {
        0 => format!("{}{suffix}", tenths / 10),
        tenth => format!("{}.{tenth}{suffix}", tenths / 10),
    }
}

/// A size: `12 bytes`, `4.5 kB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    match count {
        0..1000 => self::count(usize::try_from(count).unwrap_or(0), "byte"),
        1000..999_950 => scaled(count, 1000, " kB"),
        _ => scaled(count, 1_000_000, " MB"),
    }
}

/// So many of something: `1 line`, `2 lines`, `12,345 lines`.
#[must_use]
pub fn count(count: usize, of: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {of}{plural}", grouped(count))
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_named_by_the_calendar_of_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now = at("2026-03-04T22:30:00Z"); // the 5th, half past midnight
        let check = |then: &str, long: &str, short: &str| {
            let then = at(then);
            assert_eq!(
                (day(then, now, &zone), short_day(then, now, &zone)),
                (long.into(), short.into())
            );
        };
        check("2026-03-04T22:10:00Z", "Today", "00:10");
        check("2026-03-04T21:59:00Z", "Yesterday", "4 Mar");
        check("2026-03-02T12:00:00Z", "Mon 2 March", "2 Mar");
        check("2025-12-31T12:00:00Z", "31 December 2025", "31 Dec 25");
        check("2026-03-06T12:00:00Z", "Fri 6 March", "6 Mar");
        assert_eq!(clock(now, &zone), "00:30");
    }

    #[test]
    fn spans_and_counts_are_short() {
        let of = |ms| span(Duration::from_millis(ms));
        assert_eq!(
            [0, 449, 9_999, 10_000, 125_000, 3_840_000].map(of),
            ["0.0 s", "0.4 s", "9.9 s", "10 s", "2 min 5 s", "1 h 4 min"]
        );
        assert_eq!(
            [0, 999, 1000, 12_449, 999_949, 999_950, 1_250_000].map(tokens),
            ["0", "999", "1k", "12.4k", "999.9k", "1M", "1.3M"]
        );
        assert_eq!([1, 2048].map(bytes), ["1 byte", "2 kB"]);
        assert_eq!([1, 12_345].map(|lines| count(lines, "line")), ["1 line", "12,345 lines"]);
    }
}
