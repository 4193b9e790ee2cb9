//! What is sent while it cannot be delivered waits, is seen, and comes back when it is asked for.

use super::script::{Screen, commands, settings};
use super::world::{Session, asking, ended, running};
use crate::app::command::{Command, Draft, DraftOf, Unsent};
use crate::app::notice::{Notice, Refused, UnsentMessage};
use crate::base::id::{EventId, SessionId};
use crate::tui::state::composer::Kept;

fn of(session: &Session) -> DraftOf {
    DraftOf::Session(session.id.clone())
}

/// These messages wait in the session on screen.
fn waits(screen: &mut Screen, session: &Session, texts: &[(&str, bool)]) {
    let messages = texts.iter().zip(1..).map(|((text, held), number)| UnsentMessage {
        id: EventId::from(format!("e{number}")),
        text: (*text).to_owned(),
        held: *held,
    });
    let (session, messages) = (session.id.clone(), messages.collect());
    screen.tell(Notice::UnsentChanged { session, messages });
}

fn taken(session: &Session, event: &str, text: &str, caret: usize) -> Command {
    let draft = Draft { text: text.into(), caret, pastes: vec![] };
    let (session, event) = (session.id.clone(), EventId::from(event));
    Command::Unsent(Unsent::TakeBack { session, event, draft })
}

fn refused(session: &Session, event: &str) -> Notice {
    let (session, event) = (session.id.clone(), EventId::from(event));
    Notice::Refused { what: Refused::TakeBack { session, event }, why: "on its way".into() }
}

fn sent_texts(commands: &[Command]) -> Vec<String> {
    let sent = commands.iter().filter_map(|command| match command {
        Command::Send(send) => Some(send.message.plain_text()),
        _ => None,
    });
    sent.collect()
}

#[test]
fn while_a_turn_runs_or_waits_enter_queues() {
    let mut busy = running("s1");
    let mut screen = Screen::showing(&busy);
    screen.tell(busy.turn().started());
    for (mut screen, session) in [(screen, busy), {
        let asking = asking("s2", 1);
        (Screen::showing(&asking), asking)
    }] {
        screen.types("next");
        assert_eq!(sent_texts(&commands(screen.keys("Enter"))), ["next"]);
        assert_eq!(screen.text(), "next", "it stays until it is durable");
        let from = of(&session);
        screen.tell(Notice::Queued { from, session: session.id.clone() });
        assert_eq!(screen.text(), "");
        assert_eq!(commands(screen.wait(1_000)), [], "the draft went with it");
    }
}

#[test]
fn a_suspended_turn_never_takes_a_message_for_an_answer_and_the_composer_says_so() {
    let session = asking("s1", 1);
    let mut screen = Screen::showing(&session);
    screen.types("yes");
    let asked = commands(screen.keys("Enter"));
    assert!(!asked.iter().any(|command| matches!(command, Command::Decide(_))), "{asked:?}");
    screen.tell(Notice::Queued { from: of(&session), session: session.id.clone() });
    assert!(screen.toast().contains("no answer"), "{}", screen.toast());
}

#[test]
fn a_message_behind_held_ones_says_by_which_key_all_go() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", true)]);
    screen.types("two");
    screen.keys("Enter");
    screen.tell(Notice::Queued { from: of(&session), session: session.id.clone() });
    assert!(screen.toast().contains("Alt-S"), "{}", screen.toast());
    let released = Command::Unsent(Unsent::Release(session.id));
    assert_eq!(commands(screen.keys("Alt-S")), [released]);
}

#[test]
fn nothing_is_released_behind_an_interrupted_turn() {
    let session = running("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", true)]);
    assert_eq!(commands(screen.keys("Alt-S")), []);
    let says = "The last turn was interrupted; in the conversation C resumes it, and X closes it";
    assert_eq!(screen.toast(), says);
}

#[test]
fn the_last_waiting_message_comes_back_before_what_is_being_written() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false), ("two", false)]);
    screen.types("three");
    let effects = commands(screen.keys("Alt-Up"));
    assert_eq!(effects, [taken(&session, "e2", "two\nthree", 3)]);
    assert_eq!(screen.text(), "two\nthree");
    let (id, event) = (session.id.clone(), EventId::from("e2"));
    screen.tell(Notice::TakenBack { session: id, event });
    assert_eq!(screen.state.conversation.unsent.len(), 1);
    let effects = commands(screen.keys("Alt-Up"));
    assert_eq!(effects, [taken(&session, "e1", "one\ntwo\nthree", 3)]);
}

