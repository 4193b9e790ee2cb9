//! What the screen says, claim by claim.

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;

use super::{scenery, screen};
use crate::app::notice::{EventLine, LoadedTurn, UnsentMessage};
use crate::base::id::{EventId, SessionId, ToolCallId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::question::Answer;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::{
    ModelCallFailed, ModelStep, ResultSource, ToolResultData, TurnFact, TurnFailed,
};
use crate::domain::turn::step::StepEvent;
use crate::store::coordinate::Stall;
use crate::store::log::{LogId, LogKind};
use crate::tui::editor::{Editor, Shape};
use crate::tui::layout::layout;
use crate::tui::rows::dialog;
use crate::tui::scenes::{self, Turn, call};
use crate::tui::state::State;
use crate::tui::state::form::Form;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::{
    About, Confirm, Events, Fetched, Full, Overlay, Rewrite, Safety, Waiting,
};
use crate::tui::state::settings::{Access, Settings};
use crate::tui::state::status::Tone;

const NORMAL: Size = Size { width: 80, height: 24 };

/// The row of the screen that holds a text.
#[track_caller]
fn row_with<'a>(shown: &'a str, text: &str) -> &'a str {
    let found = shown.lines().find(|row| row.contains(text));
    found.unwrap_or_else(|| panic!("{text:?} is not in\n{shown}"))
}

#[test]
fn a_call_that_was_stopped_interrupted_or_dismissed_has_not_failed() {
    let cut = |by: Cut| ToolResultData {
        output: Json::text("it was cut off"),
        is_error: true,
        metadata: Some(ResultMetadata::cut(by).to_json()),
    };
    let turn = Turn::begin("t-1", "10:31:00", "Go on").ask().answer(vec![
        call("c1", "shell", r#"{"command":"sleep 60"}"#),
        call("c2", "shell", r#"{"command":"sleep 70"}"#),
        call("c3", "ask-human", r#"{"question":"Which one?"}"#),
    ]);
    let turn = turn
        .invoke("c3", Execution::Async)
        .settle("c1", ResultSource::Runtime, cut(Cut::Stopped))
        .settle("c2", ResultSource::Runtime, cut(Cut::Interrupted))
        .settle("c3", ResultSource::Async, Answer::Dismissed.to_result());
    let shown = screen(&scenes::conversation(NORMAL, vec![turn]), NORMAL);
    for (call, stands) in
        [("sleep 60", "■ stopped"), ("sleep 70", "~ interrupted"), ("Which one?", "■ dismissed")]
    {
        let row = row_with(&shown, call);
        assert!(row.contains(stands), "{row}");
    }
}

/// A question with so many options, of which one has the focus.
fn many_options(size: Size, options: usize, focus: usize) -> State {
    let options: Vec<String> = (1..=options).map(|number| format!("option {number}")).collect();
    let input = serde_json::json!({ "questions": [
        { "id": "a", "text": "Which of all these is the one that you would take?", "options": options },
    ]});
    let asked = Turn::begin("t-1", "10:31:00", "Ask me")
        .ask()
        .answer(vec![call("q1", "ask-human", &input.to_string())])
        .invoke("q1", Execution::Async);
    let mut state = scenery::full(size, vec![asked]);
    scenery::open(&mut state, scenery::armed);
    let mut form = Form::new(&Json::of(&input));
    (1..focus).for_each(|_| form.move_by(1));
    state.prompts.forms.insert(ToolCallId::from("q1"), form);
    state
}

#[test]
fn the_option_under_the_cursor_is_seen_on_every_screen() {
    for size in [NORMAL, Size::new(40, 10), Size::new(40, 8), Size::new(20, 6), Size::new(20, 5)] {
        for focus in [1, 2, 7, 12] {
            let state = many_options(size, 12, focus);
            let shown = screen(&state, size);
            let row = row_with(&shown, &format!("option {focus}"));
            assert!(row.contains('›'), "{size:?}\n{shown}");
            let layout = layout(&state, size, &mut scenes::cache());
            assert!(layout.prompt.is_some_and(|prompt| prompt.is_open), "its keys work");
        }
    }
}

#[test]
fn an_answer_that_is_typed_is_seen_on_every_screen() {
    for size in [NORMAL, Size::new(40, 10), Size::new(40, 8), Size::new(20, 5)] {
        let mut state = many_options(size, 12, 1);
        let form = state.prompts.forms.get_mut(&ToolCallId::from("q1")).unwrap();
        form.go_to_text();
        form.text_mut().unwrap().insert("my own");
        let shown = screen(&state, size);
        row_with(&shown, "✎  my own");
    }
}

#[test]
fn on_a_small_screen_the_question_itself_is_seen_at_first() {
    row_with(&screen(&many_options(Size::new(40, 10), 12, 1), Size::new(40, 10)), "Which of all");
}

#[test]
fn on_the_smallest_screen_a_question_says_that_there_is_more_and_what_chooses() {
    let shown = screen(&many_options(Size::new(20, 5), 12, 7), Size::new(20, 5));
    row_with(&shown, "above");
    row_with(&shown, "Space choose");
}

#[test]
fn the_smallest_dialog_shows_what_is_deleted_and_its_keys() {
    let size = Size::new(20, 5);
    let ask = |ids: &[&str]| {
        let mut state = scenery::full(size, vec![scenery::worked()]);
        let about = About::Delete(ids.iter().copied().map(SessionId::from).collect());
        state.overlay = Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed }));
        screen(&state, size)
    };
    let one = ask(&["s-done"]);
    row_with(&one, "Explain the ind");
    row_with(&one, "y delete  n no");
    let many = ask(&["s-done", "s-failed", "s-fork", "s-cut", "s-unsent"]);
    row_with(&many, "Refactor the st");
    row_with(&many, "… 3 sessions");
    row_with(&many, "y delete  n no");
}

