//! The start in a terminal, with 0 and with 10,000 sessions: from the start of the process to the first
//! whole frame, and to the frame with a key that was pressed then. `cargo bench --bench start`
#![expect(clippy::expect_used, reason = "a bench stops where it cannot measure")]

use std::time::Duration;

use turnstile::base::tasks::Tasks;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, Sample};
use turnstile::testing::pty::{Exit, Home, Launch};

const TIMES: usize = 21;
/// A character that is nowhere else on the screen.
const KEY: &str = "§";

fn main() {
    let mut report = Report::new("start");
    for sessions in [0, 10_000] {
        let home = Home::new();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let archive = Archive::new(&home.work_dir(), &Tasks::new());
        runtime.block_on(archive.add(sessions, Shape::SMALL));
        let (frames, echoes) = (0..TIMES).map(|_| start(&home)).unzip();
        for (what, times, goal_ms) in [("first frame", frames, 12), ("first key", echoes, 16)] {
            let sample = Sample::new(times);
            let what = format!("{what}, {sessions} sessions");
            let goal = Goal::AtMost(Measure::Time(Duration::from_millis(goal_ms)));
            report.promise(&what, Measure::Time(sample.median()), goal);
            report.note(&format!("{what}, best"), Measure::Time(sample.percentile(0)));
        }
    }
    report.print();
}

fn start(home: &Home) -> (Duration, Duration) {
    let mut program = Launch::new(env!("CARGO_BIN_EXE_turnstile"), home).size(120, 40).start();
    program.wait_for_frame_after(0);
    program.send(KEY);
    let echo = program.wait_for_frame_of(KEY).at;
    let first = program.frames().first().map(|frame| frame.at).expect("it was just there");
    // Clears the draft, so that the next start shows none, and leaves.
    program.send("\x15");
    program.wait_until_gone(KEY);
    program.send("\x04");
    assert_eq!(program.wait_for_end().exit, Exit::Code(0));
    (first, echo)
}