#[test]
fn one_message_is_taken_back_at_a_time_and_nothing_is_sent_meanwhile() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false), ("two", false)]);
    screen.keys("Alt-Up");
    assert_eq!(commands(screen.keys("Alt-Up Enter")), []);
    screen.tell(refused(&session, "e2"));
    assert_eq!(commands(screen.keys("Alt-Up")), [taken(&session, "e2", "two", 3)]);
}

#[test]
fn a_message_that_was_on_its_way_leaves_the_text_again() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one\ntwo", false)]);
    screen.types("rest");
    screen.keys("Alt-Up");
    screen.keys("Ctrl-End");
    screen.types("!");
    screen.tell(refused(&session, "e1"));
    assert_eq!((screen.text().as_str(), screen.toast()), ("rest!", "on its way"));
    let draft = Draft { text: "rest!".into(), caret: 5, pastes: vec![] };
    let saved = Command::SaveDraft { of: of(&session), draft };
    assert_eq!(commands(screen.wait(500)), [saved]);
}

#[test]
fn what_was_changed_since_it_came_back_stays_whatever_became_of_the_message() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false)]);
    screen.keys("Alt-Up");
    screen.types("s more");
    screen.tell(refused(&session, "e1"));
    assert_eq!(screen.text(), "ones more");
}

#[test]
fn a_text_of_the_history_gives_way_to_the_draft_before_a_message_comes_back() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    screen.types("sent before");
    screen.keys("Ctrl-C");
    waits(&mut screen, &session, &[("one", false)]);
    screen.types("draft");
    screen.keys("Up");
    assert_eq!(screen.text(), "sent before");
    assert_eq!(commands(screen.keys("Alt-Up")), [taken(&session, "e1", "one\ndraft", 3)]);
}

#[test]
fn nothing_comes_back_before_the_draft_is_there_or_where_nothing_waits() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    assert_eq!(commands(screen.keys("Alt-Up Alt-S")), []);
    assert!(screen.toast().contains("No message waits"), "{}", screen.toast());
    waits(&mut screen, &session, &[("one", false)]);
    screen.state.composer.kept = Kept::Asked;
    assert_eq!(commands(screen.keys("Alt-Up")), []);
    let other = SessionId::from("s2");
    screen.tell(Notice::UnsentChanged { session: other, messages: Vec::new() });
    assert_eq!(screen.state.conversation.unsent.len(), 1, "another session is another thing");
}

#[test]
fn a_text_that_waits_behind_what_is_held_is_not_said_to_be_sent() {
    for (key, says) in
        [("r", "Resuming the interrupted turn"), ("y", "Closing the interrupted turn")]
    {
        let mut session = running("s1");
        let mut screen = Screen::showing(&session);
        waits(&mut screen, &session, &[("one", true)]);
        screen.types("two");
        screen.keys("Enter");
        screen.wait(400);
        screen.keys(key);
        assert_eq!(screen.toast(), says);
        if key == "r" {
            screen.tell(session.turn().started());
            screen.tell(Notice::Queued { from: of(&session), session: session.id.clone() });
            assert!(screen.toast().contains("waits behind what is held"), "{}", screen.toast());
        }
    }
}

/// What leaving the text of a waiting message does: it is in the history, and no draft any more.
fn left(text: &str) -> [Command; 2] {
    let removed = Command::SaveDraft { of: DraftOf::Rewrite, draft: Draft::default() };
    [Command::Remember(text.to_owned()), removed]
}

fn rewritten(session: &Session, event: &str, text: &str) -> Command {
    let (session, event) = (session.id.clone(), EventId::from(event));
    Command::Unsent(Unsent::Edit { session, event, text: text.to_owned() })
}

#[test]
fn a_waiting_message_is_edited_in_its_place_and_the_draft_stays() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", true), ("two", true)]);
    screen.types("draft");
    screen.wait(500);
    screen.keys("Alt-W");
    screen.types(" and");
    screen.keys("Alt-Enter");
    screen.types("more");
    let edited = rewritten(&session, "e2", "two and\nmore");
    let [kept, removed] = left("two and\nmore");
    assert_eq!(commands(screen.keys("Enter")), [kept, removed, edited]);
    assert_eq!((screen.text().as_str(), &screen.state.overlay), ("draft", &None));
}

#[test]
fn the_same_key_goes_on_to_the_message_before_and_loses_nothing_on_the_way() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    assert_eq!(commands(screen.keys("Alt-W")), []);
    assert_eq!(screen.toast(), "No message waits to be sent");
    waits(&mut screen, &session, &[("one", false), ("two", false)]);
    screen.keys("Alt-W Alt-W");
    assert_eq!(commands(screen.clone().keys("Enter")), [], "nothing was changed");
    screen.keys("Alt-W");
    assert_eq!(screen.toast(), "No message waits before this one");
    screen.types("!");
    screen.keys("Alt-W");
    assert!(screen.toast().contains("Keep what you changed"), "{}", screen.toast());
    assert_eq!(commands(screen.keys("Enter")).last(), Some(&rewritten(&session, "e1", "one!")));
}

