//! Snapshots of whole screens, at the sizes of `design/style.md`.

use std::sync::Arc;
use std::time::Duration;

use ratatui::layout::Size;
use ratatui::style::{Color, Modifier};

use super::scenery::{self, armed, asks, full, list, open, opening, questions, worked};
use super::{drawn, painted, screen, styled};
use crate::app::command::SortBy;
use crate::app::command::TextOf;
use crate::app::notice::{EventLine, UnsentMessage};
use crate::app::paged::Paged;
use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::session::event::Compacted;
use crate::domain::session::state::{Compaction, SessionState, SessionTurn};
use crate::tui::editor::{Editor, Shape};
use crate::tui::scenes;
use crate::tui::state::conversation::{Conversation, Load, Page};
use crate::tui::state::form::Form;
use crate::tui::state::keys::Arming;
use crate::tui::state::list::Rename;
use crate::tui::state::list::filter::Filter;
use crate::tui::state::list::tree::Shown;
use crate::tui::state::overlay::{
    About, Codes, Confirm, EventPage, Events, Fetched, Full, Help, Overlay, Purge, Reason, Rewrite,
    Safety, Waiting,
};
use crate::tui::state::status::{LastRun, Tone};
use crate::tui::state::turns::ModelWait;
use crate::tui::state::{Focus, State};
use crate::tui::theme::colour::Depth;
use crate::tui::theme::{Ground, Theme};

const NORMAL: Size = Size { width: 80, height: 24 };
const LARGE: Size = Size { width: 120, height: 40 };
const SMALL: Size = Size { width: 40, height: 12 };
const SMALLEST: Size = Size { width: 40, height: 10 };

/// Compares a screen with the kept one of this name.
fn check(name: &str, state: &State, size: Size) {
    keep(name, &screen(state, size));
}

/// Compares a screen and how it is drawn with what was kept under this name.
fn check_styled(name: &str, state: &State, size: Size) {
    keep(name, &styled(state, size));
}

