//! What the same 1,000 sessions take of the device in every form, against lines.
//! `cargo bench --bench size`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use turnstile::base::tasks::Tasks;
use turnstile::store::format::Format;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, files_below};
use turnstile::testing::whole;

const SESSIONS: usize = 1_000;
const SHAPE: Shape = Shape { turns: 3, calls: 4, answer_bytes: 1_300 };
/// The unit in which the kernel counts what a file takes of the device.
const BLOCK_BYTES: u64 = 512;

/// Against lines. A frame for each event compresses less than a whole log would, and rows carry the id
/// of their log twice, and copies of what lists and searches ask for.
const GOALS: [(Format, f64); 3] =
    [(Format::Jsonl, 1.0), (Format::JsonlZst, 0.65), (Format::Sqlite, 1.8)];

/// What files are long, and what they take.
#[derive(Clone, Copy)]
struct Size {
    length: u64,
    taken: u64,
}

fn main() {
    let mut report = Report::new("size");
    report.note("sessions", Measure::Count(SESSIONS as u64));
    let lines = measure(Format::Jsonl);
    for (format, goal) in GOALS {
        let size = if format == Format::Jsonl { lines } else { measure(format) };
        report.note(&format!("{format}, length of the files"), Measure::Bytes(size.length));
        report.note(&format!("{format}, on the device"), Measure::Bytes(size.taken));
        let share = Measure::share(size.length, lines.length);
        let goal = Goal::AtMost(Measure::Times(goal));
        report.promise(&format!("{format}, length against lines"), share, goal);
        let share = Measure::share(size.taken, lines.taken);
        report.note(&format!("{format}, on the device against lines"), share);
    }
    report.print();
}

fn measure(format: Format) -> Size {
    let folder = tempfile::tempdir().expect("a folder");
    let work_dir = whole::work_dir(folder.path());
    // With its runtime and its last clone, a database has let go of its journal.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let archive = Archive::kept(format, &work_dir, &Tasks::new());
    runtime.block_on(archive.add(SESSIONS, SHAPE));
    drop((archive, runtime));
    let mut size = Size { length: 0, taken: 0 };
    for file in files_below(&work_dir.join("storage")) {
        let stat = fs::metadata(file).expect("it was just there");
        size.length += stat.len();
        size.taken += stat.blocks() * BLOCK_BYTES;
    }
    size
}
