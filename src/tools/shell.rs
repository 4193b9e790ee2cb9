//! The tool that runs a command in the session's folder.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::Plan;
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::ToolResultData;
use crate::tools::files::{Absent, Folder};
use crate::tools::input::{self, InputError};
use crate::tools::output::count;
use crate::tools::process::{self, By, Command, Ended};
use crate::tools::record::{Recorded, Recorder};
use crate::tools::tool::{Tool, ToolContext, ToolError, blocking, text_result};

/// The tool `shell`.
#[derive(Debug)]
pub struct Shell {
    descriptor: ToolDescriptor,
    options: Options,
}

/// How commands are run.
#[derive(Clone)]
pub struct Options {
    /// The person's environment. Variables whose names look like secrets (such as those that hold
    /// one of [`SECRET_WORDS`]) are left out of it.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that are passed on although their names look like secrets.
    pub keep: Vec<String>,
    /// The time-out of a command that names none.
    pub timeout: Duration,
    /// The longest time-out that a command may name.
    pub timeout_max: Duration,
    /// How long a command has after TERM before it gets KILL.
    pub grace: Duration,
}

/// What the names of variables that hold secrets have in them.
pub const SECRET_WORDS: [&str; 7] =
    ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "COOKIE", "DATABASE_URL"];

/// What such names have as a word of their own, between underscores: each is a part of harmless words.
const SECRET_WHOLE_WORDS: [&str; 1] = ["PAT"];

/// What such names end with, as a word of its own; `SSH_AUTH_SOCK` is no secret.
const SECRET_LAST_WORDS: [&str; 1] = ["AUTH"];

/// What is no secret although it holds such a word: the name of a program that asks a person for one
/// (`GIT_ASKPASS`, `SSH_ASKPASS_REQUIRE`).
const HARMLESS_WORD: &str = "ASKPASS";

/// Whether the name of a variable says that it holds a secret, whatever the case of its letters.
fn names_a_secret(name: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_uppercase().replace(HARMLESS_WORD, "");
    SECRET_WORDS.iter().any(|word| upper.contains(word))
        || upper.split('_').any(|word| SECRET_WHOLE_WORDS.contains(&word))
        || upper.rsplit('_').next().is_some_and(|word| SECRET_LAST_WORDS.contains(&word))
}

impl Options {
    /// The defaults: 2 minutes, at most 30, 2 seconds to end.
    #[must_use]
    pub fn new(environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            environment,
            keep: Vec::new(),
            timeout: Duration::from_mins(2),
            timeout_max: Duration::from_mins(30),
            grace: Duration::from_secs(2),
        }
    }

    fn without_secrets(&self) -> Vec<(OsString, OsString)> {
        let is_secret = |name: &OsStr| {
            names_a_secret(name) && !self.keep.iter().any(|keep| name == keep.as_str())
        };
        let plain = self.environment.iter().filter(|(name, _)| !is_secret(name));
        plain.cloned().collect()
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Options").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command line, for sh.
    command: String,
    /// When the command is ended, in seconds.
    timeout_seconds: Option<NonZeroU32>,
}

impl Shell {
    /// The tool, which runs commands in this way.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let description = format!(
            "Runs a command line with sh in the session's folder and gives back its output and \
            errors. There is no terminal and no input; what the command leaves running in the \
            background is ended with it. It is ended after {} seconds, or timeout_seconds, which \
            may be up to {}.",
            options.timeout.as_secs(),
            options.timeout_max.as_secs(),
        );
        let descriptor = ToolDescriptor {
            tool_id: "shell".to_owned(),
            name: "shell".to_owned(),
            description,
            input_schema: input::schema::<Input>(),
            execution: Execution::Sync,
            requires_human: false,
        };
        Self { descriptor, options }
    }

    fn read(&self, input: &Json) -> Result<(String, Duration), InputError> {
        let Input { command, timeout_seconds } = input::read(input)?;
        if command.trim().is_empty() {
            return Err(InputError::field("command", "it is empty"));
        }
        if command.contains('\0') {
            return Err(InputError::field("command", "it holds a NUL character"));
        }
        let given = timeout_seconds.map(|seconds| Duration::from_secs(seconds.get().into()));
        let (timeout, max) = (given.unwrap_or(self.options.timeout), self.options.timeout_max);
        if timeout > max {
            let why = format!("it is more than {}", max.as_secs());
            return Err(InputError::field("timeout_seconds", why));
        }
        Ok((command, timeout))
    }
}

