//! One batch of 2 KB at the end of a log, until it is acknowledged: for every backend and every way to
//! wait for the device, against the same bytes written to a file. `cargo bench --bench append`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use turnstile::base::clock::{Clock as _, System};
use turnstile::base::tasks::Tasks;
use turnstile::store::log::Record;
use turnstile::store::seam::{Durability, SyncMode};
use turnstile::testing::backend::Backend;
use turnstile::testing::fixture::records;
use turnstile::testing::measure::{Goal, Measure, Report, Sample};
use turnstile::testing::store::turn;

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
    let written = plain(&batches, |_| ());
    let synced = plain(&batches, |file| file.sync_data().expect("the device takes it"));
    tell(&mut report, "a file, written", &written);
    tell(&mut report, "a file, written and synced", &synced);
    for backend in Backend::ALL {
        for way in &WAYS {
            if backend == Backend::Memory && way.sync != SyncMode::Never {
                continue; // There is nothing to wait for.
            }
            let what = format!("{backend}, {}", way.name);
            let sample = append(backend, way, &batches);
            tell(&mut report, &what, &sample);
            if way.sync.waits_for(way.durability) {
                let times = Measure::ratio(sample.median(), synced.median());
                report.promise(&format!("{what}, against a file"), times, NO_DEARER);
            }
        }
    }
    report.print();
}

fn tell(report: &mut Report, what: &str, sample: &Sample) {
    report.note(&format!("{what}, median"), Measure::Time(sample.median()));
    report.note(&format!("{what}, 95 of 100"), Measure::Time(sample.percentile(95)));
}

/// Each batch as one write, and what follows it.
fn plain(batches: &[Record], then: impl Fn(&File)) -> Sample {
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = File::create(folder.path().join("log")).expect("a file");
    let clock = System::new();
    let write = |batch: &Record| {
        let line = [batch.as_bytes(), b"\n"].concat();
        let began = clock.elapsed();
        file.write_all(&line).expect("the device takes it");
        then(&file);
        clock.elapsed().saturating_sub(began)
    };
    Sample::new(batches.iter().map(write).collect())
}

fn append(backend: Backend, way: &Way, batches: &[Record]) -> Sample {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(append_all(backend, way, batches, folder.path()))
}

async fn append_all(backend: Backend, way: &Way, batches: &[Record], folder: &Path) -> Sample {
    let logs = backend.logs(folder, way.sync, &Tasks::new());
    let (first, _) = batches.split_at(1);
    let mut writer = logs.create(&turn(0), first).await.expect("a log is begun");
    let (clock, mut times) = (System::new(), Vec::<Duration>::new());
    for batch in batches {
        let began = clock.elapsed();
        let batch = std::slice::from_ref(batch);
        writer.append(batch, way.durability).await.expect("the device takes it");
        times.push(clock.elapsed().saturating_sub(began));
    }
    writer.close().await.expect("the device takes it");
    Sample::new(times)
}