#[test]
fn what_was_written_for_a_message_that_has_gone_is_in_the_history() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false)]);
    screen.keys("Alt-W");
    screen.types("!");
    let (id, messages) = (session.id.clone(), Vec::new());
    let told = commands(screen.tell(Notice::UnsentChanged { session: id, messages }));
    assert_eq!(told, left("one!"));
    assert_eq!(screen.state.overlay, None);
    assert!(screen.toast().contains("on its way"), "{}", screen.toast());
    screen.keys("Up");
    assert_eq!(screen.text(), "one!");
}

#[test]
fn an_edit_that_is_left_changes_nothing_and_one_to_nothing_is_refused() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false)]);
    screen.keys("Alt-W Ctrl-U");
    assert_eq!(commands(screen.keys("Enter")), []);
    assert!(screen.toast().contains("Alt-Up"), "{}", screen.toast());
    screen.types("two");
    assert_eq!(commands(screen.keys("Esc")), left("two"));
    assert_eq!(screen.state.conversation.unsent[0].text, "one");
}

/// What stands in a draft, with the caret at its end.
fn draft(text: &str) -> Draft {
    Draft { text: text.to_owned(), caret: text.len(), pastes: vec![] }
}

#[test]
fn what_is_being_written_for_a_waiting_message_survives_a_kill_and_an_end_from_outside() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", true)]);
    screen.keys("Alt-W");
    assert_eq!(commands(screen.wait(1_000)), [], "nothing was typed");
    screen.types("!");
    let saved = Command::SaveDraft { of: DraftOf::Rewrite, draft: draft("one!") };
    assert_eq!(commands(screen.wait(500)), [saved]);
    assert_eq!(commands(screen.wait(5_000)), [], "it is on the disk");
    let ended = commands(crate::tui::update::end(&mut screen.clone().state));
    assert_eq!(ended, left("one!"));
    assert_eq!(commands(screen.keys("Esc")), left("one!"));
}

#[test]
fn what_a_killed_program_left_of_an_edit_is_in_the_history() {
    let mut screen = Screen::new();
    let found = || Notice::Draft { of: DraftOf::Rewrite, draft: draft("one!") };
    assert_eq!(commands(screen.tell(found())), left("one!"));
    assert!(screen.toast().contains("in the history"), "{}", screen.toast());
    screen.keys("Up");
    assert_eq!(screen.text(), "one!");
    let access = crate::tui::state::settings::Access::ReadOnly;
    let mut view = Screen::with(crate::tui::state::settings::Settings { access, ..settings() });
    assert_eq!(commands(view.tell(found())), [], "somebody else may be writing it");
    assert_eq!(view.toast(), "");
}

#[test]
fn a_refused_message_leaves_the_draft_of_a_session_that_is_not_on_screen() {
    let (session, other) = (ended("s1"), ended("s2"));
    let mut screen = Screen::showing(&session);
    waits(&mut screen, &session, &[("one", false)]);
    screen.types("rest");
    screen.keys("Alt-Up");
    screen.open(&other);
    let load = Command::LoadDraft(of(&session));
    assert_eq!(commands(screen.tell(refused(&session, "e1"))), std::slice::from_ref(&load));
    let kept = || Notice::Draft { of: of(&session), draft: draft("one\nrest") };
    let saved = Command::SaveDraft { of: of(&session), draft: draft("rest") };
    assert_eq!(commands(screen.clone().tell(kept())), std::slice::from_ref(&saved));
    // Back there before it came.
    screen.keys("Shift-Tab Shift-Tab");
    screen.state.focus = crate::tui::state::Focus::List;
    screen.state.list.selected = Some(session.id.clone());
    assert!(commands(screen.keys("Enter")).contains(&load));
    screen.tell(kept());
    screen.tell(kept());
    assert_eq!(screen.text(), "rest");
    assert_eq!(commands(screen.wait(500)), [saved]);
}

#[test]
fn a_refused_message_leaves_the_draft_behind_a_text_of_the_history() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    screen.types("sent before");
    screen.keys("Ctrl-C");
    screen.wait(500);
    waits(&mut screen, &session, &[("one", false)]);
    screen.types("rest");
    screen.keys("Alt-Up Up Up");
    assert_eq!(screen.text(), "sent before");
    screen.tell(refused(&session, "e1"));
    screen.keys("Down");
    assert_eq!(screen.text(), "rest");
    let Some(Command::SaveDraft { draft, .. }) = commands(screen.wait(500)).pop() else {
        panic!("it is not saved")
    };
    assert_eq!(draft.text, "rest");
}
