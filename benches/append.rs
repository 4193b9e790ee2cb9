//! One batch of 2 KB at the end of a log, until it is acknowledged: for every backend and every way to
//! wait for the device, against the same bytes written to a file. `cargo bench --bench append`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use turnstile::base::clock::{Clock as _, System};
use turnstile::base::tasks::Tasks;
use turnstile::store::log::Record;
use turnstile::store::seam::{Durability, SyncMode};
use turnstile::testing::backend::Backend;
use turnstile::testing::fixture::records;
use turnstile::testing::measure::{Goal, Measure, Report, Sample};
use turnstile::testing::store::turn;
use turnstile::testing::whole;

const APPENDS: usize = 500;
const TEXT_BYTES: usize = 2_000;
/// What the seam, the way to another thread and back, and the proof of what is on the device may cost
/// beside the device itself.
const NO_DEARER: Goal = Goal::AtMost(Measure::Times(3.0));

/// When an append waits for the device.
struct Way {
    name: &'static str,
    sync: SyncMode,
    durability: Durability,
}

const WAYS: [Way; 4] = [
    Way { name: "barrier, between", sync: SyncMode::Barrier, durability: Durability::Written },
    Way { name: "barrier, at one", sync: SyncMode::Barrier, durability: Durability::Barrier },
    Way { name: "always", sync: SyncMode::Always, durability: Durability::Written },
    Way { name: "never", sync: SyncMode::Never, durability: Durability::Barrier },
];

fn main() {
    let mut report = Report::new("append");
    let batches = records(APPENDS, TEXT_BYTES);
    for backend in Backend::ALL {
        for way in &WAYS {
            if backend == Backend::Memory && way.sync != SyncMode::Never {
                continue; // There is nothing to wait for.
            }
            let what = format!("{backend}, {}", way.name);
            let Measured { append, plain } = measure(backend, way, &batches);
            report.note(&format!("{what}, median"), Measure::Time(append.median()));
            report.note(&format!("{what}, 95 of 100"), Measure::Time(append.percentile(95)));
            report.note(&format!("{what}, a file, median"), Measure::Time(plain.median()));
            if way.sync.waits_for(way.durability) {
                // Not of the medians: of two syncs that follow each other one may often be the slow one.
                let times = Measure::ratio(append.mean(), plain.mean());
                report.promise(&format!("{what}, against a file"), times, NO_DEARER);
            }
        }
    }
    report.print();
}

struct Measured {
    append: Sample,
    /// The same bytes as one write at the end of a file, and synced where the append waits for that.
    plain: Sample,
}

fn measure(backend: Backend, way: &Way, batches: &[Record]) -> Measured {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure_all(backend, way, batches, folder.path()))
}

/// In turn, since a device that others use too is now fast and now slow.
async fn measure_all(backend: Backend, way: &Way, batches: &[Record], folder: &Path) -> Measured {
    let mut file = File::create(folder.join("plain")).expect("a file");
    let logs = backend.logs(&whole::work_dir(folder), way.sync, &Tasks::new());
    let (first, _) = batches.split_at(1);
    let mut writer = logs.create(&turn(0), first).await.expect("a log is begun");
    let clock = System::new();
    let (mut append, mut plain) = (Vec::new(), Vec::new());
    for batch in batches {
        let line = [batch.as_bytes(), b"\n"].concat();
        let began = clock.elapsed();
        file.write_all(&line).expect("the device takes it");
        if way.sync.waits_for(way.durability) {
            file.sync_data().expect("the device takes it");
        }
        plain.push(clock.elapsed().saturating_sub(began));
        let began = clock.elapsed();
        let batch = std::slice::from_ref(batch);
        writer.append(batch, way.durability).await.expect("the device takes it");
        append.push(clock.elapsed().saturating_sub(began));
    }
    writer.close().await.expect("the device takes it");
    Measured { append: Sample::new(append), plain: Sample::new(plain) }
}
