//! A disk that does not take what is written, as the whole program meets it: a log is taken away while
//! its turn runs, which nothing but a person can mend.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use turnstile::app::LeaveError;
use turnstile::app::command::{Command, DraftOf, StalledWish};
use turnstile::app::notice::{Notice, Refused, Storage};
use turnstile::store::coordinate::Stall;
use turnstile::testing::beside;
use turnstile::testing::folder::files;
use turnstile::testing::gate::Gate;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::{Person, Running, with_model};
use crate::cli_world::{Cli, Ran, shown};

/// An answer that comes once the gate is open.
fn answer(gate: &Gate) -> Reply {
    Reply::stream().gate(gate).text("Once.").finish("stop").done()
}

/// Takes the one turn below this work directory away; gives where it was, and where it is now.
fn take_away(work_dir: &Path) -> (PathBuf, PathBuf) {
    let logs = files(&work_dir.join("storage/turns"));
    let mut logs = logs.into_iter().filter(|path| path.extension().is_some_and(|it| it == "jsonl"));
    let log = logs.next().expect("a turn runs");
    assert_eq!(logs.next(), None, "it is the only one");
    let aside = work_dir.join("aside");
    // Renamed, it would still be the one that the program has open.
    fs::copy(&log, &aside).expect("copied");
    fs::remove_file(&log).expect("deleted");
    (log, aside)
}

/// Waits until so many logs are stalled.
async fn stalls(running: &mut Running, count: usize) -> Vec<Stall> {
    let picked = |notice: &Notice| match notice {
        Notice::Storage(Storage::Stalled(stalls)) if stalls.len() == count => Some(stalls.clone()),
        _ => None,
    };
    running.until(picked).await
}

#[tokio::test]
async fn a_turn_whose_log_is_away_waits_and_goes_on_when_it_is_back() {
    let gate = Gate::new();
    let server = ModelServer::start([answer(&gate)]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (_, turn) = running.send(DraftOf::NewSession, "Tell.").await;
    gate.reached().await;
    let (log, aside) = take_away(&person.work_dir());
    gate.open();
    let stall = stalls(&mut running, 1).await.remove(0);
    assert_eq!((stall.log.id(), stall.retry_in), (turn.as_str(), None));
    fs::rename(&aside, &log).expect("moved back");
    running.perform(Command::Stalled(StalledWish::Retry));
    stalls(&mut running, 0).await;
    running.rested(&turn).await;
    let last = fs::read_to_string(&log).expect("there");
    assert!(last.lines().last().is_some_and(|line| line.contains("turn_completed")), "{last}");
    running.leave().await;
}

#[tokio::test]
async fn leaving_says_what_is_not_written_and_the_turn_ends_for_that_reason() {
    let gate = Gate::new();
    let server = ModelServer::start([answer(&gate)]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (_, turn) = running.send(DraftOf::NewSession, "Tell.").await;
    gate.reached().await;
    let (log, _) = take_away(&person.work_dir());
    gate.open();
    stalls(&mut running, 1).await;
    let left = running.app.shut_down().await.expect_err("it is not written");
    let said = left.to_string();
    assert!(matches!(left, LeaveError::Flush(_)), "{left:?}");
    let named = format!("of turn {turn} ({}) not written: there is no turn", shown(&log));
    assert!(said.contains(&named) && said.ends_with("see to that"), "{said}");
    stalls(&mut running, 0).await;
    let (what, why) = running.refused().await;
    assert_eq!(
        (what, why.contains("not written")),
        (Refused::Advance(turn.clone()), true),
        "{why}"
    );
    running.rested(&turn).await;
}

#[test]
fn a_command_without_a_screen_says_what_is_stalled_and_gives_it_up() {
    let (tokio, gate, cli) = (beside::runtime(), Gate::new(), Cli::new());
    let server = tokio.block_on(ModelServer::start([answer(&gate)])).expect("a port");
    cli.configure(&with_model(&server));
    let mut command = cli.command(&["run", "Tell.", "--model", "lab/tiny"]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().expect("the program starts");
    tokio.block_on(gate.reached());
    let (log, _) = take_away(&cli.work_dir());
    gate.open();
    let ran = Ran::of(&child.wait_with_output().expect("it ends"));
    ran.check_refused(
        3,
        &[
            "turnstile: storage stalled: there is no turn",
            &shown(&log),
            "\nturnstile: giving up: trying again does not mend that\n",
            "not written: there is no turn",
        ],
    );
    let logs = files(&cli.work_dir().join("logs"));
    let told: String = logs.iter().map(|log| fs::read_to_string(log).expect("text")).collect();
    for told_once in ["what is to be written is held", "what was held is given up"] {
        assert_eq!(told.matches(told_once).count(), 1, "{told}");
    }
    assert!(!told.contains("Once."), "nothing of what was said: {told}");
}