#[test]
fn every_question_fits_the_smallest_dialog() {
    let size = Size::new(20, 5);
    let state = scenery::full(size, vec![scenery::worked()]);
    let session = SessionId::from("s-done");
    let abouts = [
        About::Quit,
        About::Interrupted(session.clone()),
        About::Stop("t-1".into()),
        About::Delete(vec![session]),
    ];
    for about in abouts {
        let confirm = Confirm { about, arming: Arming::Unseen };
        let asked = dialog::confirm(&state, &confirm, (16, 3));
        assert!(asked.lines.len() <= 3, "{confirm:?}: {:?}", asked.lines);
        let mut state = state.clone();
        state.overlay = Some(Overlay::Confirm(confirm));
        row_with(&screen(&state, size), "n no");
    }
}

#[test]
fn a_turn_that_waits_says_how_it_is_stopped() {
    for size in [NORMAL, Size::new(40, 12)] {
        let shown = screen(&scenery::full(size, vec![scenery::asks()]), size);
        row_with(&shown, "X here to stop");
    }
}

#[test]
fn the_waiting_list_names_the_session_the_tool_and_what_it_wants() {
    for size in [NORMAL, Size::new(40, 10), Size::new(20, 5)] {
        let mut state = scenery::full(size, vec![scenery::worked()]);
        let question = Turn::begin("t-9", "10:50:00", "Ask me")
            .ask()
            .answer(vec![call("q9", "ask-human", r#"{"question":"Which?"}"#)])
            .invoke("q9", Execution::Async);
        let mut entry = scenery::entry("s-asks", "Asks", scenes::at("11:00:00"));
        let LoadedTurn { content: Ok(view), .. } = question.loaded(1) else {
            panic!("it is whole")
        };
        entry.observe(&view.state);
        state.list.put(&Arc::new(entry));
        state.overlay = Some(Overlay::Waiting(Waiting::default()));
        let shown = screen(&state, size);
        row_with(&shown, "◆ Asks");
        row_with(&shown, "asks: Which?");
        if size != Size::new(20, 5) {
            row_with(&shown, "◆ Fix the flaky w");
            row_with(&shown, "shell cargo test");
        }
    }
}

#[test]
fn what_the_disk_does_not_take_stands_in_the_status_line_with_the_keys_for_it() {
    let log = LogId::new(LogKind::Turn, "2026-03-04T05-06-07Z-0000042-000").expect("an id");
    let stall = Stall {
        log,
        cause: "No space left on device".to_owned(),
        why: "cannot append".to_owned(),
        records: 3,
        retry_in: Some(Duration::from_secs(2)),
        tries: 1,
    };
    let said = |size: Size| {
        let mut state = scenery::full(size, Vec::new());
        state.status.stalls.change(vec![stall.clone()], state.now.elapsed);
        let shown = screen(&state, size);
        row_with(&shown, "stalled").trim_matches(['│', ' ']).to_owned()
    };
    assert_eq!(
        said(Size::new(120, 30)),
        "! storage stalled: No space left on device · 3 events held · retry in 2 s · \
         Ctrl-X r retry · Ctrl-X g give up"
    );
    assert_eq!(
        said(NORMAL),
        "! storage stalled · 3 events held · Ctrl-X r retry · Ctrl-X g give up"
    );
    assert_eq!(said(Size::new(50, 12)), "! storage stalled · 3 · Ctrl-X r · Ctrl-X g");
    assert_eq!(said(Size::new(40, 12)), "! stalled · 3 · Ctrl-X r · Ctrl-X g");
    assert_eq!(said(Size::new(20, 5)), "! storage stalled");
}

#[test]
fn whoever_leaves_what_is_held_is_told_that_it_will_be_lost() {
    let log = LogId::new(LogKind::Turn, "2026-03-04T05-06-07Z-0000042-000").expect("an id");
    let (cause, why) = ("No space left on device".to_owned(), "cannot append".to_owned());
    let stall = Stall { log, cause, why, records: 3, retry_in: None, tries: 1 };
    let mut state = scenery::full(NORMAL, Vec::new());
    state.status.stalls.change(vec![stall], state.now.elapsed);
    let (about, arming) = (About::Quit, Arming::Armed);
    state.overlay = Some(Overlay::Confirm(Confirm { about, arming }));
    let shown = screen(&state, NORMAL);
    assert!(shown.contains("The disk does not take 3 events, which will be lost."), "{shown}");
    assert!(!shown.contains("nothing is lost"), "{shown}");
}

#[test]
fn a_toast_leaves_the_last_row_of_the_conversation_free() {
    for size in [NORMAL, Size::new(100, 30), Size::new(40, 12)] {
        let cut = Turn::begin("t-1", "10:31:00", "Go on").ask();
        let mut state = scenery::full(size, vec![cut]);
        for number in 0..3 {
            let text = format!("{number}: {}", "something that happened ".repeat(4));
            state.status.toast(Tone::Problem, text, state.now.elapsed);
        }
        let shown = screen(&state, size);
        row_with(&shown, "C goes on with it");
        row_with(&shown, "! 2: something");
    }
}

#[test]
fn on_the_smallest_screen_the_full_view_shows_something_and_the_keys_that_decide() {
    let size = Size::new(20, 5);
    let mut state = scenery::full(size, vec![scenery::asks()]);
    scenery::open(&mut state, scenery::armed);
    state.overlay = Some(Overlay::Full(Full::new(state.prompts.queue[0].clone())));
    let shown = screen(&state, size);
    for text in ["cargo test", "y allow once", "n deny"] {
        row_with(&shown, text);
    }
}

#[test]
fn a_prompt_without_room_says_so_and_how_it_is_seen() {
    let size = Size::new(60, 6);
    let mut state = scenery::full(size, vec![scenery::asks()]);
    scenery::open(&mut state, scenery::opening);
    let shown = screen(&state, size);
    row_with(&shown, "no room · Ctrl-Y");
}

#[test]
fn why_a_model_call_failed_is_said_once() {
    let error = "lab/tiny-1: the server cannot be reached";
    let failure =
        TurnFact::ModelCallFailed(ModelCallFailed { model_call_index: 0, error: error.into() });
    let failed = TurnFailed { error: error.into(), code: None, usage: scenes::usage() };
    let turn = Turn::begin("t-1", "10:31:00", "Go on").ask();
    let turn = turn.then(failure).then(TurnFact::Failed(failed));
    let shown = screen(&scenes::conversation(NORMAL, vec![turn]), NORMAL);
    row_with(&shown, "The model did not answer: lab/tiny-1");
    assert_eq!(shown.matches("cannot be reached").count(), 1, "{shown}");
}

#[test]
fn a_view_shows_no_keys_for_what_it_cannot_do() {
    let view = |turn: Turn| {
        let mut state = scenery::full(NORMAL, vec![turn]);
        let settings = Settings { access: Access::ReadOnly, ..state.settings.clone() };
        state.settings = settings;
        state
    };
    let mut asks = view(scenery::asks());
    let mut questions = view(scenery::questions());
    for state in [&mut asks, &mut questions] {
        scenery::open(state, scenery::armed);
    }
    let mut page = scenes::state(NORMAL);
    page.settings = asks.settings.clone();
    let interrupted = view(Turn::begin("t-1", "10:31:00", "Go on").ask());
    let offers = ["here to stop", "allow once", "deny", "choose", "Enter", "goes on with it"];
    for state in [&asks, &questions, &interrupted, &page] {
        let shown = screen(state, NORMAL);
        for offer in offers {
            assert!(!shown.contains(offer), "{offer:?} is offered:\n{shown}");
        }
    }
    row_with(&screen(&asks, NORMAL), "view all");
    page.conversation.unsent =
        vec![UnsentMessage { id: EventId::from("e1"), text: "One more".to_owned(), held: true }];
    let shown = screen(&page, NORMAL);
    assert!(row_with(&shown, "One more").contains("waits"), "who knows who holds it: {shown}");
    assert!(!shown.contains("Alt-"), "{shown}");
}

#[test]
fn a_message_that_could_not_be_delivered_says_why() {
    let mut state = scenery::full(NORMAL, vec![scenery::worked()]);
    let session = SessionId::from(scenes::SESSION);
    let mut entry = SessionIndexEntry::clone(state.list.entry(&session).expect("listed"));
    entry.last_error = Some("there is no model lab/tiny\ncaused by nothing".to_owned());
    state.list.put(&Arc::new(entry));
    assert!(!screen(&state, NORMAL).contains("not delivered"), "nothing waits");
    state.conversation.unsent =
        vec![UnsentMessage { id: EventId::from("e1"), text: "One more".to_owned(), held: true }];
    let shown = screen(&state, NORMAL);
    row_with(&shown, "not delivered: there is no model lab/tiny");
    row_with(&shown, "One more");
    row_with(&shown, "takes back");
}

#[test]
fn no_key_is_offered_that_does_nothing() {
    let mut state = scenery::full(NORMAL, vec![scenery::worked()]);
    let message =
        |id: &str| UnsentMessage { id: EventId::from(id), text: id.to_owned(), held: true };
    state.conversation.unsent = vec![message("e1"), message("e2")];
    let rewrite = |event: &str, now: &str| {
        Overlay::Rewrite(Rewrite {
            session: SessionId::from(scenes::SESSION),
            event: EventId::from(event),
            was: event.to_owned(),
            field: Editor::with_text(Shape::Page, now),
            safety: Safety::default(),
        })
    };
    for (overlay, offers) in
        [(rewrite("e2", "e2"), true), (rewrite("e2", "e2!"), false), (rewrite("e1", "e1"), false)]
    {
        state.overlay = Some(overlay);
        assert_eq!(screen(&state, NORMAL).contains("the one before"), offers);
    }
    let mut idle = scenes::conversation(NORMAL, Vec::new());
    idle.overlay = Some(Overlay::Waiting(Waiting::default()));
    let shown = screen(&idle, NORMAL);
    assert!(shown.contains("Nothing waits") && !shown.contains("go there"), "{shown}");
}

#[test]
fn on_the_smallest_screen_an_event_says_what_happened_before_when() {
    let size = Size { width: 20, height: 5 };
    let mut state = scenery::full(size, vec![scenery::worked()]);
    let (at, kind) = (scenes::at("10:31:00"), "turn_created");
    let event = EventLine { offset: 1, at, kind, model_call: None, tool: None };
    state.overlay = Some(Overlay::Events(Events {
        turn: TurnId::from(scenery::TURN),
        lines: Fetched::There([event].into()),
        selected: 0,
        page: None,
    }));
    let shown = screen(&state, size);
    assert!(row_with(&shown, "turn_cre").contains('1'), "{shown}");
}

#[test]
fn a_call_that_failed_after_a_part_of_its_answer_broke_off() {
    let part =
        ModelStep { model_call_index: 0, event: StepEvent::TextEnd { text: "Half of it.".into() } };
    let failure = ModelCallFailed { model_call_index: 0, error: "the connection was cut".into() };
    let turn = Turn::begin("t-1", "10:31:00", "Go on").ask();
    let turn = turn.then(TurnFact::ModelStep(part)).then(TurnFact::ModelCallFailed(failure));
    let shown = screen(&scenes::conversation(NORMAL, vec![turn]), NORMAL);
    row_with(&shown, "Half of it.");
    row_with(&shown, "✗ The answer broke off: the connection was cut");
}

#[test]
fn a_prompt_names_each_path_once_and_breaks_its_rule_between_words() {
    let request = r#"{
        "plan": {
            "folder": "/home/ada/work",
            "writes": [{"path": "/tmp/new.md", "resolved": "/tmp/new.md", "inside": false}]
        },
        "preview": {"kind": "diff", "path": "/tmp/new.md", "created": true, "diff": "@@ -0,0 +1 @@\n+a\n"},
        "rule": "ask write(/tmp/**/somewhere/) [~/.config/turnstile/config.toml:12:3]"
    }"#;
    let turn = Turn::begin("t-1", "10:31:00", "Go on")
        .ask()
        .answer(vec![call("w1", "write-file", r#"{"content":"a"}"#)])
        .require("w1", request);
    let mut state = scenery::full(NORMAL, vec![turn]);
    scenery::open(&mut state, scenery::armed);
    let shown = screen(&state, NORMAL);
    row_with(&shown, "▌  makes   /tmp/new.md  ! outside the folder");
    assert_eq!(shown.matches("/tmp/new.md").count(), 1, "{shown}");
    row_with(&shown, "▌          [~/.config/turnstile/config.toml:12:3]");
}
