//! What the benches share: figures against their goals, and what the kernel knows of a process.
#![expect(clippy::missing_panics_doc, reason = "a bench stops where it cannot measure")]

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

use crate::base::clock::{Clock as _, System};

/// A promise and how it was kept.
#[derive(Clone, Debug)]
struct Figure {
    what: String,
    measured: Measure,
    goal: Option<Goal>,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A time.
    Time(Duration),
    /// An amount of memory or of output, in bytes.
    Bytes(u64),
    /// Megabytes a second.
    Rate(f64),
    /// How many times as much as something else.
    Times(f64),
    /// How many.
    Count(u64),
}

/// Where a figure is to lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// There or below.
    AtMost(Measure),
    /// There or above.
    AtLeast(Measure),
}

impl Measure {
    /// How many times as much `one` is as `other`.
    #[must_use]
    pub fn ratio(one: Duration, other: Duration) -> Self {
        Self::Times(one.as_secs_f64() / other.as_secs_f64())
    }

    /// How fast so many bytes went by.
    #[must_use]
    pub fn rate(bytes: u64, took: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        Self::Rate(bytes as f64 / 1e6 / took.as_secs_f64())
    }

    /// How many times as many bytes `one` is as `other`.
    #[must_use]
    pub fn share(one: u64, other: u64) -> Self {
        Self::Times(Self::Bytes(one).number() / Self::Bytes(other).number())
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Bytes(count) | Self::Count(count) => count as f64,
            Self::Rate(number) | Self::Times(number) => number,
        }
    }
}

impl Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) if time.as_millis() < 1 => {
                write!(f, "{:.1} µs", time.as_secs_f64() * 1e6)
            }
            Self::Time(time) => write!(f, "{:.2} ms", time.as_secs_f64() * 1e3),
            Self::Bytes(_) => write!(f, "{:.2} MB", self.number() / 1e6),
            Self::Rate(rate) => write!(f, "{rate:.0} MB/s"),
            Self::Times(times) => write!(f, "{times:.2} ×"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

impl Figure {
    fn verdict(&self) -> &'static str {
        let measured = self.measured.number();
        match self.goal {
            None => "",
            Some(Goal::AtMost(goal)) if measured <= goal.number() => "ok",
            Some(Goal::AtLeast(goal)) if measured >= goal.number() => "ok",
            Some(_) => "missed",
        }
    }
}

/// Figures, printed as a table when all are there.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    figures: Vec<Figure>,
}

impl Report {
    /// An empty one.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), figures: Vec::new() }
    }

    /// A figure that has a goal.
    pub fn promise(&mut self, what: &str, measured: Measure, goal: Goal) {
        self.figures.push(Figure { what: what.to_owned(), measured, goal: Some(goal) });
    }

    /// A figure that only helps to understand others.
    pub fn note(&mut self, what: &str, measured: Measure) {
        self.figures.push(Figure { what: what.to_owned(), measured, goal: None });
    }

    /// Prints the table.
    #[expect(clippy::print_stdout, reason = "a bench is there to print")]
    pub fn print(&self) {
        println!("{self}");
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<52}{:>14}{:>16}", self.title, "measured", "goal")?;
        for figure in &self.figures {
            let goal = match figure.goal {
                None => String::new(),
                Some(Goal::AtMost(goal)) => format!("≤ {goal}"),
                Some(Goal::AtLeast(goal)) => format!("≥ {goal}"),
            };
            let (what, measured) = (&figure.what, figure.measured.to_string());
            writeln!(f, "  {what:<50}{measured:>14}{goal:>16}  {}", figure.verdict())?;
        }
        Ok(())
    }
}

/// Repeated measurements of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample(Vec<Duration>);

impl Sample {
    /// Of these times, at least one.
    #[must_use]
    pub fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Self(times)
    }

    /// The time that this part of them (0 to 100) does not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().expect("the rank is at most the number")
    }

    /// What each took, had all been alike: for what is now fast and now slow.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let count = u32::try_from(self.0.len()).expect("nobody measures that often");
        self.0.iter().sum::<Duration>() / count
    }

    /// The middle one.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// How long `work` takes, so many times over.
pub fn repeat(times: usize, mut work: impl FnMut()) -> Sample {
    let clock = System::new();
    let once = |_| {
        let began = clock.elapsed();
        work();
        clock.elapsed().saturating_sub(began)
    };
    Sample::new((0..times).map(once).collect())
}

/// All files below a folder.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The time that the threads of a process, as many as live, have computed; none for this process.
#[must_use]
pub fn cpu_time(process: Option<Pid>) -> Duration {
    let tasks = fs::read_dir(format!("{}/task", folder_of(process))).expect("the process is there");
    let nanoseconds = tasks.flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// The memory of a process in bytes, with what it shares counted in part.
#[must_use]
pub fn proportional_memory(process: Pid) -> u64 {
    kilobytes(&format!("{}/smaps_rollup", folder_of(Some(process))), "Pss:") * 1024
}

/// The most memory that a process has had at any time, in bytes, with all that it shares.
#[must_use]
pub fn peak_memory(process: Pid) -> u64 {
    kilobytes(&format!("{}/status", folder_of(Some(process))), "VmHWM:") * 1024
}

fn folder_of(process: Option<Pid>) -> String {
    process.map_or("/proc/self".to_owned(), |pid| format!("/proc/{}", pid.as_raw_nonzero()))
}

fn kilobytes(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).expect("the process is there");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("the kernel tells it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let ms = Duration::from_millis;
        let sample = Sample::new((1..=20).rev().map(ms).collect());
        assert_eq!([50, 95, 100].map(|percent| sample.percentile(percent)), [10, 19, 20].map(ms));
        assert_eq!(Sample::new(vec![ms(3)]).median(), ms(3));
        assert_eq!(Sample::new(vec![ms(1), ms(1), ms(7)]).mean(), ms(3));
    }

    #[test]
    fn files_are_found_on_every_floor_of_a_folder() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let deep = folder.path().join("2025/11");
        fs::create_dir_all(&deep).expect("a folder");
        let files = [folder.path().join("format"), deep.join("log")];
        for file in &files {
            fs::write(file, "x").expect("a file");
        }
        let mut found = files_below(folder.path());
        found.sort_unstable();
        assert_eq!(found, [&files[1], &files[0]].map(Clone::clone));
    }

    #[test]
    fn a_report_says_what_was_missed() {
        let ms = |ms| Measure::Time(Duration::from_millis(ms));
        let mut report = Report::new("start");
        report.promise("first frame", ms(13), Goal::AtMost(ms(12)));
        report.promise("large files", Measure::Rate(600.0), Goal::AtLeast(Measure::Rate(500.0)));
        report.note("sessions", Measure::Count(10_000));
        let text = report.to_string();
        let ends: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ends, ["goal", "missed", "ok", "10000"]);
    }
}
