//! Opening a session of 2,000 turns, and one of 100 MB in every form: until its latest turns are there
//! and until all are, without a screen; and from the start of the program to the frame that shows it.
//! `cargo bench --bench open`
#![expect(clippy::expect_used, clippy::panic, reason = "a bench stops where it cannot measure")]

use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use turnstile::app::App;
use turnstile::app::command::Command;
use turnstile::app::notice::Notice;
use turnstile::base::clock::{Clock as _, System};
use turnstile::base::id::SessionId;
use turnstile::base::tasks::Tasks;
use turnstile::store::format::Format;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::measure::{Goal, Measure, Report, Sample};
use turnstile::testing::pty::{Home, Launch};
use turnstile::testing::whole;

const SHAPE: Shape = Shape { turns: 2_000, calls: 2, answer_bytes: 1_300 };
/// About 100 MB, in lines that are 2.5 KB long.
const LARGE: Shape = Shape { turns: 3_600, calls: 2, answer_bytes: 24_000 };
const TIMES: usize = 7;
/// What stands below the latest turn, once it is on the screen.
const LAST_WORDS: &str = "tokens in";
/// The first frame of the session is to be there within this time.
const GOAL: Goal = Goal::AtMost(Measure::Time(Duration::from_millis(50)));
/// The same for a large one.
const LARGE_GOAL: Goal = Goal::AtMost(Measure::Time(Duration::from_millis(150)));
/// A second for 100 MB.
const ALL_GOAL: Goal = Goal::AtLeast(Measure::Rate(100.0));

fn main() {
    let mut report = Report::new("open");
    report.note("turns", Measure::Count(SHAPE.turns as u64));
    without_screen(&mut report);
    in_terminal(&mut report);
    for format in Format::ALL {
        large(&mut report, format);
    }
    report.print();
}

fn in_terminal(report: &mut Report) {
    let home = Home::new();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let archive = Archive::new(&home.work_dir(), &Tasks::new());
    let session = runtime.block_on(archive.add(1, SHAPE)).remove(0);
    let frames = (0..TIMES).map(|_| {
        let launch = Launch::new(env!("CARGO_BIN_EXE_turnstile"), &home).size(120, 40);
        let program = launch.argument("--session").argument(session.as_str()).start();
        let shown = program.wait_for_frame_of(LAST_WORDS).at;
        program.kill();
        shown
    });
    let sample = Sample::new(frames.collect());
    report.promise("from the start to its first frame", Measure::Time(sample.median()), GOAL);
    report.note("the same, best", Measure::Time(sample.percentile(0)));
}

fn without_screen(report: &mut Report) {
    let Opened { first, all, .. } = measure(Format::default(), SHAPE);
    report.promise("without a screen, until its latest turns", Measure::Time(first), GOAL);
    report.note("without a screen, until all", Measure::Time(all));
}

fn large(report: &mut Report, format: Format) {
    let Opened { first, all, lines } = measure(format, LARGE);
    if format == Format::default() {
        report.note("large session, its lines", Measure::Bytes(lines));
    }
    let what = |what| format!("{format}, large session, until {what}");
    report.promise(&what("its latest turns"), Measure::Time(first), LARGE_GOAL);
    report.note(&what("all"), Measure::Time(all));
    report.promise(&what("all, of lines"), Measure::rate(lines, all), ALL_GOAL);
}

/// How long it took to open a session, in the middle of several times, and how much it holds.
struct Opened {
    first: Duration,
    all: Duration,
    lines: u64,
}

fn measure(format: Format, shape: Shape) -> Opened {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let archive = Archive::kept(format, &whole::work_dir(folder.path()), &Tasks::new());
    let session = runtime.block_on(archive.add(1, shape)).remove(0);
    let lines = runtime.block_on(archive.lines_bytes());
    drop((archive, runtime));
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        // A program that has read nothing yet; with its runtime the one before it has let go.
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (app, mut notices) = whole::start(folder.path(), &whole::kept(format)).await;
            let (to_first, to_all) = open(&app, &mut notices, &session).await;
            app.shut_down().await.expect("the disk takes it");
            first.push(to_first);
            all.push(to_all);
        });
    }
    Opened { first: Sample::new(first).median(), all: Sample::new(all).median(), lines }
}

async fn open(
    app: &App,
    notices: &mut Receiver<Notice>,
    session: &SessionId,
) -> (Duration, Duration) {
    let clock = System::new();
    let mut first = None;
    app.perform(Command::Open(session.clone()));
    loop {
        match notices.recv().await.expect("the program runs") {
            Notice::SessionOpened { state: Err(error), .. } => panic!("{error}"),
            Notice::TurnsLoaded { left, .. } => {
                let now = clock.elapsed();
                let first = *first.get_or_insert(now);
                if left == 0 {
                    return (first, now);
                }
            }
            _ => {}
        }
    }
}
