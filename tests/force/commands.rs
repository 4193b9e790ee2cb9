//! Conversions, their confirmation and their way back are killed at any moment: the form that is in use
//! holds every log byte for byte, and the same command goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use turnstile::store::format::Format;
use turnstile::store::log::LogKind;
use turnstile::testing::beside;
use turnstile::testing::seed::Seed;

use crate::backend::{FORMATS, open};
use crate::kills::{chance, rounds};
use crate::other::{Other, turnstile};

/// How many turns there are.
const TURNS: usize = 12;
/// Longer than a command takes on a machine that does nothing else.
const MOMENT_MAX_MS: usize = 60;

/// Somebody's computer, on which commands are killed.
struct Computer {
    folder: TempDir,
}

/// All logs, by their names.
type Logs = BTreeMap<String, Vec<Vec<u8>>>;

impl Computer {
    fn new() -> Self {
        let computer = Self { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(computer.path("project")).expect("a folder");
        for _ in 0..TURNS {
            assert_eq!(computer.ended(&["run", "hello"]).0, Some(0), "a turn");
        }
        computer
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let config = self.path("config.toml");
        let form = format!("[storage]\nformat = \"{}\"\n", self.in_use());
        fs::write(&config, form).expect("a file");
        let mut command = turnstile(self.folder.path());
        command.arg("--config").arg(config).args(arguments);
        command
    }

    /// Runs a command to its end; gives its code and all that it said.
    fn ended(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Starts a command and kills it after so long; whether it had not ended by itself.
    fn kill(&self, arguments: &[&str], moment: Duration) -> bool {
        let mut command = self.command(arguments);
        Other::start(command.stderr(Stdio::null())).kill_after(moment)
    }

    fn in_use(&self) -> Format {
        let said = fs::read_to_string(self.path("work/storage/format")).unwrap_or_default();
        Format::named(said.trim()).unwrap_or_default()
    }

    /// The logs as the form that is in use has them.
    fn logs(&self) -> Logs {
        let store = open(&self.path("work"), self.in_use());
        beside::runtime().block_on(async {
            let mut logs = Logs::new();
            for kind in [LogKind::Session, LogKind::Turn] {
                for log in store.list(kind).await.expect("listed") {
                    let read = store.inspect(&log).await.expect("readable");
                    let lines = read.records.iter().map(|record| record.as_bytes().to_vec());
                    logs.insert(log.to_string(), lines.collect());
                }
            }
            logs
        })
    }
}

/// One of the commands that change the form of everything.
fn any_command(seed: &Seed) -> Vec<&'static str> {
    match seed.below(5) {
        0 => vec!["storage", "convert", "--undo"],
        1 => vec!["storage", "convert", "--confirm"],
        _ => {
            let to = FORMATS.get(seed.below(FORMATS.len())).copied().unwrap_or_default();
            vec!["storage", "convert", "--to", to.name()]
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "shown where the test fails, or to whoever wants it")]
fn a_killed_conversion_leaves_every_log_as_it_was_and_goes_on() {
    let (seed, computer) = (chance(), Computer::new());
    let before = computer.logs();
    assert_eq!(before.len(), TURNS);
    let (mut killed, mut forms) = (0, BTreeMap::<&str, u64>::new());
    for _ in 0..rounds() {
        let command = any_command(&seed);
        let moment = Duration::from_millis(seed.below(MOMENT_MAX_MS) as u64);
        killed += u64::from(computer.kill(&command, moment));
        assert!(
            computer.logs() == before,
            "{command:?} was killed and {} differs",
            computer.in_use()
        );
        // What was begun is finished, whatever that was.
        let (code, said) = computer.ended(&command);
        assert!(matches!(code, Some(0 | 1)), "{command:?}: {said}");
        assert!(computer.logs() == before, "{command:?} was finished: {said}");
        let (code, said) = computer.ended(&["storage", "verify"]);
        assert_eq!(code, Some(0), "{command:?}: {said}");
        *forms.entry(computer.in_use().name()).or_default() += 1;
    }
    println!("{killed} were killed; in use afterwards: {forms:?}");
    assert!(killed > 0 && forms.len() > 1, "{killed} {forms:?}");
}
