//! Questions: nothing is chosen but by choosing, and nothing typed is lost.

use super::prompts::check_nothing_decided;
use super::script::{Screen, commands};
use super::world::{Session, questioning};
use crate::app::command::{Command, DraftOf};
use crate::app::notice::Notice;
use crate::domain::question::Answer;
use crate::domain::turn::event::ResultSource;

const FORM: &str = r#"{"questions":[
    {"id":"a","text":"Which?","options":["one","two"]},
    {"id":"b","text":"Which ones?","options":["x","y","z"],"multiple":true},
    {"id":"c","text":"Why?"}]}"#;

fn answer(session: &mut Session, answers: &[(&str, &[&str])]) -> Command {
    let answers = answers.iter().map(|(id, texts)| {
        ((*id).to_owned(), texts.iter().map(|text| (*text).to_owned()).collect())
    });
    Command::Answer {
        turn: session.turn().id.clone(),
        call: session.turn().call(1),
        answer: Answer::Answered(answers.collect()),
    }
}

fn armed_form(input: &str) -> (Screen, Session) {
    let session = questioning("s1", input);
    let mut screen = Screen::showing(&session);
    screen.keys("Ctrl-Y");
    screen.wait(400);
    (screen, session)
}

#[test]
fn a_form_is_answered_question_by_question() {
    let (mut screen, mut session) = armed_form(FORM);
    check_nothing_decided(screen.keys("Enter"));
    assert_eq!(screen.toast(), "Choose with Space or type an answer; Enter sends it");
    check_nothing_decided(screen.keys("Down Space Up Space Enter"));
    check_nothing_decided(screen.keys("Space Down Down Space Tab"));
    check_nothing_decided(screen.types("and w"));
    check_nothing_decided(screen.keys("Enter"));
    check_nothing_decided(screen.types("because"));
    let effects = commands(screen.keys("Enter"));
    let expected: &[(&str, &[&str])] =
        &[("a", &["one"]), ("b", &["x", "z", "and w"]), ("c", &["because"])];
    assert_eq!(effects, [answer(&mut session, expected)]);
}

#[test]
fn typing_on_the_options_is_a_free_answer() {
    let (mut screen, mut session) =
        armed_form(r#"{"questions":[{"id":"a","text":"?","options":["y"]}]}"#);
    check_nothing_decided(screen.types("yes, but"));
    assert_eq!(commands(screen.keys("Enter")), [answer(&mut session, &[("a", &["yes, but"])])]);
}

#[test]
fn a_question_is_dismissed_by_its_own_two_keys_alone() {
    let (mut screen, mut session) = armed_form(r#"{"question":"Why?"}"#);
    let (turn, call) = (session.turn().id.clone(), session.turn().call(1));
    check_nothing_decided(screen.types("d"));
    check_nothing_decided(screen.keys("Ctrl-X Esc d"));
    let effects = commands(screen.keys("Ctrl-X d"));
    let dismissed = Command::Answer { turn, call, answer: Answer::Dismissed };
    assert_eq!(effects, [dismissed, Command::Remember("dd".into())]);
}

#[test]
fn a_sequence_that_was_begun_elsewhere_does_not_end_in_a_prompt() {
    let (mut screen, _) = armed_form(r#"{"question":"Why?"}"#);
    screen.keys("Ctrl-X");
    screen.keys("F1");
    screen.keys("Esc");
    screen.wait(400);
    check_nothing_decided(screen.keys("d"));
}

#[test]
fn a_half_filled_form_is_kept_and_comes_back() {
    let (mut screen, mut session) = armed_form(FORM);
    screen.keys("Space Tab");
    screen.types("or thr");
    let call = session.turn().call(1);
    let saved = commands(screen.wait(500));
    let [Command::SaveDraft { of, draft }] = saved.as_slice() else { panic!("{saved:?}") };
    assert_eq!(*of, DraftOf::Prompt(call));
    let kept = screen.state.prompts.armed_form().expect("a form").fields.clone();

    let mut later = Screen::showing(&session);
    later.tell(Notice::Draft { of: of.clone(), draft: draft.clone() });
    later.wait(400);
    later.keys("Ctrl-Y");
    later.wait(400);
    assert_eq!(later.state.prompts.armed_form().expect("a form").fields, kept);
}

#[test]
fn a_question_that_is_answered_elsewhere_leaves_what_was_typed_in_the_history() {
    let (mut screen, mut session) = armed_form(r#"{"question":"Why?"}"#);
    screen.types("I was about to say");
    let notice = session.turn().finishes(1, ResultSource::Async);
    let effects = commands(screen.tell(notice));
    assert!(effects.contains(&Command::Remember("I was about to say".into())), "{effects:?}");
    screen.keys("Up");
    assert_eq!(screen.text(), "I was about to say");
}
