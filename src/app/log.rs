//! The program's own log files: daily, bounded, private, without any secret that the program knows.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Dispatch;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{InitError, RollingFileAppender, Rotation};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::base::clock::Clock;
use crate::base::secret::Secret;
use crate::config::schema::Level;

/// The files are called `turnstile.<date>.log`.
const PREFIX: &str = "turnstile";
const SUFFIX: &str = "log";

/// Lines that wait for the disk. When a disk stalls for longer, lines are dropped: the log never
/// stops the program.
const LINES_MAX: usize = 8 * 1024;

/// What is logged, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder of the files; it is made if it is not there.
    pub folder: PathBuf,
    /// How much of this program; of the libraries never more than warnings.
    pub level: Level,
    /// How many days' files are kept at most beside today's.
    pub keep_days: u64,
}

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The folder cannot be made, or not be made private.
    #[error("the folder for log files {} cannot be used; make it yours, or move it away", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Today's file cannot be opened.
    #[error("no log file can be written in {}; make room, or make what is there yours", folder.display())]
    File {
        /// Where it should be.
        folder: PathBuf,
        /// What the system says.
        source: InitError,
    },
}

/// A log that was opened.
#[derive(Debug)]
pub struct Log {
    /// Where to send what is to be logged; for [`tracing::dispatcher::set_global_default`].
    pub dispatch: Dispatch,
    /// Writes what still waits when it is dropped; to be kept until the program ends.
    pub guard: WorkerGuard,
}

/// Opens the log. Secrets that are [added](Redactions::add) later are redacted from then on.
///
/// # Errors
///
/// [`LogError`], if there is no place to write.
pub fn open(
    options: &Options,
    clock: Arc<dyn Clock>,
    redactions: Redactions,
) -> Result<Log, LogError> {
    let folder = &options.folder;
    let no_folder = |source| LogError::Folder { path: folder.clone(), source };
    private_folder(folder).map_err(no_folder)?;
    // The appender counts the file that it is about to open, also if that is there already.
    let files_max = usize::try_from(options.keep_days).unwrap_or(usize::MAX).saturating_add(1);
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX)
        .max_log_files(files_max)
        .build(folder)
        .map_err(|source| LogError::File { folder: folder.clone(), source })?;
    private_files(folder).map_err(no_folder)?;
    let files = PrivateFiles::new(files, folder.clone(), Arc::clone(&clock));
    let (queue, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .thread_name("turnstile-log")
        .finish(files);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_timer(Time(clock))
        .with_writer(Redacting { queue, redactions })
        .with_filter(filter(options.level));
    Ok(Log { dispatch: Dispatch::new(tracing_subscriber::registry().with(lines)), guard })
}

fn filter(level: Level) -> Targets {
    let own = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    Targets::new().with_default(own.min(LevelFilter::WARN)).with_target(PREFIX, own)
}

/// The secrets that the program knows so far, for whatever writes text that leaves the program.
#[derive(Clone, Debug, Default)]
pub struct Redactions(Arc<Mutex<Vec<Secret>>>);

impl Redactions {
    /// Redacts this secret from now on.
    pub fn add(&self, secret: Secret) {
        let mut secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().any(|known| known.expose() == secret.expose()) {
            return;
        }
        secrets.push(secret);
        // The longest first: one may be the beginning of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    }

    /// `text` without the secrets, also where they were written with escapes.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().fold(text.to_owned(), |text, secret| {
            let escaped = Secret::new(&secret.expose().escape_debug().to_string());
            escaped.redact(&secret.redact(&text))
        })
    }
}

/// Takes the secrets out of every line before it leaves the thread that wrote it.
struct Redacting {
    queue: NonBlocking,
    redactions: Redactions,
}

struct RedactingWriter<'a> {
    queue: NonBlocking,
    redactions: &'a Redactions,
}

impl<'a> MakeWriter<'a> for Redacting {
    type Writer = RedactingWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactingWriter { queue: self.queue.clone(), redactions: &self.redactions }
    }
}

impl Write for RedactingWriter<'_> {
    /// Takes a whole line: the subscriber writes each event at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let redacted = self.redactions.redact(&String::from_utf8_lossy(line));
        self.queue.write_all(redacted.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queue.flush()
    }
}

struct Time(Arc<dyn Clock>);

impl FormatTime for Time {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", self.0.now())
    }
}

