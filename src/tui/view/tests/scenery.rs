//! The states that are shown.

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use crate::app::notice::LoadedTurn;
use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::session::entry::{
    LatestTurnStatus, SessionIndexEntry, WaitingCall, WaitingKind,
};
use crate::domain::session::event::Origin;
use crate::domain::turn::event::{
    Decision, MODEL_CALL_LIMIT, ModelCallFailed, TurnCancelled, TurnFact, TurnFailed,
};
use crate::domain::turn::live::DeltaKind;
use crate::domain::turn::status::{INTERRUPTED, TurnStatus};
use crate::runtime::CONTEXT_OVERFLOW;
use crate::tui::scenes::{self, Turn, at, call, reasoning, text};
use crate::tui::state::State;
use crate::tui::state::activity::Run;
use crate::tui::state::list::Scan;
use crate::tui::state::prompts::Stage;
use crate::tui::state::status::ChosenModel;

pub(super) const TURN: &str = "2026-03-04T10-31-00Z-0000042-000";
pub(super) const SECOND: &str = "2026-03-04T10-41-00Z-0000042-000";

/// An entry of the list.
pub(super) fn entry(id: &str, title: &str, active_at: Timestamp) -> SessionIndexEntry {
    let mut entry = SessionIndexEntry::damaged(SessionId::from(id), active_at, String::new());
    entry.error = None;
    entry.title = Some(title.to_owned());
    entry.cwd = Some("/home/ada/work/turnstile".into());
    entry.last_agent_id = Some("assistant".into());
    entry.last_model = Some(scenes::model());
    entry.latest_turn_status = LatestTurnStatus::Turn(TurnStatus::Completed);
    entry.turn_count = 3;
    entry
}

/// A list with every mark.
pub(super) fn list(state: &mut State) {
    let yesterday = |clock: &str| {
        let today = at(clock).ms();
        Timestamp::from_ms(today - 24 * 60 * 60 * 1000)
    };
    let stands = |mut entry: SessionIndexEntry, status: TurnStatus| {
        entry.latest_turn_status = LatestTurnStatus::Turn(status);
        entry
    };
    let mut waiting = entry(scenes::SESSION, "Fix the flaky watcher test", at("11:58:00"));
    waiting.waiting = vec![WaitingCall {
        turn: TurnId::from(TURN),
        call: ToolCallId::from("c2"),
        kind: WaitingKind::Permission,
        since: at("11:58:00"),
        place: 0,
        tool: "shell".into(),
        wants: "cargo test watch -- --nocapture".into(),
    }];
    let running = entry("s-running", "Nightly review", at("11:40:00"));
    let mut child = entry("s-running-child", "Read the changes", at("11:41:00"));
    child.parent_session = Some(running.session_id.clone());
    child.origin = Some(Origin::Subagent);
    let mut fork = entry("s-fork", "Explain the index again", at("09:15:00"));
    fork.parent_session = Some(SessionId::from("s-done"));
    let mut unsent = entry("s-unsent", "Write the release notes", at("08:00:00"));
    unsent.unsent = 2;
    let mut damaged = entry("s-damaged", "Damaged log", yesterday("08:00:00"));
    damaged.error = Some("line 12 of the log is not valid JSON".into());
    let entries = vec![
        waiting,
        running,
        child,
        entry("s-done", "Explain the index", at("09:00:00")),
        fork,
        unsent,
        stands(entry("s-failed", "Refactor the store", yesterday("18:20:00")), TurnStatus::Failed),
        stands(entry("s-stopped", "Try 漢字 widths", yesterday("17:00:00")), TurnStatus::Cancelled),
        stands(entry("s-cut", "Interrupted by a crash", yesterday("16:00:00")), TurnStatus::Idle),
        damaged,
    ];
    for entry in entries {
        state.list.put(&Arc::new(entry));
    }
    let run = Run { session: Some(SessionId::from("s-running")), since: Duration::from_secs(40) };
    state.activity.started(TurnId::from("t-running"), run);
    state.list.scan = Scan::Ended { took_ms: 12 };
    let why = "from ANTHROPIC_API_KEY".to_owned();
    state.status.model = Some(ChosenModel { model: scenes::model(), why });
}

const MARKDOWN: &str = "The watcher test waits **50 ms** for an event that the kernel may send \
later. See `tests/watch.rs`:\n\n```rust\n#[test]\nfn sees_a_new_file() {\n    \
std::thread::sleep(Duration::from_millis(50)); // too short\n}\n```\n\n1. wait for the event \
itself\n2. give up after a second\n\n| run | failed |\n|---|---|\n| before | 11 of 100 |\n| after \
| 0 of 100 |\n";

const DIFF: &str = "--- a/tests/watch.rs\n+++ b/tests/watch.rs\n@@ -10,4 +10,4 @@\n fn \
sees_a_new_file() {\n-    thread::sleep(Duration::from_millis(50));\n+    \
events.recv_timeout(Duration::from_secs(1)).unwrap();\n     assert!(seen());\n }\n";

pub(super) const SHELL_REQUEST: &str = r#"{
    "plan": {
        "folder": "/home/ada/work/turnstile",
        "commands": ["cargo test watch -- --nocapture |\n  tee /tmp/watch.log"],
        "writes": [{"path": "/tmp/watch.log", "resolved": "/tmp/watch.log", "inside": false}]
    },
    "preview": {"kind": "none"},
    "rule": "ask run [default]"
}"#;

pub(super) const SHELL: &str =
    r#"{"command":"cargo test watch -- --nocapture |\n  tee /tmp/watch.log"}"#;

