//! The scan at the start: 10,000 sessions against reading the same bytes, and how fast large logs are
//! read. `cargo bench --bench scan`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use turnstile::base::tasks::Tasks;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, Sample, repeat};
use turnstile::testing::whole;

const SESSIONS: usize = 10_000;
/// Large logs: as many as there are threads, so that each reads one of about 16 MB.
const LARGE: Shape = Shape { turns: 1, calls: 20_000, answer_bytes: 4_000_000 };
const TIMES: usize = 7;

fn main() {
    let mut report = Report::new("scan");
    let (scan, read, _) = measure(SESSIONS, Shape::SMALL);
    report.note("sessions", Measure::Count(SESSIONS as u64));
    report.note("reading the same bytes", Measure::Time(read.median()));
    report.note("scan", Measure::Time(scan.median()));
    let times = Measure::ratio(scan.median(), read.median());
    report.promise("scan against reading", times, Goal::AtMost(Measure::Times(2.0)));
    let (scan, read, bytes) = measure(threads(), LARGE);
    report.note("large logs", Measure::Bytes(bytes));
    report.note("reading the same bytes", Measure::Time(read.median()));
    let rate = Measure::rate(bytes, scan.median());
    report.promise("scan of large logs", rate, Goal::AtLeast(Measure::Rate(500.0)));
    report.print();
}

/// How long the scan of so many sessions takes, how long it takes to read their files with as many
/// threads, and how many bytes they are.
fn measure(count: usize, shape: Shape) -> (Sample, Sample, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let archive = Archive::new(&whole::work_dir(folder.path()), &Tasks::new());
    runtime.block_on(archive.add(count, shape));
    let mut files = Vec::new();
    collect(&whole::work_dir(folder.path()).join("storage"), &mut files);
    let bytes = files.iter().map(|file| fs::metadata(file).expect("a log").len()).sum();
    let read = repeat(TIMES, || read_all(&files));
    let (app, _notices) = runtime.block_on(whole::start(folder.path(), whole::GUIDE));
    let scan = repeat(TIMES, || {
        let read = runtime.block_on(async {
            app.graph().sessions.scan().await.expect("listed");
            app.graph().sessions.list_sessions().len()
        });
        assert_eq!(read, count);
    });
    (scan, read, bytes)
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

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the store").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
