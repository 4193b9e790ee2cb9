//! 20,000 tokens from a server on loopback at full speed: time and processor time from the message to
//! the end of the turn, without a screen (models, runtime, hub, log) and in a terminal, with the most
//! memory that it took. `cargo bench --bench stream`
#![expect(clippy::expect_used, clippy::panic, reason = "a bench stops where it cannot measure")]

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;
use turnstile::app::App;
use turnstile::app::command::{Command, DraftOf, Send, SendSettings};
use turnstile::app::notice::Notice;
use turnstile::base::clock::{Clock as _, System};
use turnstile::domain::message::UserMessage;
use turnstile::domain::turn::event::TurnFact;
use turnstile::domain::turn::live::News;
use turnstile::testing::measure::{Goal, Measure, Report, Sample, cpu_time, peak_memory};
use turnstile::testing::model_server::{ModelServer, Reply};
use turnstile::testing::pty::{Home, Launch};
use turnstile::testing::whole;

const TOKENS: usize = 20_000;
const TIMES: usize = 5;
const GOAL: Duration = Duration::from_millis(150);

fn main() {
    let mut report = Report::new("stream");
    report.note("tokens", Measure::Count(TOKENS as u64));
    let serving = runtime(1);
    let server = serving.block_on(ModelServer::start([])).expect("a server");
    let config = format!(
        "[models]\ndefault = \"lab/tiny\"\n[providers.lab]\nkind = \"openai-compatible\"\n\
         base_url = \"{}\"\n",
        server.base_url()
    );
    without_screen(&mut report, &server, &config);
    in_terminal(&mut report, &server, &config);
    report.print();
}

fn without_screen(report: &mut Report, server: &ModelServer, config: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = runtime(2);
    let (app, mut notices) = runtime.block_on(whole::start(folder.path(), config));
    let (mut times, mut computed) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        server.then(answer());
        let clock = System::new();
        let before = cpu_time(None);
        runtime.block_on(one_turn(&app, &mut notices));
        times.push(clock.elapsed());
        // The server's part is in it too.
        computed.push(cpu_time(None).saturating_sub(before));
    }
    tell(report, "without a screen", times);
    let computed = Measure::Time(Sample::new(computed).median());
    report.note("without a screen, processor, with the server's", computed);
}

fn in_terminal(report: &mut Report, server: &ModelServer, config: &str) {
    let home = Home::new();
    home.configure(config);
    let launch = Launch::new(env!("CARGO_BIN_EXE_turnstile"), &home);
    let mut program = launch.variable("TURNSTILE_MODEL", "lab/tiny").size(120, 40).start();
    program.wait_for_frame_after(0);
    let (mut times, mut computed) = (Vec::new(), Vec::new());
    for turn in 0..TIMES {
        // The last word of each answer is nowhere else.
        let last = format!("end{turn}");
        server.then(answer_that_ends(&last));
        program.send(format!("Question {turn}"));
        program.wait_for_text(&format!("Question {turn}"));
        let (began, before) = (program.age(), cpu_time(Some(program.pid())));
        program.send("\r");
        let shown = program.wait_for_frame_of(&last).at;
        times.push(shown.saturating_sub(began));
        program.wait_until_gone("running");
        computed.push(cpu_time(Some(program.pid())).saturating_sub(before));
    }
    tell(report, "in a terminal", times);
    let goal = Goal::AtMost(Measure::Time(GOAL));
    let computed = Measure::Time(Sample::new(computed).median());
    report.promise("in a terminal, processor", computed, goal);
    let goal = Goal::AtMost(Measure::Bytes(40_000_000));
    let memory = Measure::Bytes(peak_memory(program.pid()));
    report.promise("in a terminal, most memory", memory, goal);
}

fn tell(report: &mut Report, what: &str, times: Vec<Duration>) {
    let sample = Sample::new(times);
    let goal = Goal::AtMost(Measure::Time(GOAL));
    report.promise(&format!("{what}, time"), Measure::Time(sample.median()), goal);
    report.note(&format!("{what}, time, best"), Measure::Time(sample.percentile(0)));
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().expect("a runtime")
}

fn answer() -> Reply {
    answer_that_ends("late.")
}

fn answer_that_ends(last: &str) -> Reply {
    let words = ["The ", "watcher ", "listens ", "too ", "late; ", "so ", "it ", "fails.\n"];
    let tokens = words.iter().cycle().take(TOKENS - 1);
    tokens.fold(Reply::stream(), |reply, word| reply.text(word)).text(last).finish("stop").done()
}

async fn one_turn(app: &App, notices: &mut Receiver<Notice>) {
    app.perform(Command::Send(Send {
        from: DraftOf::NewSession,
        message: Arc::new(UserMessage::text("Why does it fail?")),
        settings: SendSettings::default(),
    }));
    loop {
        match notices.recv().await.expect("the program runs") {
            // As the terminal does with a session of its own.
            Notice::Sent { session, .. } => app.perform(Command::Open(session)),
            Notice::Live(event) => {
                if let News::Recorded { event, .. } = event.news {
                    match &event.fact {
                        TurnFact::Completed(_) => return,
                        TurnFact::Failed(failed) => panic!("the turn failed: {}", failed.error),
                        _ => {}
                    }
                }
            }
            Notice::Refused { why, .. } => panic!("refused: {why}"),
            _ => {}
        }
    }
}
