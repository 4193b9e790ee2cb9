//! The scan at the start: 10,000 sessions in every form against reading their lines, and how fast large
//! logs are read. `cargo bench --bench scan`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use turnstile::base::tasks::Tasks;
use turnstile::store::format::Format;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, Sample, files_below, repeat};
use turnstile::testing::whole;

const SESSIONS: usize = 10_000;
/// Large logs: as many as there are threads, so that each reads one of about 26 MB.
const LARGE: Shape = Shape { turns: 1, calls: 20_000, answer_bytes: 4_000_000 };
const TIMES: usize = 7;
/// Against reading lines. Both other forms take the processor for what they save or look after.
const GOALS: [(Format, f64); 3] =
    [(Format::Jsonl, 2.0), (Format::JsonlZst, 4.0), (Format::Sqlite, 5.0)];

fn main() {
    let mut report = Report::new("scan");
    report.note("sessions", Measure::Count(SESSIONS as u64));
    let lines = measure(Format::Jsonl, SESSIONS, Shape::SMALL);
    report.note("reading their lines", Measure::Time(lines.read.median()));
    for (format, goal) in GOALS {
        let measured = match format {
            Format::Jsonl => &lines,
            Format::JsonlZst | Format::Sqlite => &measure(format, SESSIONS, Shape::SMALL),
        };
        report.note(&format!("{format}, its files"), Measure::Bytes(measured.bytes));
        report.note(&format!("{format}, reading its files"), Measure::Time(measured.read.median()));
        report.note(&format!("{format}, scan"), Measure::Time(measured.scan.median()));
        let times = Measure::ratio(measured.scan.median(), lines.read.median());
        let goal = Goal::AtMost(Measure::Times(goal));
        report.promise(&format!("{format}, scan against reading lines"), times, goal);
    }
    let large = measure(Format::Jsonl, threads(), LARGE);
    report.note("large logs", Measure::Bytes(large.bytes));
    report.note("reading the same bytes", Measure::Time(large.read.median()));
    let rate = Measure::rate(large.bytes, large.scan.median());
    report.promise("scan of large logs", rate, Goal::AtLeast(Measure::Rate(500.0)));
    report.print();
}

struct Measured {
    /// How long the scan takes.
    scan: Sample,
    /// How long it takes to read the files with as many threads.
    read: Sample,
    /// How long the files are.
    bytes: u64,
}

fn measure(format: Format, count: usize, shape: Shape) -> Measured {
    let folder = tempfile::tempdir().expect("a folder");
    let work_dir = whole::work_dir(folder.path());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let archive = Archive::kept(format, &work_dir, &Tasks::new());
    runtime.block_on(archive.add(count, shape));
    drop((archive, runtime));
    let files = files_below(&work_dir.join("storage"));
    let bytes = files.iter().map(|file| fs::metadata(file).expect("a log").len()).sum();
    let read = repeat(TIMES, || read_all(&files));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (app, _notices) = runtime.block_on(whole::start(folder.path(), &whole::kept(format)));
    let scan = repeat(TIMES, || {
        let read = runtime.block_on(async {
            app.graph().sessions.scan().await.expect("listed");
            app.graph().sessions.list_sessions().len()
        });
        assert_eq!(read, count);
    });
    Measured { scan, read, bytes }
}

fn read_all(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let bytes = fs::read(file).expect("a log");
                    std::hint::black_box(&bytes);
                }
            });
        }
    });
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
