//! From a key to the frame that shows it, while nothing else happens. `cargo bench --bench echo`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::time::Duration;

use turnstile::testing::measure::{Goal, Measure, Report, Sample};
use turnstile::testing::pty::{Home, Launch, Program};

const KEYS: usize = 400;

fn main() {
    let home = Home::new();
    let mut program = Launch::new(env!("CARGO_BIN_EXE_turnstile"), &home).size(120, 40).start();
    program.wait_for_frame_after(0);
    let letters = ["a", "\x7f"].into_iter().cycle();
    let times = letters.take(KEYS).map(|key| echo(&mut program, key)).collect();
    let sample = Sample::new(times);
    let mut report = Report::new("echo");
    report.note("keys", Measure::Count(KEYS as u64));
    report.note("median", Measure::Time(sample.median()));
    let goal = Goal::AtMost(Measure::Time(Duration::from_micros(2_500)));
    report.promise("95 of 100 keys", Measure::Time(sample.percentile(95)), goal);
    report.print();
}

fn echo(program: &mut Program, key: &str) -> Duration {
    let seen = program.frames().len();
    let pressed = program.age();
    program.send(key);
    program.wait_for_frame_after(seen);
    let frame = program.frames().get(seen).copied().expect("it was just there");
    frame.at.saturating_sub(pressed)
}
