//! The program is killed in the middle of a turn with tools: whatever it has printed is in the log, in
//! order and byte for byte, and what follows there is the same turn going on.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use turnstile::base::id::TurnId;
use turnstile::base::tasks::Tasks;
use turnstile::domain::turn::event::TurnEvent;
use turnstile::store::cache::CacheBounds;
use turnstile::store::format::Format;
use turnstile::store::log::LogId;
use turnstile::store::turn_repo::TurnRepo;
use turnstile::testing::beside;
use turnstile::testing::model_server::{ModelServer, Reply};
use turnstile::testing::seed::Seed;

use crate::backend::open;
use crate::kills::{chance, rounds};
use crate::other::{Other, turnstile};

/// How many lines a turn of [`answers`] prints at least.
const LINES: usize = 25;
/// After how many rounds the commands look at the folder.
const ROUNDS_OF_LOOK: u64 = 10;

/// Somebody's computer, on which turns are killed.
struct Computer {
    folder: TempDir,
    format: Format,
    tokio: Runtime,
    turns: Vec<TurnId>,
}

/// A turn of several calls: tools that run at once and with others, and one that is refused, since
/// nobody is there to allow it.
fn answers() -> Vec<Reply> {
    let call = |reply: Reply, index, name, arguments| {
        reply.call(index, &format!("call-{index}"), name, &arguments)
    };
    let look = || {
        let reply = Reply::stream().reasoning("I look around.").text("Let me see. ");
        let reply = call(reply, 0, "read-file", json!({"path": "long.txt"}));
        let reply = call(reply, 1, "list-dir", json!({"path": "."}));
        call(reply, 2, "read-file", json!({"path": "missing.txt"}))
    };
    let write = call(Reply::stream(), 0, "write-file", json!({"path": "a", "content": "b"}));
    let tools = [look(), write, look()].map(|reply| reply.finish("tool_calls").usage(9, 9).done());
    let last = Reply::stream().text("That is all.").finish("stop").usage(9, 9).done();
    tools.into_iter().chain([last]).collect()
}

impl Computer {
    fn new(format: Format) -> Self {
        let computer = Self {
            folder: tempfile::tempdir().expect("a folder"),
            format,
            tokio: beside::runtime(),
            turns: Vec::new(),
        };
        fs::create_dir_all(computer.path("project")).expect("a folder");
        fs::write(computer.path("project/long.txt"), "A line of text.\n".repeat(600))
            .expect("a file");
        fs::write(computer.path("look.toml"), computer.storage()).expect("a file");
        computer
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn storage(&self) -> String {
        format!("[storage]\nformat = \"{}\"\n", self.format.name())
    }

    fn command(&self, config: &str, arguments: &[&str]) -> Command {
        let mut command = turnstile(self.folder.path());
        command.args(["--config", config]).args(arguments);
        command
    }

    /// Runs a turn and kills it; gives the lines that it had printed by then.
    fn kill_one(&self, seed: &Seed) -> Vec<String> {
        let server = self.tokio.block_on(ModelServer::start(answers())).expect("a port");
        let config = format!(
            "{}[models]\ndefault = \"lab/tiny\"\n[providers.lab]\n\
             kind = \"openai-compatible\"\nbase_url = \"{}\"\n",
            self.storage(),
            server.base_url()
        );
        let file = self.path("run.toml");
        fs::write(&file, config).expect("a file");
        let file = file.to_str().expect("temporary folders are text");
        let other = Other::start(&mut self.command(file, &["run", "Look around.", "--json"]));
        let moment = Duration::from_micros(seed.below(3_000) as u64);
        let mut printed = other.hear(seed.below(LINES), moment);
        printed.extend(other.kill());
        printed
    }

    /// The turn that was begun last has all that was printed of it.
    async fn check(&mut self, printed: &[String]) -> usize {
        let store = open(&self.path("work"), self.format);
        let turns = TurnRepo::new(Arc::clone(&store), Tasks::new(), CacheBounds::default());
        let ids = turns.ids().await.expect("listed");
        let new: Vec<_> = ids.iter().filter(|id| !self.turns.contains(id)).collect();
        let Some(id) = new.first() else {
            assert_eq!(printed, [""; 0], "a turn was printed, and there is none");
            return 0;
        };
        assert_eq!(new.len(), 1, "{new:?}");
        let looked = turns.read(id).await.expect("readable");
        let lines = |events: &[_]| events.iter().map(line).collect::<Vec<_>>();
        let (found, printed_count) = (lines(&looked.events), printed.len());
        assert!(found.starts_with(printed), "{printed:?} and not {found:?}");
        drop(turns.open(id).await.expect("it can be opened"));
        let opened = turns.read(id).await.expect("readable");
        assert!(lines(&opened.events).starts_with(&found), "opening took something away");
        assert_eq!(opened.torn, None);
        drop(turns.open(id).await.expect("it can be opened again"));
        let log = LogId::turn(id).expect("an id");
        assert_eq!(store.revision(&log).await.expect("there"), opened.revision);
        let records = store.inspect(&log).await.expect("readable").records.clone();
        let bytes = records.iter().map(|record| String::from_utf8_lossy(record.as_bytes()));
        assert!(bytes.eq(lines(&opened.events)), "the log holds something else");
        self.turns.push((*id).clone());
        opened.events.len() - printed_count
    }

    /// The commands find nothing wrong.
    fn look(&self) {
        let file = self.path("look.toml");
        let file = file.to_str().expect("temporary folders are text");
        for arguments in [&["doctor"][..], &["sessions", "list"], &["run", "hello"]] {
            let Output { status, stdout, stderr } =
                self.command(file, arguments).output().expect("it starts");
            let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            assert_eq!(status.code(), Some(0), "{arguments:?}: {said:?}");
        }
    }
}

fn line(event: &Arc<TurnEvent>) -> String {
    event.to_line()
}

#[expect(clippy::print_stdout, reason = "shown where the test fails, or to whoever wants it")]
fn check(format: Format) {
    let (seed, mut computer) = (chance(), Computer::new(format));
    let (mut printed_in_all, mut more_in_all) = (0, 0);
    for round in 1..=rounds() {
        let printed = computer.kill_one(&seed);
        let runtime = beside::runtime();
        let more = runtime.block_on(computer.check(&printed));
        printed_in_all += printed.len();
        more_in_all += more;
        if round % ROUNDS_OF_LOOK == 0 {
            computer.look();
            let store = open(&computer.path("work"), format);
            let turns = TurnRepo::new(store, Tasks::new(), CacheBounds::default());
            computer.turns = runtime.block_on(turns.ids()).expect("listed");
        }
    }
    println!("{printed_in_all} events were printed, and {more_in_all} more are there");
    assert!(printed_in_all > 0 && more_in_all > 0, "no turn was killed in its middle");
}

#[test]
fn a_killed_turn_in_lines_has_all_that_was_printed() {
    check(Format::Jsonl);
}

#[test]
fn a_killed_turn_in_frames_has_all_that_was_printed() {
    check(Format::JsonlZst);
}

#[test]
fn a_killed_turn_in_rows_has_all_that_was_printed() {
    check(Format::Sqlite);
}
