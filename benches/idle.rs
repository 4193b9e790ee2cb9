//! What the program takes while nobody does anything: memory, processor time, bytes to the terminal.
//! `cargo bench --bench idle`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]
#![expect(clippy::disallowed_methods, reason = "it is about time that passes")]

use std::thread;
use std::time::Duration;

use turnstile::base::tasks::Tasks;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, cpu_time, proportional_memory};
use turnstile::testing::pty::{Home, Launch};

/// Until everything that a start sets going has come to rest.
const SETTLES: Duration = Duration::from_secs(4);
const WATCHED: Duration = Duration::from_secs(5);
const MEMORY_MAX: Goal = Goal::AtMost(Measure::Bytes(20_000_000));

fn main() {
    let mut report = Report::new("idle");
    for sessions in [0, 10_000] {
        let home = Home::new();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let archive = Archive::new(&home.work_dir(), &Tasks::new());
        runtime.block_on(archive.add(sessions, Shape::SMALL));
        let program = Launch::new(env!("CARGO_BIN_EXE_turnstile"), &home).size(120, 40).start();
        program.wait_for_frame_after(0);
        thread::sleep(SETTLES);
        let pid = program.pid();
        let (written, computed) = (program.bytes_written(), cpu_time(Some(pid)));
        thread::sleep(WATCHED);
        let written = program.bytes_written() - written;
        let computed = cpu_time(Some(pid)).saturating_sub(computed);
        let memory = Measure::Bytes(proportional_memory(pid));
        let what = format!("memory, {sessions} sessions");
        if sessions == 0 {
            report.promise(&what, memory, MEMORY_MAX);
        } else {
            report.note(&what, memory);
        }
        let nothing = Goal::AtMost(Measure::Count(0));
        report.promise(&format!("bytes in {WATCHED:?}"), Measure::Count(written as u64), nothing);
        report.note(&format!("processor time in {WATCHED:?}"), Measure::Time(computed));
    }
    report.print();
}