/// Makes the files private that the appender opens, which it does once a day as everyone may read
/// them. Until then the folder keeps them private.
struct PrivateFiles<W> {
    files: W,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    private_on_day: Option<i64>,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl<W: Write> PrivateFiles<W> {
    fn new(files: W, folder: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { files, folder, clock, private_on_day: None }
    }
}

impl<W: Write> Write for PrivateFiles<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.files.write(bytes)?;
        let day = self.clock.now().ms().div_euclid(DAY_MS);
        if self.private_on_day != Some(day) && private_files(&self.folder).is_ok() {
            self.private_on_day = Some(day);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.flush()
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn private_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_log =
            name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_log && entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Timestamp;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_ms(self.0.load(Ordering::Relaxed))
        }
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn clock() -> Arc<Hand> {
        Arc::new(Hand(AtomicI64::new(1_762_835_789_007)))
    }

    fn options(folder: &Path, level: Level) -> Options {
        Options { folder: folder.to_owned(), level, keep_days: 1 }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// What stands in the log after `work`.
    fn logged(level: Level, redactions: &Redactions, work: impl FnOnce()) -> String {
        let work_dir = tempfile::tempdir().expect("a folder");
        let folder = work_dir.path().join("new/logs");
        let log = open(&options(&folder, level), clock(), redactions.clone()).expect("an open log");
        tracing::dispatcher::with_default(&log.dispatch, work);
        drop(log);
        let files = files(&folder);
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!((mode(&folder), mode(&files[0])), (0o700, 0o600));
        fs::read_to_string(&files[0]).expect("a file")
    }

    #[test]
    fn what_happens_is_written_with_its_time_into_a_private_file() {
        let text = logged(Level::Info, &Redactions::default(), || {
            tracing::info!(turn = "t1", "started");
            tracing::debug!("too much");
        });
        assert_eq!(
            text,
            "2025-11-11T04:36:29.007Z  INFO turnstile::app::log::tests: started turn=\"t1\"\n"
        );
    }

    #[test]
    fn libraries_are_heard_only_when_something_is_wrong() {
        let speak = || {
            tracing::info!(target: "hyper", "connected");
            tracing::warn!(target: "hyper", "slow");
            tracing::error!(target: "hyper", "lost");
        };
        let time = "2025-11-11T04:36:29.007Z";
        let warning = format!("{time}  WARN hyper: slow\n");
        let error = format!("{time} ERROR hyper: lost\n");
        let none = Redactions::default();
        assert_eq!(logged(Level::Trace, &none, speak), format!("{warning}{error}"));
        assert_eq!(logged(Level::Error, &none, speak), error);
    }

    #[test]
    fn a_secret_is_redacted_from_when_it_is_known_however_it_is_written() {
        let redactions = Redactions::default();
        let later = redactions.clone();
        let text = logged(Level::Info, &redactions, move || {
            later.add(Secret::new("sk-1"));
            later.add(Secret::new("sk-1\"23"));
            tracing::info!(header = "Bearer sk-1\"23", other = ?Some("sk-1"), "sent sk-1\"23");
        });
        assert_eq!(
            text,
            "2025-11-11T04:36:29.007Z  INFO turnstile::app::log::tests: sent [secret] \
             header=\"Bearer [secret]\" other=Some(\"[secret]\")\n"
        );
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_an_error() {
        let work_dir = tempfile::tempdir().expect("a folder");
        let folder = work_dir.path().join("logs");
        fs::write(&folder, "in the way").expect("a file");
        let opened = open(&options(&folder, Level::Info), clock(), Redactions::default());
        assert!(matches!(opened, Err(LogError::Folder { path, .. }) if path == folder));
    }

    #[test]
    fn old_files_go_and_others_stay() {
        let work_dir = tempfile::tempdir().expect("a folder");
        let names = ["turnstile.2025-01-01.log", "turnstile.2025-01-02.log", "notes.txt"];
        for name in names {
            fs::write(work_dir.path().join(name), "").expect("a file");
        }
        let options = options(work_dir.path(), Level::Info);
        drop(open(&options, clock(), Redactions::default()).expect("an open log"));
        let left = files(work_dir.path());
        assert_eq!(left.len(), 3, "today's, one older, and the notes: {left:?}");
        assert!(left.contains(&work_dir.path().join("notes.txt")));
    }

    #[test]
    fn the_file_of_a_new_day_is_made_private() {
        struct OneFile(PathBuf);
        impl Write for OneFile {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                fs::write(&self.0, bytes)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = |day: u32| folder.path().join(format!("turnstile.2025-11-{day}.log"));
        let clock = clock();
        let time: Arc<dyn Clock> = Arc::<Hand>::clone(&clock);
        let mut files = PrivateFiles::new(OneFile(path(11)), folder.path().to_owned(), time);
        files.write_all(b"a line").expect("written");
        clock.0.fetch_add(DAY_MS, Ordering::Relaxed);
        files.files = OneFile(path(12));
        files.write_all(b"a line").expect("written");
        assert_eq!((mode(&path(11)), mode(&path(12))), (0o600, 0o600));
    }
}