fn keep(name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

#[test]
fn the_empty_page_says_how_to_begin() {
    for (name, size) in [("empty_80x24", NORMAL), ("empty_120x40", LARGE), ("empty_40x12", SMALL)] {
        let mut state = scenes::state(size);
        list(&mut state);
        check(name, &state, size);
    }
}

#[test]
fn the_first_line_says_that_the_last_run_ended_badly() {
    let mut state = scenes::state(NORMAL);
    list(&mut state);
    let interrupted = ["s-cut", "s-done", "s-fork"].map(SessionId::from);
    state.status.last_run = LastRun::EndedBadly { interrupted: interrupted.to_vec() };
    check("ended_badly_80x24", &state, NORMAL);
}

#[test]
fn the_list_shows_every_mark_and_more_about_the_session_under_the_cursor() {
    for (name, size) in [("list_80x24", NORMAL), ("list_120x40", LARGE), ("list_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        state.focus = Focus::List;
        state.list.selected = Some(SessionId::from("s-fork"));
        state.list.selected_row = 6;
        state.list.marks.insert(SessionId::from("s-failed"));
        check(name, &state, size);
    }
}

#[test]
fn a_damaged_session_says_why() {
    let mut state = full(NORMAL, vec![worked()]);
    state.focus = Focus::List;
    state.list.selected = Some(SessionId::from("s-damaged"));
    state.list.selected_row = 9;
    state.conversation = Conversation::opening(SessionId::from("s-damaged"));
    let why = "line 12 of the log is not valid JSON".to_owned();
    let load = Load::Unreadable(why);
    state.conversation.page = Page::Session { id: SessionId::from("s-damaged"), load };
    check("damaged_80x24", &state, NORMAL);
}

#[test]
fn the_list_is_filtered_sorted_and_renamed_in_place() {
    let mut state = full(NORMAL, vec![worked()]);
    state.focus = Focus::List;
    state.list.sort(SortBy::Title);
    let mut filter = Filter::new();
    filter.field = Editor::with_text(Shape::Line, "explain");
    state.list.filter = Some(filter);
    state.list.restart_filter();
    check("filter_80x24", &state, NORMAL);
    state.list.filter = None;
    let session = SessionId::from("s-done");
    let field = Editor::with_text(Shape::Line, "Explain the index, please");
    state.list.selected = Some(session.clone());
    state.list.rename = Some(Rename { session, field });
    check("rename_80x24", &state, NORMAL);
}

#[test]
fn a_conversation_shows_answers_calls_and_how_it_ended() {
    for (name, size) in
        [("folded_80x24", NORMAL), ("folded_120x40", LARGE), ("folded_40x12", SMALL)]
    {
        check(name, &full(size, vec![worked()]), size);
    }
}

#[test]
fn calls_and_reasoning_open_with_all_that_is_in_them() {
    for (name, size) in [("open_80x24", NORMAL), ("open_120x40", LARGE), ("open_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        state.conversation.folds.toggle_all();
        state.focus = Focus::Timeline;
        check(name, &state, size);
    }
}

#[test]
fn every_turn_says_how_it_ended_or_what_can_be_done() {
    let size = Size { width: 76, height: 68 };
    let mut state = scenes::conversation(size, Vec::new());
    for turn in scenery::endings() {
        let _folded = state.conversation.turns.load(turn);
    }
    check("endings_76x68", &state, size);
    let mut state = full(SMALL, vec![scenery::waits_for_model()]);
    scenes::run(&mut state, scenery::SECOND);
    let wait = ModelWait { until: scenes::at("12:00:30"), why: "rate limited".into() };
    state.conversation.turns.wait(&TurnId::from(scenery::SECOND), wait);
    check("model_wait_40x12", &state, SMALL);
}

#[test]
fn an_answer_streams_into_the_conversation() {
    for (name, size) in [("streaming_80x24", NORMAL), ("streaming_40x12", SMALL)] {
        let mut state = full(size, Vec::new());
        scenery::streaming(&mut state, "Two places **do**:\n\n- the book\n- the `READ");
        check(name, &state, size);
    }
}

#[test]
fn a_prompt_waits_in_its_dock() {
    for (name, size) in [("docked_80x24", NORMAL), ("docked_40x12", SMALL)] {
        let mut state = full(size, vec![asks()]);
        state.composer.editor = Editor::with_text(Shape::Page, "While it runs, I would like to");
        check(name, &state, size);
    }
}

#[test]
fn an_open_prompt_shows_all_that_would_happen() {
    for (name, size) in [
        ("opening_80x24", NORMAL),
        ("opening_120x40", LARGE),
        ("opening_40x12", SMALL),
        ("opening_40x10", SMALLEST),
    ] {
        let mut state = full(size, vec![asks()]);
        open(&mut state, opening);
        check(name, &state, size);
    }
    let mut state = full(NORMAL, vec![asks()]);
    open(&mut state, armed);
    check_styled("armed_80x24_styled", &state, NORMAL);
}

#[test]
fn the_full_view_shows_the_arguments_too() {
    for (name, size) in [("full_80x24", NORMAL), ("full_40x12", SMALL)] {
        let mut state = full(size, vec![asks()]);
        open(&mut state, armed);
        let prompt = state.prompts.queue[0].clone();
        state.overlay = Some(Overlay::Full(Full::new(prompt)));
        check(name, &state, size);
    }
}

#[test]
fn a_question_shows_its_options_and_the_free_text() {
    for (name, size) in
        [("question_80x24", NORMAL), ("question_120x40", LARGE), ("question_40x12", SMALL)]
    {
        let mut state = full(size, vec![questions()]);
        open(&mut state, armed);
        let turn = state.conversation.turns.latest().unwrap().state().unwrap();
        let call = turn.tool_calls.iter().next().unwrap();
        let mut form = Form::new(&call.arguments);
        form.move_by(1);
        form.toggle();
        state.prompts.forms.insert(call.id.clone(), form);
        check(name, &state, size);
    }
}

#[test]
fn overlays_lie_in_the_middle() {
    let small = |overlay: Overlay, name: &str| {
        let mut state = full(NORMAL, vec![worked(), asks()]);
        state.overlay = Some(overlay);
        check(name, &state, NORMAL);
    };
    let contexts = full(NORMAL, Vec::new()).contexts();
    small(Overlay::Help(Help { contexts, scroll: 3 }), "help_80x24");
    let about = About::Delete(["s-done", "s-fork"].map(SessionId::from).to_vec());
    small(Overlay::Confirm(Confirm { about, arming: Arming::Armed }), "delete_80x24");
    small(Overlay::Confirm(Confirm { about: About::Quit, arming: Arming::Armed }), "quit_80x24");
    small(Overlay::Waiting(Waiting::default()), "waiting_80x24");
    let blocks = vec!["cargo test\ncargo doc".to_owned(), "fn main() {}".to_owned()];
    small(Overlay::Codes(Codes { blocks }), "codes_80x24");
    let prompt = full(NORMAL, vec![asks()]).prompts.queue[0].clone();
    let field = Editor::with_text(Shape::Line, "write the log into the folder");
    small(Overlay::Reason(Reason { prompt, field }), "reason_80x24");
    let mut state = full(SMALL, vec![worked()]);
    state.overlay = Some(Overlay::Help(Help { contexts, scroll: 0 }));
    check("help_40x12", &state, SMALL);
}

#[test]
fn the_composer_grows_to_a_third_and_shows_pasted_blocks() {
    let mut state = full(NORMAL, vec![worked()]);
    let text = (1..=12).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    state.composer.editor = Editor::with_text(Shape::Page, &text);
    let _edited = state.composer.editor.paste(&"pasted\n".repeat(214));
    check("composer_80x24", &state, NORMAL);
}

#[test]
fn toasts_and_what_is_new_leave_the_last_row_of_the_conversation_free() {
    let mut state = full(NORMAL, vec![worked()]);
    let now = Duration::from_secs(1);
    state.status.toast(Tone::Plain, "Copied to the terminal's clipboard", now);
    let why = "The draft could not be saved: no space left on the device. It is kept in memory.";
    state.status.toast(Tone::Problem, why, now);
    let first = state.items().first().unwrap().id;
    state.conversation.pin(crate::tui::state::conversation::Place {
        item: first,
        at: crate::tui::state::conversation::At::Row(0),
    });
    check("toasts_80x24", &state, NORMAL);
    state.status.toasts.clear();
    state.conversation.new_below = 3;
    check_styled("new_below_80x24_styled", &state, NORMAL);
}

#[test]
fn below_its_smallest_size_a_notice_stands_in_place_of_the_program() {
    let size = Size { width: 30, height: 4 };
    check("too_small_30x4", &full(size, vec![worked()]), size);
    let size = Size { width: 20, height: 5 };
    check("smallest_20x5", &full(size, vec![worked(), asks()]), size);
}

#[test]
fn without_colours_the_focus_and_the_cursor_are_seen_by_attributes() {
    let mut state = full(NORMAL, vec![worked()]);
    state.focus = Focus::List;
    let theme = Theme::built_in(Ground::Dark, Depth::None).unwrap();
    let buffer = painted(&state, NORMAL, &mut scenes::cache(), &theme);
    let reversed = |x: u16, y: u16| buffer[(x, y)].modifier.contains(Modifier::REVERSED);
    let rows = (0..NORMAL.height).filter(|row| (1..23).all(|column| reversed(column, *row)));
    assert_eq!(rows.collect::<Vec<_>>(), [3], "the row of the session under the cursor");
    let title = (0..NORMAL.width).filter(|column| reversed(*column, 0));
    assert_eq!(title.collect::<Vec<_>>(), (2..12).collect::<Vec<_>>(), "the title of the list");
    let plain =
        buffer.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset));
    assert!(plain);
}

#[test]
fn a_wide_character_that_an_overlay_cuts_is_not_drawn() {
    let size = Size { width: 90, height: 9 };
    for (id, title) in
        [("s-0", "漢字漢字漢字"), ("s-1", "a漢字漢字漢字"), ("s-2", "\u{600}\u{600}\u{600}\u{1b}x")]
    {
        let mut state = scenes::state(size);
        state.list.put(&Arc::new(scenery::entry(id, title, scenes::at("10:00:00"))));
        let contexts = state.contexts();
        state.overlay = Some(Overlay::Help(Help { contexts, scroll: 0 }));
        let buffer = drawn(&state, size, &mut scenes::cache());
        let edge = (0..size.height).map(|y| buffer[(7, y)].symbol());
        assert!(edge.skip(1).take(7).all(|symbol| symbol == "│"));
        let cut = (0..size.height).any(|y| {
            (0..7).any(|x| {
                let reach = unicode_width::UnicodeWidthStr::width(buffer[(x, y)].symbol());
                usize::from(x) + reach > 7
            })
        });
        assert!(!cut, "{title}");
    }
}

#[test]
fn what_waits_to_be_sent_stands_above_the_text() {
    let texts = ["First the store.", "Then\nthe tests.", "And \u{1b}[31mred\u{1b}[0m ends", "Last"];
    let waits = |count: usize, held: bool| {
        let texts = texts.iter().take(count).zip(1..);
        let message = |(text, number): (&&str, usize)| UnsentMessage {
            id: EventId::from(format!("e{number}")),
            text: (*text).to_owned(),
            held,
        };
        texts.map(message).collect::<Vec<_>>()
    };
    for (name, size, count) in
        [("unsent_80x24", NORMAL, 3), ("unsent_many_80x24", NORMAL, 4), ("unsent_40x12", SMALL, 4)]
    {
        let mut state = full(size, vec![worked()]);
        state.conversation.unsent = waits(count, count == 4);
        state.composer.editor = Editor::with_text(Shape::Page, "And one more");
        check(name, &state, size);
    }
}

#[test]
fn a_message_that_waits_is_edited_in_its_place() {
    for (name, size) in [("rewrite_80x24", NORMAL), ("rewrite_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        state.overlay = Some(Overlay::Rewrite(Rewrite {
            session: SessionId::from(scenes::SESSION),
            event: EventId::from("e1"),
            was: "First the store.".to_owned(),
            field: Editor::with_text(Shape::Page, "First the store.\nThen the tests."),
            safety: Safety::default(),
        }));
        check(name, &state, size);
    }
}

