//! What a frame costs, and what stays where it is.

use std::sync::Arc;

use proptest::prelude::*;
use ratatui::layout::Size;

use super::{Layout, layout};
use crate::app::notice::TurnView;
use crate::base::id::TurnId;
use crate::domain::turn::live::DeltaKind;
use crate::tui::cache::{Cache, Work};
use crate::tui::line::Line;
use crate::tui::scenes::{self, Turn, call, text};
use crate::tui::state::State;
use crate::tui::state::conversation::{At, Place, Reading};

const SIZE: Size = Size { width: 100, height: 40 };

/// Words that all differ, in paragraphs.
fn words(from: usize, count: usize) -> String {
    let word =
        |number| if number % 23 == 0 { format!("w{number}.\n\n") } else { format!("w{number} ") };
    (from..from + count).map(word).collect()
}

fn turn(number: usize) -> Turn {
    Turn::begin(&format!("t-{number:06}"), "10:31:00", "Go on")
        .ask()
        .answer(vec![text(&words(number * 1_000, 300)), call("c", "read-file", "{}")])
        .result("c", "done", None)
        .ask()
        .answer(vec![text("Done.")])
        .complete()
}

/// A conversation of so many short turns with five items each.
fn conversation(turns: usize) -> State {
    let mut state = scenes::conversation(SIZE, Vec::new());
    let Ok(TurnView { offset, state: known, .. }) = turn(1).loaded(1).content else {
        panic!("the turn is whole");
    };
    for number in 0..turns {
        let id = TurnId::from(format!("t-{number:06}"));
        let mut turn = known.as_ref().clone();
        turn.id = id.clone();
        let view = TurnView { offset, state: Arc::new(turn), interrupted: None, running: false };
        let session_seq = number as u64 + 1;
        let content = Ok(view);
        let loaded = crate::app::notice::LoadedTurn { id, session_seq, content };
        let _folded = state.conversation.turns.load(loaded);
    }
    state
}

fn work_of(state: &State, cache: &mut Cache) -> Work {
    cache.work = Work::default();
    let _layout = layout(state, SIZE, cache);
    cache.work
}

#[test]
fn a_frame_of_a_hundred_thousand_items_costs_no_more_than_one_of_fifty() {
    let (few, many) = (conversation(10), conversation(20_000));
    assert_eq!(
        (few.conversation.turns.item_count(), many.conversation.turns.item_count()),
        (50, 100_000)
    );
    let place = |state: &State, number: usize| {
        let slot = &state.conversation.turns.slots()[number];
        let item = state.items().first_of(slot).unwrap().id;
        Reading::Pinned(Place { item, at: At::Row(0) })
    };
    for (in_few, in_many) in [(None, None), (Some(5), Some(9_999)), (Some(0), Some(0))] {
        let work = |state: &State, number: Option<usize>| {
            let mut state = state.clone();
            state.conversation.reading = number.map_or(Reading::Follow, |at| place(&state, at));
            let mut cache = scenes::cache();
            (work_of(&state, &mut cache), work_of(&state, &mut cache))
        };
        let (cold, warm) = work(&many, in_many);
        assert_eq!((cold, warm), work(&few, in_few));
        assert!(cold.items <= usize::from(SIZE.height), "{cold:?}");
        assert_eq!(warm.rows, 0, "a warm frame lays nothing out");
    }
}

#[test]
fn a_message_of_many_megabytes_costs_no_more_than_a_long_one_and_says_what_is_left_out() {
    for text in ["word ".repeat(4_000_000), "a line\n".repeat(3_000_000), "x".repeat(20_000_000)] {
        let mut state =
            scenes::conversation(SIZE, vec![Turn::begin("t-1", "10:31:00", &text).ask()]);
        state.conversation.pin(Place { item: state.items().first().unwrap().id, at: At::Row(0) });
        let mut cache = scenes::cache();
        let work = work_of(&state, &mut cache);
        assert!(work.rows < 16_000, "{work:?}");
        assert_eq!(work_of(&state, &mut cache).rows, 0, "and is kept");
    }
    let text = format!("first\n{}last\n", "a line\n".repeat(3_000_000));
    let mut state = scenes::conversation(SIZE, vec![Turn::begin("t-1", "10:31:00", &text).ask()]);
    let item = state.items().first().unwrap().id;
    let mut cache = scenes::cache();
    let mut shown = String::new();
    for row in (0..20_000).step_by(usize::from(SIZE.height) / 2) {
        state.conversation.pin(Place { item: item.clone(), at: At::Row(row) });
        let layout = layout(&state, SIZE, &mut cache);
        let spans = layout.drawn.timeline.iter().flat_map(Line::spans);
        shown.extend(spans.map(|span| span.text.as_ref()));
    }
    for part in ["first", "… 20.9 MB more · y copies all …", "last"] {
        assert!(shown.contains(part), "{part}");
    }
}

