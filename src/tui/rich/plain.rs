//! Text as it is, wrapped: the raw view of a message, a command that waits for an approval.

use super::flat::Flat;
use super::{Row, Style};
use crate::base::sanitize::Policy;

/// The rows of a text, line by line. A line end at the very end opens no row.
#[must_use]
pub fn rows(source: &str, width: u16, policy: Policy) -> Vec<Row> {
    let body = source.strip_suffix('\n').unwrap_or(source);
    let mut rows = Vec::new();
    let mut at = 0;
    for line in body.split('\n') {
        let mut flat = Flat::new(policy, at);
        // A Windows line end is a line end to a reader, and a character to whoever decides.
        let shown = match policy {
            Policy::Reading => line.strip_suffix('\r').unwrap_or(line),
            Policy::Approval => line,
        };
        flat.push(shown, at..at + shown.len(), Style::default());
        rows.extend(flat.rows(width));
        at += line.len() + 1;
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::sanitize::hostile;

    fn check(source: &str, policy: Policy, drawn: &[&str]) {
        let rows = rows(source, 12, policy);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), drawn);
    }

    #[test]
    fn markdown_stays_as_it_was_written() {
        check(
            "# head\r\n\n- *item* that is long\n",
            Policy::Reading,
            &["# head", "", "- *item*", "that is long"],
        );
    }

    #[test]
    fn a_command_to_decide_on_hides_nothing() {
        check("ls\r\n\u{202e}rm\t.  ", Policy::Approval, &["ls␍", "⟨U+202E⟩rm␉.", "␠␠"]);
    }

    proptest! {
        #[test]
        fn rows_fit_and_say_where_they_come_from(text in hostile::text(), width in 1..40u16) {
            for policy in [Policy::Reading, Policy::Approval] {
                let mut start = 0;
                for row in rows(&text, width, policy) {
                    prop_assert!(row.width() <= width);
                    prop_assert!(row.source().start >= start);
                    prop_assert!(row.source().end as usize <= text.len());
                    start = row.source().start;
                }
            }
        }
    }
}