#[test]
fn before_something_is_sent_an_interrupted_turn_is_asked_about() {
    for (name, size) in [("interrupted_80x24", NORMAL), ("interrupted_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        let about = About::Interrupted(SessionId::from(scenes::SESSION));
        state.overlay = Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed }));
        check(name, &state, size);
    }
}

#[test]
fn what_is_put_away_has_a_view_of_its_own() {
    let mut state = full(NORMAL, vec![worked()]);
    let mut away = scenery::entry("s-away", "Last year's plans", scenes::at("10:00:00"));
    away.archived = true;
    state.list.put(&Arc::new(away));
    state.focus = Focus::List;
    state.list.show(Shown::Archived);
    check("archived_80x24", &state, NORMAL);
}

#[test]
fn a_line_stands_where_what_was_said_was_summed_up() {
    for (name, size) in [("divider_80x24", NORMAL), ("divider_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        let Page::Session { load: Load::Open { state: session, .. }, .. } =
            &state.conversation.page
        else {
            panic!("it is open")
        };
        let mut session = SessionState::clone(session);
        let fact = Compacted {
            compaction_id: "k1".into(),
            summary: "The watcher test is **flaky**: it waits 50 ms.".into(),
            first_kept_turn_id: TurnId::from(scenery::TURN),
        };
        session.turns.push(SessionTurn {
            id: TurnId::from(scenery::TURN),
            session_seq: 1,
            agent_id: "assistant".into(),
            model: scenes::model(),
            at: scenes::at("10:31:00"),
        });
        session.compactions.push(Compaction { fact, after_turns: 1 });
        state.conversation.turns.announce(&session);
        let mut folds = state.conversation.folds.clone();
        folds.toggle(&state.items().last().unwrap());
        if size == NORMAL {
            state.conversation.folds = folds;
        }
        state.focus = Focus::Timeline;
        check(name, &state, size);
    }
}

#[test]
fn the_event_view_shows_the_log_of_a_turn_and_each_event_whole() {
    let kinds = ["turn_created", "model_call_requested", "model_call_completed"];
    let line = |offset: u64| EventLine {
        offset,
        at: scenes::at("10:31:00"),
        kind: kinds[usize::try_from(offset % 3).unwrap()],
        model_call: (!offset.is_multiple_of(3)).then_some(offset / 3),
        tool: None,
    };
    let json = format!(
        "{{\n  \"type\": \"turn_created\",\n  \"text\": \"\u{202e}{}\"\n}}",
        "ab ".repeat(90)
    );
    let page = EventPage {
        what: TextOf::Request(3),
        text: Fetched::There(Arc::new(Paged::new(json))),
        scroll: 1,
    };
    for (name, size) in [("80x24", NORMAL), ("40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        let mut events = Events {
            turn: TurnId::from(scenery::TURN),
            lines: Fetched::There((1..=40).map(line).collect()),
            selected: 19,
            page: None,
        };
        state.overlay = Some(Overlay::Events(events.clone()));
        check(&format!("events_{name}"), &state, size);
        events.page = Some(page.clone());
        state.overlay = Some(Overlay::Events(events));
        check(&format!("request_{name}"), &state, size);
    }
}

#[test]
fn before_something_is_destroyed_a_word_has_to_be_typed() {
    for (name, size) in [("purge_80x24", NORMAL), ("purge_40x12", SMALL)] {
        let mut state = full(size, vec![worked()]);
        let sessions = ["s-done", "s-fork"].map(SessionId::from).to_vec();
        let field = Editor::with_text(Shape::Line, "pur");
        state.overlay = Some(Overlay::Purge(Purge { sessions, field }));
        check(name, &state, size);
    }
}