/// A turn that read, ran and changed something, and ended.
pub(super) fn worked() -> Turn {
    Turn::begin(TURN, "10:31:00", "The watcher test fails one time in ten. Find out why.")
        .ask()
        .answer(vec![
            reasoning("The test is flaky.\nSo timing is the first suspect.\nRead it."),
            text("I'll look at the test first."),
            call("c1", "read-file", r#"{"path":"tests/watch.rs"}"#),
            call("c2", "shell", r#"{"command":"cargo test watch -- --nocapture"}"#),
        ])
        .result("c1", "1\tuse std::fs;\n", Some(r#"{"summary":"212 lines"}"#))
        .require("c2", SHELL_REQUEST)
        .decide("c2", Decision::Allow)
        .result(
            "c2",
            "running 1 test\n\u{1b}[32mtest sees_a_new_file ... ok\u{1b}[0m\n",
            Some(r#"{"summary":"exit 0","exitCode":0}"#),
        )
        .ask()
        .answer(vec![
            text(MARKDOWN),
            call("c3", "edit-file", r#"{"path":"tests/watch.rs","old_text":"a","new_text":"b"}"#),
        ])
        .result(
            "c3",
            "changed",
            Some(&format!(r#"{{"summary":"+1 −1","diff":{}}}"#, serde_json::json!(DIFF))),
        )
        .ask()
        .answer(vec![text("It waits for the event now, and gives up after a second.")])
        .complete()
}

/// A turn that waits for a permission.
pub(super) fn asks() -> Turn {
    Turn::begin(SECOND, "10:41:00", "Run it a hundred times to be sure.")
        .ask()
        .answer(vec![text("I'll run it with its output."), call("p1", "shell", SHELL)])
        .require("p1", SHELL_REQUEST)
}

/// A turn that waits for answers.
pub(super) fn questions() -> Turn {
    let arguments = r#"{"questions":[
        {"id":"where","text":"Where should the log of the watcher go?",
         "options":["Into the temporary folder","Beside the test, so that it is kept with it"]},
        {"id":"why","text":"What is it for?"}]}"#;
    Turn::begin(SECOND, "10:41:00", "Keep a log.")
        .ask()
        .answer(vec![call("q1", "ask-human", arguments)])
        .invoke("q1", Execution::Async)
}

/// A turn whose answer streams.
pub(super) fn streaming(state: &mut State, said: &str) {
    scenes::show(state, vec![worked(), Turn::begin(SECOND, "10:41:00", "And the docs?").ask()]);
    scenes::run(state, SECOND);
    scenes::stream(state, SECOND, DeltaKind::Reasoning, "They speak of it in two places.");
    scenes::stream(state, SECOND, DeltaKind::Text, said);
}

/// A screen with a list and these turns.
pub(super) fn full(size: Size, turns: Vec<Turn>) -> State {
    let mut state = scenes::state(size);
    list(&mut state);
    state.list.selected = Some(SessionId::from(scenes::SESSION));
    scenes::show(&mut state, turns);
    state
}

/// Opens the first prompt.
pub(super) fn open(state: &mut State, opened: fn(ToolCallId) -> Stage) {
    let call = state.prompts.queue[0].call.clone();
    state.prompts.stage = opened(call);
    state.focus = crate::tui::state::Focus::Prompt;
}

pub(super) fn opening(call: ToolCallId) -> Stage {
    Stage::Opening { call, drawn_at: None }
}

pub(super) fn armed(call: ToolCallId) -> Stage {
    Stage::Armed { call }
}

/// Turns that ended otherwise than they should, and one that is damaged.
pub(super) fn endings() -> Vec<LoadedTurn> {
    let begin = |number: u64, input: &str| {
        Turn::begin(&format!("{TURN}-{number}"), "10:31:00", input).ask()
    };
    let failure = TurnFact::ModelCallFailed(ModelCallFailed {
        model_call_index: 0,
        error: "529: overloaded".into(),
    });
    let usage = scenes::usage();
    let code = Some(MODEL_CALL_LIMIT.to_owned());
    let too_long = TurnFact::Failed(TurnFailed {
        error: "the conversation is too long for the model".into(),
        code: Some(CONTEXT_OVERFLOW.to_owned()),
        usage: scenes::usage(),
    });
    let error = "stopped after 40 model calls".to_owned();
    let failed = TurnFact::Failed(TurnFailed { error, code, usage });
    let cancelled = |reason: &str| {
        TurnFact::Cancelled(TurnCancelled { reason: Some(reason.to_owned()), usage })
    };
    let answered = |number, input| begin(number, input).answer(vec![text("Half of it.")]);
    let turns = [
        begin(1, "Too long").answer_for(vec![text("It goes on and")], "length").complete(),
        begin(2, "Filtered").answer_for(vec![text("I")], "content-filter").complete(),
        begin(3, "Overloaded").then(failure.clone()).then(failed),
        begin(8, "All of it").then(failure).then(too_long),
        answered(4, "Stop it").then(cancelled("stopped by you")),
        answered(5, "Crash").then(cancelled(INTERRUPTED)),
    ];
    let mut loaded: Vec<LoadedTurn> =
        (1..).zip(turns).map(|(seq, turn)| turn.loaded(seq)).collect();
    let content = Err("line 3 of its log is cut".to_owned());
    loaded.push(LoadedTurn { id: TurnId::from("t-damaged"), session_seq: 6, content });
    loaded.push(answered(7, "Go on").loaded(7));
    loaded
}

/// A turn whose model is to be asked.
pub(super) fn waits_for_model() -> Turn {
    Turn::begin(SECOND, "10:41:00", "Go on").ask()
}