#[async_trait]
impl Tool for Shell {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let (command, _) = self.read(input)?;
        Ok(Plan { commands: vec![command], ..Plan::default() })
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let (line, timeout) = self.read(input)?;
        let plan = context.permit.plan();
        if !plan.commands.contains(&line) {
            return Err(ToolError::OtherCommand);
        }
        let folder = Path::new(&plan.folder).to_owned();
        let checked = folder.clone();
        blocking(&context.tasks, move || Folder::open(&checked, Absent::Refuse).map(drop)).await?;
        let environment = self.options.without_secrets();
        let command = Command { line, folder, environment, timeout, grace: self.options.grace };
        let mut record =
            Recorder::new(&context.output_dir, &context.call, context.output_bytes_max);
        let progress = context.progress.as_ref();
        let ended = process::run(&command, &mut record, progress, &context.cancel).await?;
        Ok(result(ended, record.finish().await, timeout))
    }
}

fn result(ended: Ended, recorded: Recorded, timeout: Duration) -> ToolResultData {
    let Recorded { mut text, lines, whole } = recorded;
    let how = match ended.by {
        By::Timeout => Some(format!("timed out after {} s", timeout.as_secs())),
        By::Cancel => Some("the call was cancelled".to_owned()),
        By::Itself => how_it_ended(ended.status),
    };
    let mut notes = Vec::from_iter(how.clone());
    if ended.left_behind {
        notes.push("what it left running in the background was ended".to_owned());
    }
    if text.is_empty() {
        notes.push("no output".to_owned());
    }
    if !notes.is_empty() {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}[{}]\n", notes.join("; "));
    }
    let summary = [how, Some(count(lines, "line", "lines"))];
    let summary = summary.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let metadata = ResultMetadata {
        exit_code: ended.status.code(),
        signal: ended.status.signal(),
        whole_output: whole.map(|path| path.to_string_lossy().into_owned()),
        cut: (ended.by == By::Cancel).then_some(Cut::Stopped),
        ..ResultMetadata::summary(summary)
    };
    let is_error = ended.by != By::Itself || !ended.status.success();
    ToolResultData { is_error, ..text_result(&text, &metadata) }
}

