//! Looking at a log: for the first time, and again while it is kept, in every form, against the least
//! that has to be done: its lines read as a file, and each seen to be a record.
//! `cargo bench --bench inspect`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use turnstile::base::clock::{Clock as _, System};
use turnstile::base::tasks::Tasks;
use turnstile::store::format::Format;
use turnstile::store::log::{LogId, LogKind, Record};
use turnstile::store::seam::{LogStore, SyncMode};
use turnstile::testing::backend::Backend;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, Sample, files_below, repeat};
use turnstile::testing::whole;

/// As many as are kept at once, with some room.
const LOGS: usize = 48;
/// A turn of about 30 KB.
const SHAPE: Shape = Shape { turns: 1, calls: 20, answer_bytes: 12_000 };
const TIMES: usize = 15;
/// A frame for each event has to be made ready for decoding 86 times a log, and a row to be found.
const GOALS: [(Format, f64); 3] =
    [(Format::Jsonl, 2.0), (Format::JsonlZst, 10.0), (Format::Sqlite, 5.0)];

fn main() {
    let mut report = Report::new("inspect");
    report.note("turns", Measure::Count(LOGS as u64));
    let mut plain = None;
    for (format, goal) in GOALS {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = whole::work_dir(folder.path());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let archive = Archive::kept(format, &work_dir, &Tasks::new());
        runtime.block_on(archive.add(LOGS, SHAPE));
        drop(archive);
        // Of lines, which the other forms are compared with as well.
        let plain = *plain.get_or_insert_with(|| {
            let files = files_below(&work_dir.join("storage/turns"));
            let bytes = files.iter().map(|file| fs::metadata(file).expect("a log").len()).sum();
            report.note("bytes of their lines", Measure::Bytes(bytes));
            let plain = repeat(TIMES, || files.iter().for_each(|file| read(file))).median();
            report.note("reading and checking their lines", Measure::Time(plain));
            plain
        });
        let (cold, kept) = runtime.block_on(look(format, &work_dir));
        report.note(&format!("{format}, cold"), Measure::Time(cold.median()));
        let times = Measure::ratio(cold.median(), plain);
        report.promise(&format!("{format}, cold against that"), times, at_most(goal));
        report.note(&format!("{format}, kept"), Measure::Time(kept.median()));
        let times = Measure::ratio(kept.median(), cold.median());
        report.promise(&format!("{format}, kept against cold"), times, at_most(0.6));
    }
    report.print();
}

fn read(file: &Path) {
    let lines = fs::read(file).expect("a log");
    let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    assert!(lines.all(|line| Record::new(line.to_vec()).is_ok()));
}

fn at_most(times: f64) -> Goal {
    Goal::AtMost(Measure::Times(times))
}

/// How long it takes to look at all turns, one after the other: in a store that has seen none of them
/// yet, and again at once.
async fn look(format: Format, work_dir: &Path) -> (Sample, Sample) {
    let clock = System::new();
    let (mut cold, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let logs = Backend::Kept(format).logs(work_dir, SyncMode::Never, &Tasks::new());
        let turns = logs.list(LogKind::Turn).await.expect("listed");
        assert_eq!(turns.len(), LOGS);
        for times in [&mut cold, &mut kept] {
            let began = clock.elapsed();
            inspect_all(&logs, &turns).await;
            times.push(clock.elapsed().saturating_sub(began));
        }
    }
    (Sample::new(cold), Sample::new(kept))
}

async fn inspect_all(logs: &Arc<dyn LogStore>, turns: &[LogId]) {
    for turn in turns {
        std::hint::black_box(logs.inspect(turn).await.expect("read"));
    }
}
