//! Promise 2: nothing is decided that the person did not mean.

use std::sync::Arc;

use ratatui::layout::Size;

use super::script::{Screen, commands, settings};
use super::world::{Session, asking, ended, questioning, running};
use crate::app::command::{Command, Decide, Draft, DraftOf};
use crate::app::notice::{Notice, Refused};
use crate::domain::turn::event::Decision;
use crate::tui::effect::{Effect, Note, NoteAbout};
use crate::tui::input::{Button, Input, Mouse, MouseKind};
use crate::tui::key::Mods;
use crate::tui::keymap::read::Source;
use crate::tui::keymap::{Keymap, Personal};
use crate::tui::msg::Msg;
use crate::tui::state::Focus;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::prompts::Stage;
use crate::tui::state::settings::{Access, Settings};

/// A screen whose session begins to ask when nobody has pressed a key for a while.
fn asked(calls: usize) -> (Screen, Session) {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.tell(session.turn().started());
    let turn = session.turn();
    let mut notices = vec![turn.answers("", &vec![("shell", r#"{"command":"x"}"#); calls])];
    notices.extend((1..=calls).map(|number| turn.requires(number)));
    notices.extend([turn.suspends(), turn.rested()]);
    screen.tell_all(notices);
    (screen, session)
}

fn decided(session: &mut Session, number: usize, decision: Decision) -> Command {
    let (turn, call) = (session.turn().id.clone(), session.turn().call(number));
    Command::Decide(Decide { turn, call, decision, reason: None })
}

#[track_caller]
pub(super) fn check_nothing_decided(effects: Vec<Effect>) {
    let decided = commands(effects).into_iter().filter(|command| {
        matches!(command, Command::Decide(_) | Command::Answer { .. } | Command::Stop(_))
    });
    assert_eq!(decided.collect::<Vec<_>>(), []);
}

#[test]
fn a_prompt_over_an_idle_empty_composer_opens_and_takes_one_key_after_a_while() {
    let (mut screen, mut session) = asked(1);
    assert_eq!(screen.state.focus, Focus::Prompt);
    screen.wait(399);
    assert!(screen.state.prompts.armed().is_none());
    screen.wait(1);
    let effects = screen.keys("y");
    assert_eq!(commands(effects), [decided(&mut session, 1, Decision::Allow)]);
    assert_eq!((screen.state.focus, screen.state.prompts.first()), (Focus::Composer, None));
    check_nothing_decided(screen.keys("y n"));
}

#[test]
fn letters_typed_before_the_keys_are_live_go_into_the_draft_and_dock_the_prompt() {
    let (mut screen, _) = asked(1);
    screen.wait(300);
    check_nothing_decided(screen.types("yes"));
    assert_eq!(screen.text(), "yes");
    assert_eq!(
        (screen.state.focus, &screen.state.prompts.stage),
        (Focus::Composer, &Stage::Docked)
    );
    check_nothing_decided(screen.wait(5_000));
    check_nothing_decided(screen.types("y"));
    assert_eq!(screen.text(), "yesy");
}

#[test]
fn keys_that_are_no_letters_only_keep_the_prompt_dead() {
    let (mut screen, mut session) = asked(1);
    for _ in 0..5 {
        screen.wait(300);
        check_nothing_decided(screen.keys("Enter Left Up"));
    }
    screen.wait(399);
    assert!(screen.state.prompts.armed().is_none());
    screen.wait(1);
    assert_eq!(commands(screen.keys("n")), [decided(&mut session, 1, Decision::Deny)]);
}

#[test]
fn a_prompt_that_was_never_drawn_takes_no_key() {
    let (mut screen, _) = {
        let mut session = running("s1");
        let mut screen = Screen::showing(&session);
        screen.is_drawn = false;
        let turn = session.turn();
        let notices = [turn.answers("", &[("shell", "{}")]), turn.requires(1), turn.suspends()];
        screen.tell_all(notices);
        (screen, session)
    };
    assert_eq!(screen.state.focus, Focus::Prompt);
    screen.wait(60_000);
    check_nothing_decided(screen.keys("y"));
    assert_eq!(screen.text(), "y");
}

#[test]
fn over_a_draft_or_a_busy_keyboard_the_prompt_docks_and_waits_for_its_key() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.types("half a thou");
    screen.wait(10_000);
    let turn = session.turn();
    let notices = [turn.answers("", &[("shell", "{}")]), turn.requires(1), turn.suspends()];
    screen.tell_all(notices);
    assert_eq!(
        (screen.state.focus, &screen.state.prompts.stage),
        (Focus::Composer, &Stage::Docked)
    );
    check_nothing_decided(screen.wait(5_000));
    check_nothing_decided(screen.types("ght, you know"));
    screen.keys("Ctrl-Y");
    check_nothing_decided(screen.wait(399));
    screen.wait(1);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
    assert_eq!(screen.text(), "half a thought, you know");
    assert_eq!(screen.state.focus, Focus::Composer);

    let mut busy = running("s2");
    let mut screen = Screen::showing(&busy);
    screen.keys("Ctrl-L");
    screen.wait(699);
    let turn = busy.turn();
    let notices = [turn.answers("", &[("shell", "{}")]), turn.requires(1), turn.suspends()];
    screen.tell_all(notices);
    assert_eq!(screen.state.prompts.stage, Stage::Docked);
}

/// A screen on which a session that asks has come from the disk, and its draft has not.
fn asking_before_its_draft() -> (Screen, Session) {
    let session = asking("s1", 1);
    let mut screen = Screen::new();
    screen.ask_for(&session);
    screen.wait(10_000);
    screen.tell_all(session.opened());
    (screen, session)
}

#[test]
fn a_prompt_that_comes_before_the_draft_waits_for_it_and_opens_only_if_there_is_none() {
    let (mut screen, mut session) = asking_before_its_draft();
    assert_eq!(screen.state.prompts.stage, Stage::Docked);
    screen.wait(1_000);
    let draft = Draft { text: "half a thou".into(), caret: 11, pastes: vec![] };
    screen.load_draft(&session, draft);
    assert_eq!(screen.state.prompts.stage, Stage::Docked);
    screen.wait(1_000);
    check_nothing_decided(screen.types("ght, you know"));
    assert_eq!(screen.text(), "half a thought, you know");

    let (mut screen, _) = asking_before_its_draft();
    check_nothing_decided(screen.types("yes"));
    screen.wait(1_000);
    screen.load_draft(&session, Draft::default());
    assert_eq!((screen.state.prompts.stage.clone(), screen.text()), (Stage::Docked, "yes".into()));

    let (mut screen, _) = asking_before_its_draft();
    screen.load_draft(&session, Draft::default());
    check_nothing_decided(screen.wait(399));
    screen.wait(1);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn going_on_typing_after_the_prompts_key_types() {
    let mut session = asking("s1", 1);
    let mut screen = Screen::showing(&session);
    screen.keys("Ctrl-Y");
    check_nothing_decided(screen.types("yank was meant"));
    assert_eq!(screen.text(), "yank was meant");
    assert!(screen.toast().contains("Ctrl-Y goes back"), "{}", screen.toast());
    let _call = session.turn().call(1);
}

#[test]
fn no_other_key_decides_and_a_letter_without_meaning_is_for_the_draft() {
    let (mut screen, _) = asked(1);
    screen.wait(400);
    check_nothing_decided(screen.keys("Enter Space"));
    assert_eq!(screen.text(), " ");
    let (mut screen, _) = asked(1);
    screen.wait(400);
    check_nothing_decided(screen.keys("1 2 d Y"));
    assert_eq!(screen.text(), "12dY");
}

#[test]
fn neither_paste_nor_committed_text_nor_a_click_decides() {
    let click = Input::Mouse(Mouse {
        kind: MouseKind::Press(Button::Left),
        column: 40,
        row: 12,
        mods: Mods::NONE,
    });
    for input in [Input::Paste("y".into()), Input::Text("y".into()), click] {
        let (mut screen, _) = asked(1);
        screen.wait(400);
        check_nothing_decided(screen.input(input));
        check_nothing_decided(screen.input(Input::FocusGained));
    }
}

#[test]
fn the_click_that_focuses_the_window_does_nothing() {
    let session = asking("s1", 1);
    let mut screen = Screen::showing(&session);
    screen.types("draft");
    let at_prompt =
        Mouse { kind: MouseKind::Press(Button::Left), column: 40, row: 12, mods: Mods::NONE };
    screen.input(Input::FocusLost);
    screen.input(Input::FocusGained);
    screen.input(Input::Mouse(at_prompt));
    assert_eq!(screen.state.prompts.stage, Stage::Docked);
    screen.input(Input::Mouse(at_prompt));
    assert!(screen.state.prompts.open().is_some(), "the second click was meant");
}

#[test]
fn several_prompts_are_decided_one_by_one() {
    let (mut screen, mut session) = asked(3);
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
    check_nothing_decided(screen.keys("Enter"));
    screen.wait(400);
    assert_eq!(commands(screen.keys("n")), [decided(&mut session, 2, Decision::Deny)]);
    check_nothing_decided(screen.keys("y"));
    assert_eq!(screen.text(), "y", "the next one is not armed yet");
    assert_eq!(screen.state.prompts.queue.len(), 1);
}

#[test]
fn a_prompt_that_is_put_off_lets_the_others_come_first() {
    let (mut screen, mut session) = asked(2);
    screen.wait(400);
    check_nothing_decided(screen.keys("Esc"));
    assert_eq!(
        (screen.state.focus, &screen.state.prompts.stage),
        (Focus::Composer, &Stage::Docked)
    );
    screen.keys("Ctrl-Y");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 2, Decision::Allow)]);
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn a_denial_takes_a_reason_in_which_no_key_decides() {
    let (mut screen, mut session) = asked(1);
    screen.wait(400);
    check_nothing_decided(screen.keys("N Enter Shift-Tab Tab"));
    check_nothing_decided(screen.types("why not yn"));
    check_nothing_decided(screen.pastes(" at\nall"));
    let (turn, call) = (session.turn().id.clone(), session.turn().call(1));
    let reason = Some("why not yn at all".to_owned());
    let effects = commands(screen.keys("Enter"));
    let decide = Command::Decide(Decide { turn, call, decision: Decision::Deny, reason });
    assert_eq!(effects, [decide]);
}

#[test]
fn a_reason_that_was_begun_survives_like_a_draft() {
    let (mut screen, mut session) = asked(1);
    let call = session.turn().call(1);
    screen.wait(400);
    screen.keys("N");
    screen.types("because");
    let draft = Draft { text: "because".into(), caret: 7, pastes: vec![] };
    let saved = Command::SaveDraft { of: DraftOf::Prompt(call.clone()), draft: draft.clone() };
    assert_eq!(commands(screen.wait(500)), [saved]);
    screen.keys("Esc");
    check_nothing_decided(screen.keys("Esc"));
    screen.keys("Ctrl-Y");
    screen.wait(400);
    screen.keys("N");
    let Some(Overlay::Reason(reason)) = &screen.state.overlay else { panic!("no reason") };
    assert_eq!(reason.field.text(), "because");

    let mut later = Screen::showing(&session);
    later.tell(Notice::Draft { of: DraftOf::Prompt(call), draft });
    later.wait(400);
    later.keys("Ctrl-Y");
    later.wait(400);
    later.keys("N");
    let Some(Overlay::Reason(reason)) = &later.state.overlay else { panic!("no reason") };
    assert_eq!(reason.field.text(), "because");
}

#[test]
fn after_anything_lay_over_a_prompt_its_keys_are_dead_again() {
    let (mut screen, mut session) = asked(1);
    screen.wait(400);
    screen.keys("F1");
    check_nothing_decided(screen.keys("y Esc"));
    check_nothing_decided(screen.keys("Enter"));
    screen.wait(400);
    screen.keys("v");
    assert_eq!(commands(screen.keys("j y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn an_answer_that_came_from_elsewhere_closes_the_prompt_and_the_late_key_is_text() {
    let (mut screen, mut session) = asked(1);
    screen.wait(400);
    let turn = session.turn();
    let notice = turn.resolves(1, Decision::Deny);
    let effects = screen.tell(notice);
    check_nothing_decided(effects);
    assert_eq!(screen.toast(), "shell no longer waits for you");
    check_nothing_decided(screen.keys("y"));
    assert_eq!(screen.text(), "y");
}

#[test]
fn a_refused_answer_is_told_and_asked_again() {
    let (mut screen, mut session) = asked(1);
    screen.wait(400);
    screen.keys("y");
    let what = Refused::Respond(session.turn().id.clone());
    check_nothing_decided(screen.tell(Notice::Refused { what, why: "the disk is full".into() }));
    assert_eq!(screen.toast(), "the disk is full");
    assert_eq!(screen.state.prompts.queue.len(), 1);
    screen.wait(1_000);
    screen.keys("Ctrl-Y");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn a_session_that_waits_shows_its_prompt_whenever_it_is_opened() {
    let mut session = asking("s1", 2);
    let mut screen = Screen::showing(&session);
    assert_eq!(screen.state.prompts.queue.len(), 2);
    screen.open(&ended("s2"));
    assert_eq!(screen.state.prompts.queue, []);
    screen.open(&session);
    screen.keys("Ctrl-Y");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn while_a_classifier_may_still_allow_nothing_is_asked() {
    let mut session = Session::new("s1");
    session.begin_auto("hello");
    session.turn().asks_model();
    let mut screen = Screen::showing(&session);
    let turn = session.turn();
    let notices = [turn.started(), turn.answers("", &[("shell", "{}")]), turn.requires(1)];
    screen.tell_all(notices);
    assert_eq!(screen.state.prompts.queue, []);
    let notices = [turn.suspends(), turn.rested()];
    screen.tell_all(notices);
    assert_eq!(screen.state.prompts.queue.len(), 1);
}

#[test]
fn an_error_elsewhere_leaves_the_prompt_as_it_was() {
    let (mut screen, mut session) = asked(1);
    screen.wait(400);
    let what = Refused::Advance(session.turn().id.clone());
    screen.tell(Notice::Refused { what, why: "no model".into() });
    screen.tell(Notice::Refused { what: Refused::Keep, why: "no disk".into() });
    screen.send(Msg::Resize(Size::new(40, 10)));
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn a_prompt_in_an_unfocused_window_is_told_once() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.input(Input::FocusLost);
    let turn = session.turn();
    let notices = [
        turn.started(),
        turn.answers("", &[("shell", "{}")]),
        turn.requires(1),
        turn.suspends(),
        turn.rested(),
        session.indexed(),
    ];
    let notes: Vec<_> = screen
        .tell_all(notices)
        .into_iter()
        .filter(|effect| matches!(effect, Effect::Notify(_)))
        .collect();
    let title = Some("Session s1".to_owned());
    let note = Note { session: session.id.clone(), title, about: NoteAbout::Permission };
    assert_eq!(notes, [Effect::Notify(note)]);
}

#[test]
fn after_a_prompt_the_focus_is_back_where_it_was() {
    let (mut screen, mut session) = asked(1);
    screen.keys("Esc Esc");
    assert_eq!(screen.state.focus, Focus::Timeline);
    screen.keys("Ctrl-Y");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
    assert_eq!(screen.state.focus, Focus::Timeline);
}

#[test]
fn a_message_names_the_keys_that_are_bound() {
    let text = "[keys.global]\n\"Ctrl-C\" = \"none\"\n\"Ctrl-X c\" = \"interrupt\"\n";
    let table = toml::de::DeTable::parse(text).expect("TOML");
    let table = table.get_ref()["keys"].get_ref().as_table().expect("a table");
    let source = Source { name: "config.toml", text };
    let keymap = Keymap::new(Some(Personal { source, table })).expect("right");
    let mut screen = Screen::with(Settings { keymap: Arc::new(keymap), ..settings() });
    screen.open(&asking("s1", 1));
    screen.types("text");
    screen.keys("Ctrl-Y");
    screen.wait(400);
    screen.keys("Ctrl-D");
    assert!(screen.toast().contains("; Ctrl-X c there"), "{}", screen.toast());
}

#[test]
fn the_waiting_list_goes_by_time_then_by_the_order_of_asking_and_leads_to_each() {
    let session = asking("s1", 12);
    let mut screen = Screen::showing(&session);
    screen.tell(session.indexed());
    let call = |number: usize| session.turns[0].call(number);
    let listed: Vec<_> = screen.state.list.waiting().iter().map(|it| it.call.clone()).collect();
    assert_eq!(listed, (1..=12).map(call).collect::<Vec<_>>());
    screen.types("a draft");
    screen.keys("Ctrl-T j j");
    check_nothing_decided(screen.keys("y n s p Enter"));
    assert_eq!(screen.state.prompts.open().map(|open| &open.call), Some(&call(3)));
    assert_eq!((screen.state.overlay.as_ref(), screen.text().as_str()), (None, "a draft"));
    screen.wait(400);
    let effects = commands(screen.keys("y"));
    let decided = matches!(effects.as_slice(), [Command::Decide(Decide { call: decided, .. })] if *decided == call(3));
    assert!(decided, "{effects:?}");
}

#[test]
fn the_waiting_list_leads_to_what_waits_longest() {
    let mut screen = Screen::new();
    let (first, second) = (asking("s1", 1), asking("s2", 1));
    screen.tell_all([second.indexed(), first.indexed()]);
    screen.keys("Ctrl-T j");
    let effects = commands(screen.keys("Enter"));
    let opened = effects.into_iter().filter(|command| matches!(command, Command::Open(_)));
    assert_eq!(opened.collect::<Vec<_>>(), [Command::Open(second.id.clone())]);
    assert_eq!(screen.state.overlay, None);
    assert_eq!(screen.state.list.waiting().len(), 2);
    screen.tell_all(second.opened());
    assert!(screen.state.prompts.open().is_some(), "the person came for it");
    check_nothing_decided(screen.keys("Enter"));
}

/// A screen on which the prompt of a session finds no room.
fn without_room() -> (Screen, Session) {
    let (mut screen, session) = asked(1);
    screen.send(Msg::Resize(Size::new(20, 5)));
    screen.wait(5_000);
    (screen, session)
}

#[test]
fn where_there_is_no_room_for_a_prompt_its_letters_are_text_and_the_way_to_it_is_told() {
    let (mut screen, _) = without_room();
    check_nothing_decided(screen.types("y"));
    assert_eq!((screen.text().as_str(), screen.toast()), ("y", "Ctrl-Y shows it"));
}

#[test]
fn where_there_is_no_room_for_a_prompt_it_is_decided_in_its_full_view_once_all_was_seen() {
    let (mut screen, mut session) = without_room();
    for way in ["", "Esc Esc"] {
        screen.keys(way);
        screen.keys("Ctrl-Y");
        assert!(matches!(screen.state.overlay, Some(Overlay::Full(_))), "after {way:?}");
        screen.keys("Esc");
    }
    screen.keys("Ctrl-Y");
    screen.wait(5_000);
    check_nothing_decided(screen.keys("y"));
    // To jump to the end is not to see it all.
    screen.keys("End");
    screen.wait(5_000);
    check_nothing_decided(screen.keys("y"));
    screen.keys("Home PgDn PgDn PgDn");
    check_nothing_decided(screen.keys("y"));
    screen.wait(5_000);
    screen.send(Msg::Resize(Size::new(21, 5)));
    check_nothing_decided(screen.keys("y"));
    screen.keys("Home PgDn PgDn PgDn");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [decided(&mut session, 1, Decision::Allow)]);
}

#[test]
fn reading_only_marks_no_option() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    screen.open(&questioning(
        "s1",
        r#"{"questions":[{"id":"a","text":"Which?","options":["a","b"]}]}"#,
    ));
    screen.keys("Ctrl-Y");
    screen.wait(400);
    let before = screen.state.prompts.forms.clone();
    screen.keys("Space");
    assert_eq!(screen.state.prompts.forms, before);
    assert!(screen.toast().contains("--read-only"), "{}", screen.toast());
}