/// What is worth saying about an end; nothing about success.
fn how_it_ended(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, signal) => Some(format!("ended by signal {}", signal.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::permission::plan::PermissionRequest;
    use crate::tools::rig::{Ran, Rig};
    use crate::tools::tool::Permit;
    use rustix::process::Pid;
    use serde_json::json;

    /// A shell with a short grace, so that what ignores TERM is soon killed.
    fn shell(environment: &[(&str, &str)]) -> Shell {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let mut options = Options::new(environment.chain([path]).collect());
        options.grace = Duration::from_millis(100);
        Shell::new(options)
    }

    async fn run(rig: &Rig, command: &str) -> Ran {
        rig.run(&shell(&[]), json!({ "command": command })).await
    }

    async fn check(command: &str, text: &str, metadata: ResultMetadata) {
        let is_error = metadata.exit_code != Some(0);
        assert_eq!(
            run(&Rig::new(), command).await,
            Ran { text: text.to_owned(), is_error, metadata }
        );
    }

    fn summary(exit_code: i32, text: &str) -> ResultMetadata {
        ResultMetadata { exit_code: Some(exit_code), ..ResultMetadata::summary(text) }
    }

    /// Waits until nobody has this process id any more, or a dead process that nobody collects.
    async fn wait_until_gone(pid: &str) {
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let is_dead = stat.is_ok_and(|stat| stat.contains(") Z "));
            rustix::process::test_kill_process(pid).is_ok() && !is_dead
        };
        let gone = async {
            while is_there() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it is still there");
    }

    #[tokio::test]
    async fn output_and_errors_come_in_their_true_order_with_how_it_ended() {
        check("echo a; echo b >&2; echo c", "a\nb\nc\n", summary(0, "3 lines")).await;
        let text = "a\n[exit code 3]\n";
        check("printf a; exit 3", text, summary(3, "exit code 3, 1 line")).await;
        check("true", "[no output]\n", summary(0, "0 lines")).await;
        let signal = Some(15);
        let killed = ResultMetadata::summary("ended by signal 15, 0 lines");
        let killed = ResultMetadata { signal, ..killed };
        check("kill $$", "[ended by signal 15; no output]\n", killed).await;
    }

    #[tokio::test]
    async fn a_command_runs_in_the_folder_without_terminal_input_or_secrets() {
        let rig = Rig::new();
        let command = "pwd; cat; (: </dev/tty) 2>/dev/null || echo no terminal; env | sort";
        let environment =
            [("LANG", "C"), ("GITHUB_TOKEN", "x"), ("my_api_key", "x"), ("DB_PASSWORD", "x")];
        let ran = rig.run(&shell(&environment), json!({ "command": command })).await;
        let expected = "<root>/in\nno terminal\nLANG=C\nPATH=/usr/bin:/bin\nPWD=<root>/in\n";
        assert_eq!(ran.text, expected);
    }

    #[test]
    fn variables_that_hold_secrets_are_known_by_their_names() {
        let names = "GITHUB_TOKEN my_api_key DB_PASSWORD DB_PASS PGPASS GH_PAT NPM_CONFIG__AUTH \
                     REDIS_AUTH DATABASE_URL ASKPASS_TOKEN";
        for name in names.split_whitespace() {
            assert!(names_a_secret(OsStr::new(name)), "{name}");
        }
        let names = "PATH GIT_AUTHOR_NAME SSH_AUTH_SOCK PATTERN HOME LANG GIT_ASKPASS SSH_ASKPASS \
                     SSH_ASKPASS_REQUIRE";
        for name in names.split_whitespace() {
            assert!(!names_a_secret(OsStr::new(name)), "{name}");
        }
    }

    #[tokio::test]
    async fn long_output_is_cut_and_the_whole_kept_aside() {
        let mut rig = Rig::new();
        rig.output_bytes_max = 1_000;
        let ran = run(&rig, "seq 10000").await;
        let whole = rig.root().join("output/turn_1.txt");
        let note = "[47898 bytes are left out here; the whole is in <root>/output/turn_1.txt]\n";
        let (head, tail) = ran.text.split_once(note).expect(&ran.text);
        assert!(head.starts_with("1\n2\n") && head.ends_with('\n'), "{head}");
        assert!(tail.starts_with("9902\n") && tail.ends_with("10000\n"), "{tail}");
        let numbers: Vec<_> = (1..=10_000).map(|number| number.to_string()).collect();
        let expected = numbers.join("\n") + "\n";
        assert_eq!(std::fs::read_to_string(&whole).unwrap(), expected);
        assert_eq!(ran.metadata.whole_output, Some(whole.to_str().unwrap().to_owned()));
        assert_eq!(ran.metadata.summary.as_deref(), Some("10000 lines"));
        let rights = |path: &Path| {
            use std::os::unix::fs::PermissionsExt as _;
            path.metadata().unwrap().permissions().mode() & 0o777
        };
        assert_eq!((rights(&whole), rights(whole.parent().unwrap())), (0o600, 0o700));
    }

    #[tokio::test]
    async fn a_whole_that_cannot_be_kept_is_said() {
        let mut rig = Rig::new();
        rig.output_bytes_max = 10;
        std::fs::write(rig.root().join("output"), "in the way").unwrap();
        let ran = run(&rig, "seq 100").await;
        assert!(ran.text.contains("the whole could not be kept: "), "{}", ran.text);
        assert_eq!(ran.metadata.whole_output, None);
    }

    const STUBBORN: &str =
        "trap '' TERM; (trap '' TERM; sleep 600) & echo $!; echo $$; while :; do sleep 600; done";

    #[tokio::test]
    async fn cancelling_ends_the_whole_group_also_what_ignores_term() {
        let rig = Rig::new();
        let cancel = async {
            let pids = rig.tails.wait_for("\n").await;
            rig.cancel.cancel();
            pids
        };
        let (ran, pids) = tokio::join!(run(&rig, STUBBORN), cancel);
        assert!(ran.is_error);
        for pid in pids.lines() {
            wait_until_gone(pid).await;
        }
    }

    #[tokio::test]
    async fn what_a_cancelled_command_had_printed_is_kept() {
        let rig = Rig::new();
        let cancel = async {
            rig.tails.wait_for("half").await;
            rig.cancel.cancel();
        };
        let command = "trap 'echo cleaned; exit' TERM; echo half; while :; do :; done";
        let (ran, ()) = tokio::join!(run(&rig, command), cancel);
        let text = "half\ncleaned\n[the call was cancelled]\n".to_owned();
        let metadata = summary(0, "the call was cancelled, 2 lines");
        let metadata = ResultMetadata { cut: Some(Cut::Stopped), ..metadata };
        assert_eq!(ran, Ran { text, is_error: true, metadata });
    }

    #[tokio::test]
    async fn a_command_is_ended_after_its_time() {
        let rig = Rig::new();
        let mut options = Options::new(vec![("PATH".into(), "/usr/bin:/bin".into())]);
        options.timeout = Duration::from_millis(20);
        let ran = rig.run(&Shell::new(options), json!({ "command": "exec sleep 600" })).await;
        let metadata = ResultMetadata::summary("timed out after 0 s, 0 lines");
        let metadata = ResultMetadata { signal: Some(15), ..metadata };
        let text = "[timed out after 0 s; no output]\n".to_owned();
        assert_eq!(ran, Ran { text, is_error: true, metadata });
    }

    #[tokio::test]
    async fn a_command_that_is_ended_may_clean_up() {
        let rig = Rig::new();
        let mut options = Options::new(vec![("PATH".into(), "/usr/bin:/bin".into())]);
        options.grace = Duration::from_mins(1);
        let command = "trap 'echo done >cleaned; exit' TERM; echo begun; while :; do :; done";
        let tool = Shell::new(options);
        let cancel = async {
            rig.tails.wait_for("begun").await;
            rig.cancel.cancel();
        };
        tokio::join!(rig.run(&tool, json!({ "command": command })), cancel);
        assert_eq!(rig.content("cleaned"), "done\n");
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_is_ended_with_the_command() {
        let rig = Rig::new();
        let ran = run(&rig, "sleep 600 & echo $!").await;
        let (pid, note) = ran.text.split_once('\n').unwrap();
        assert_eq!(note, "[what it left running in the background was ended]\n");
        assert!(!ran.is_error);
        wait_until_gone(pid).await;
    }

    #[tokio::test]
    async fn a_dropped_run_leaves_nothing_behind() {
        let rig = Rig::new();
        let pids = tokio::select! {
            biased;
            ran = run(&rig, STUBBORN) => panic!("it ended: {ran:?}"),
            pids = rig.tails.wait_for("\n") => pids,
        };
        for pid in pids.lines() {
            wait_until_gone(pid).await;
        }
    }

    #[tokio::test]
    async fn live_output_ends_with_the_last_lines() {
        let rig = Rig::new();
        run(&rig, "seq 10000").await;
        let shown = rig.tails.all();
        let last = shown.last().unwrap();
        assert!(last.len() <= 4 * 1024 && last.ends_with("\n9999\n10000\n"), "{last}");
    }

    #[tokio::test]
    async fn only_the_command_that_was_allowed_runs() {
        let (rig, tool) = (Rig::new(), shell(&[]));
        let shown = json!({ "command": "echo shown" });
        let request: PermissionRequest = rig.request(&tool, &shown).await;
        let other = json!({ "command": "echo other" });
        let ran = rig.run_with(&tool, &other, Permit::Approved(request)).await;
        assert_eq!(ran.text, "the command is not the one that was allowed");
    }

    #[test]
    fn a_command_that_cannot_run_names_its_field() {
        let check = |input: serde_json::Value, expected: &str| {
            let error = shell(&[]).plan(&Json::from_value(&input)).unwrap_err();
            assert_eq!(error.to_string(), expected, "{input}");
        };
        check(json!({ "command": " " }), "the input field `command` does not fit: it is empty");
        check(
            json!({ "command": "a\0" }),
            "the input field `command` does not fit: it holds a NUL character",
        );
        check(
            json!({ "command": "ls", "timeout_seconds": 9999 }),
            "the input field `timeout_seconds` does not fit: it is more than 1800",
        );
    }
}