#[test]
fn a_token_lays_out_nothing_that_stands_already() {
    let mut state =
        scenes::conversation(SIZE, vec![turn(1), Turn::begin("t-2", "10:41:00", "And?").ask()]);
    scenes::run(&mut state, "t-2");
    let mut cache = scenes::cache();
    scenes::stream(&mut state, "t-2", DeltaKind::Text, &words(0, 300));
    work_of(&state, &mut cache);
    for number in 300..400 {
        scenes::stream(&mut state, "t-2", DeltaKind::Text, &words(number, 1));
        assert_eq!(work_of(&state, &mut cache).rows, 0);
    }
}

#[test]
fn an_answer_that_has_streamed_is_replaced_without_a_jump() {
    let said = words(1, 120);
    let asked = Turn::begin("t-2", "10:41:00", "And?").ask();
    let mut state = scenes::conversation(SIZE, vec![turn(1), asked.clone()]);
    scenes::run(&mut state, "t-2");
    let mut cache = scenes::cache();
    let (first, second) = said.split_at(said.len() / 2);
    for part in [first, second] {
        scenes::stream(&mut state, "t-2", DeltaKind::Text, part);
        let _layout = layout(&state, SIZE, &mut cache);
    }
    let mut streaming = layout(&state, SIZE, &mut cache).drawn.timeline;
    let _folded = state.conversation.turns.load(asked.answer(vec![text(&said)]).loaded(2));
    let mut settled = layout(&state, SIZE, &mut cache).drawn.timeline;
    // The last row says what was used, which is known by now.
    assert_ne!(streaming.pop(), settled.pop());
    assert_eq!(streaming, settled);
}

/// What is in the first row of the conversation.
fn top_line(layout: &Layout) -> String {
    let line = layout.drawn.timeline.first();
    line.map(Line::spans).into_iter().flatten().map(|span| span.text.as_ref()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_pinned_text_stays_at_the_top_across_resizes_and_new_output(
        row in 3..20_i64,
        sizes in prop::collection::vec((30..160_u16, 10..60_u16), 1..6),
        output in prop::collection::vec("[a-z ]{1,40}", 1..6),
    ) {
        let turns = (1..=6).map(turn).chain([Turn::begin("t-7", "10:41:00", "And?").ask()]);
        let mut state = scenes::conversation(SIZE, turns.collect());
        scenes::run(&mut state, "t-7");
        let item = state.items().find(&crate::tui::state::item::ItemId {
            turn: TurnId::from("t-000002"),
            part: crate::tui::state::item::Part::Block { call: 0, block: 0 },
        });
        let item = item.unwrap().id;
        state.conversation.pin(Place { item: item.clone(), at: At::Row(row) });
        let mut cache = scenes::cache();
        let before = layout(&state, SIZE, &mut cache);
        let top = before.timeline.as_ref().unwrap().top.clone().unwrap();
        prop_assert_eq!(&top.item, &item);
        // A blank row stands for the text below it.
        let first = top_line(&before);
        prop_assume!(!first.trim().is_empty());
        state.conversation.pin(Place { item: item.clone(), at: At::Source(top.source) });
        let again = layout(&state, SIZE, &mut cache);
        prop_assert_eq!(top_line(&again), first.as_str());
        for (width, height) in sizes {
            for said in &output {
                scenes::stream(&mut state, "t-7", DeltaKind::Text, said);
            }
            let size = Size { width, height };
            let shown = layout(&state, size, &mut cache);
            let found = shown.timeline.as_ref().unwrap().top.clone().unwrap();
            prop_assert_eq!(&found.item, &item);
            prop_assert!(found.source <= top.source);
            if let Some(word) = first.split_whitespace().next() {
                prop_assert!(top_line(&shown).contains(word), "{:?} has not {}", top_line(&shown), word);
            }
        }
        let again = layout(&state, SIZE, &mut cache);
        prop_assert_eq!(top_line(&again), first);
    }
}
