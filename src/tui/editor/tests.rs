//! What the editor promises: nothing typed is lost, nothing is cut inside a cluster, pastes are whole.

use super::*;
use proptest::prelude::*;

const COLS: usize = 40;

fn page(text: &str) -> Editor {
    Editor::with_text(Shape::Page, text)
}

/// A text with `|` for the caret.
fn marked(editor: &Editor) -> String {
    let (mut raw, caret) = (editor.raw(), editor.caret());
    raw.insert(caret, '|');
    raw
}

fn at(text: &str) -> Editor {
    let caret = text.find('|').expect("the test marks the caret");
    let mut editor = page(&text.replace('|', ""));
    editor.move_to(caret);
    editor
}

fn check_edit(before: &str, action: EditAction, after: &str) {
    let mut editor = at(before);
    editor.edit(action, COLS);
    assert_eq!(marked(&editor), after, "{action:?} in {before:?}");
}

#[test]
fn the_caret_moves_by_cluster_word_line_and_text() {
    check_edit("a👨\u{200d}👩\u{200d}👧|b", EditAction::CharLeft, "a|👨\u{200d}👩\u{200d}👧b");
    check_edit("a|e\u{301}\u{323}b", EditAction::CharRight, "ae\u{301}\u{323}|b");
    check_edit("a\n|b", EditAction::CharLeft, "a|\nb");
    check_edit("one two_3  |", EditAction::WordLeft, "one |two_3  ");
    check_edit("one| -- two", EditAction::WordRight, "one --| two");
    check_edit("one\n|two", EditAction::WordLeft, "|one\ntwo");
    check_edit("one\ntw|o\nx", EditAction::LineStart, "one\n|two\nx");
    check_edit("one\ntw|o\nx", EditAction::LineEnd, "one\ntwo|\nx");
    check_edit("one\ntw|o\nx", EditAction::TextStart, "|one\ntwo\nx");
    check_edit("one\ntw|o\nx", EditAction::TextEnd, "one\ntwo\nx|");
}

#[test]
fn deleting_takes_whole_clusters_words_and_lines() {
    check_edit("a\u{1F1E9}\u{1F1EA}|b", EditAction::DeleteBack, "a|b");
    check_edit("a|👍🏽b", EditAction::DeleteForward, "a|b");
    check_edit("a\n|b", EditAction::DeleteBack, "a|b");
    check_edit("say it now  |", EditAction::DeleteWordBack, "say it |");
    check_edit("say| it now", EditAction::DeleteWordForward, "say| now");
    check_edit("one\ntw|o", EditAction::KillToStart, "one\n|o");
    check_edit("o|ne\ntwo", EditAction::KillToEnd, "o|\ntwo");
    check_edit("o|\ntwo", EditAction::KillToEnd, "o|two");
    check_edit("|", EditAction::DeleteBack, "|");
}

#[test]
fn what_was_cut_comes_back_where_it_is_wanted() {
    let mut editor = at("one two|");
    editor.edit(EditAction::DeleteWordBack, COLS);
    editor.edit(EditAction::LineStart, COLS);
    editor.edit(EditAction::Yank, COLS);
    assert_eq!(marked(&editor), "two|one ");
    editor.edit(EditAction::DeleteBack, COLS);
    editor.edit(EditAction::Yank, COLS);
    assert_eq!(marked(&editor), "twtwo|one ", "a single character is deleted, not cut");
}

#[test]
fn typing_is_undone_word_by_word_and_comes_back() {
    let mut editor = Editor::default();
    for c in "say it ".chars() {
        editor.insert(&c.to_string());
    }
    editor.paste("twice");
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(editor.text());
        editor.edit(EditAction::Undo, COLS);
    }
    assert_eq!(seen, ["say it twice", "say it ", "say ", ""]);
    for _ in 0..4 {
        editor.edit(EditAction::Redo, COLS);
    }
    assert_eq!(marked(&editor), "say it twice|");
}

#[test]
fn a_cleared_text_comes_back_by_undo() {
    let mut editor = at("one\ntwo|");
    assert_eq!(editor.clear(), Edited::Changed);
    assert!(editor.is_empty());
    editor.edit(EditAction::Undo, COLS);
    assert_eq!(editor.text(), "one\ntwo");
}

#[test]
fn a_paste_is_one_edit_without_controls() {
    let mut editor = at("a|b");
    assert_eq!(editor.paste("\u{1b}[31mx\r\ny\tz\u{7f}\u{9b}"), Edited::Changed);
    assert_eq!(marked(&editor), "a[31mx\ny\tz|b");
    editor.edit(EditAction::Undo, COLS);
    assert_eq!(editor.text(), "ab");
}

#[test]
fn a_long_paste_is_a_chip_that_is_atomic_and_whole() {
    let long = (1..=214).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let mut editor = at("see | there");
    editor.paste(&long);
    assert_eq!(editor.raw().chars().count(), "see  there".len() + 1);
    assert_eq!(editor.text(), format!("see {long} there"));
    let rows = editor.rows(COLS);
    let shown: Vec<_> = rows.spans(0).into_iter().map(|span| (span.text, span.is_chip)).collect();
    let chip = "[Pasted 214 lines]".to_owned();
    assert_eq!(shown, [("see ".to_owned(), false), (chip, true), (" there".to_owned(), false)]);
    editor.edit(EditAction::DeleteWordBack, COLS);
    assert_eq!(editor.text(), "see  there");
    editor.edit(EditAction::Yank, COLS);
    assert_eq!(editor.text(), format!("see {long} there"));
}

#[test]
fn ten_lines_or_two_thousand_characters_are_still_text() {
    let ten = ["x"; 10].join("\n");
    for (paste, is_chip) in [
        (ten.clone(), false),
        (format!("{ten}\n"), false),
        (format!("{ten}\nx"), true),
        ("é".repeat(2_000), false),
        ("é".repeat(2_001), true),
    ] {
        let mut editor = Editor::default();
        editor.paste(&paste);
        assert_eq!(editor.raw().contains(chips::is_chip), is_chip, "{} bytes", paste.len());
        assert_eq!(editor.text(), paste);
    }
}

#[test]
fn what_comes_in_one_piece_or_fills_the_text_is_a_chip_and_whole() {
    let mut editor = page("");
    editor.insert(&"x".repeat(1_000_000));
    assert_eq!((editor.raw().chars().count(), editor.text().len()), (1, 1_000_000));
    let mut editor = page("");
    for _ in 0..1_000 {
        editor.paste(&"y".repeat(1_000));
    }
    assert!(editor.raw().len() < 30_000, "{} bytes are edited", editor.raw().len());
    editor.insert("typed");
    assert!(editor.raw().ends_with("typed"));
    assert_eq!(editor.text(), "y".repeat(1_000_000) + "typed");
}

#[test]
fn a_pasted_block_is_written_out_where_it_stands_and_taken_back_as_one_step() {
    let long = "line\n".repeat(214);
    let mut editor = page("see  there");
    editor.move_to(4);
    editor.paste(&long);
    for caret in [4, 4 + chips::CHIP_BYTES] {
        let mut editor = editor.clone();
        editor.move_to(caret);
        assert_eq!(editor.expand(), Expanded::Written);
        assert_eq!(marked(&editor), format!("see {long}| there"));
        assert_eq!(editor.edit(EditAction::DeleteBack, COLS), Edited::Changed);
        editor.edit(EditAction::Undo, COLS);
        editor.edit(EditAction::Undo, COLS);
        assert!(editor.raw().contains(chips::is_chip), "one step wrote it out");
        assert_eq!(editor.text(), format!("see {long} there"));
    }
    editor.move_to(0);
    assert_eq!(editor.expand(), Expanded::NoBlock);
    let mut huge = page("");
    huge.paste(&"x".repeat(20_001));
    assert_eq!(huge.expand(), Expanded::TooLong);
    assert_eq!(huge.text().len(), 20_001);
}

#[test]
fn a_draft_is_read_back_with_its_pastes_and_its_caret() {
    let mut editor = at("a|z");
    editor.paste(&"one\n".repeat(20));
    editor.insert(" and ");
    editor.paste(&"two\n".repeat(20));
    let draft = editor.draft();
    assert_eq!(draft.pastes.len(), 2);
    let again = Editor::with_draft(Shape::Page, &draft);
    assert_eq!((again.text(), again.caret()), (editor.text(), editor.caret()));
    assert_eq!(Editor::with_draft(Shape::Page, &again.draft()), again);
}

#[test]
fn a_draft_that_somebody_broke_is_still_read() {
    let pastes = vec!["x".to_owned()];
    let draft = Draft { text: "\u{10FFFF}\u{100007}é\u{100007}".into(), caret: 9, pastes };
    let editor = Editor::with_draft(Shape::Page, &draft);
    assert_eq!(editor.text(), "\u{10FFFF}xé\u{100007}");
    assert!(editor.raw().is_char_boundary(editor.caret()));
}

#[test]
fn our_own_characters_from_outside_come_out_as_they_came() {
    let mut editor = Editor::default();
    editor.insert("a\u{100000}b");
    editor.paste(&"\u{100001}\n".repeat(20));
    assert_eq!(editor.text(), format!("a\u{100000}b{}", "\u{100001}\n".repeat(20)));
}

#[test]
fn a_single_line_stays_one() {
    let mut editor = Editor::new(Shape::Line);
    editor.paste(&"a\tb\n".repeat(20));
    assert_eq!(editor.text(), "a b ".repeat(20));
}

#[test]
fn up_and_down_keep_the_column_over_wrapped_rows() {
    let mut editor = at("the quick brown| fox\nab\njumps over");
    let mut seen = Vec::new();
    for _ in 0..4 {
        editor.move_by_row(RowMove::Down, 10);
        seen.push(marked(&editor));
    }
    assert_eq!(
        seen,
        [
            "the quick brown fox\nab|\njumps over",
            "the quick brown fox\nab\njumps| over",
            "the quick brown fox\nab\njumps| over",
            "the quick brown fox\nab\njumps| over",
        ]
    );
    for _ in 0..2 {
        editor.move_by_row(RowMove::Up, 10);
    }
    assert_eq!(marked(&editor), "the quick brown| fox\nab\njumps over");
    assert_eq!(editor.move_by_row(RowMove::Up, 10), Moved::ToRow);
    assert_eq!(editor.move_by_row(RowMove::Up, 10), Moved::AtTheEdge);
    assert_eq!(marked(&editor), "the q|uick brown fox\nab\njumps over");
}

#[test]
fn the_caret_is_found_among_wide_characters_tabs_and_chips() {
    let caret = |text: &str| at(text).rows(10).caret();
    assert_eq!(caret("日本|語"), rows::Caret { row: 0, column: 4 });
    assert_eq!(caret("a\t|b"), rows::Caret { row: 0, column: 4 });
    assert_eq!(caret("a\n|"), rows::Caret { row: 1, column: 0 });
    assert_eq!(caret("the quick brown|"), rows::Caret { row: 1, column: 5 });
    let mut editor = Editor::default();
    editor.paste(&"x\n".repeat(20));
    editor.insert("y");
    assert_eq!(editor.rows(40).caret(), rows::Caret { row: 0, column: 18 });
}

#[test]
fn a_line_longer_than_the_model_can_jump_is_edited_at_its_end() {
    let mut editor = Editor::default();
    for _ in 0..328 {
        editor.paste(&"x".repeat(200));
    }
    editor.edit(EditAction::CharLeft, COLS);
    editor.insert("y");
    assert_eq!(editor.text(), format!("{}yx", "x".repeat(65_599)));
}

#[derive(Clone, Debug)]
enum Step {
    Insert(String),
    Paste(String),
    Edit(EditAction),
    MoveTo(usize),
}

const ACTIONS: [EditAction; 21] = [
    EditAction::ExpandPaste,
    EditAction::CharLeft,
    EditAction::CharRight,
    EditAction::WordLeft,
    EditAction::WordRight,
    EditAction::LineUp,
    EditAction::LineDown,
    EditAction::LineStart,
    EditAction::LineEnd,
    EditAction::TextStart,
    EditAction::TextEnd,
    EditAction::DeleteBack,
    EditAction::DeleteForward,
    EditAction::DeleteWordBack,
    EditAction::DeleteWordForward,
    EditAction::KillToStart,
    EditAction::KillToEnd,
    EditAction::Yank,
    EditAction::Undo,
    EditAction::Redo,
    EditAction::DeleteBack,
];

fn any_step() -> impl Strategy<Value = Step> {
    let text = prop_oneof![
        "[a-z \n]{0,6}",
        "\\PC{0,4}",
        Just("e\u{301}👩\u{200d}🚀\u{1F1E9}\u{1F1EA}".to_owned()),
        Just("\u{100000}\u{301}\u{202f}\u{0}".to_owned()),
    ];
    let long = (9..13usize).prop_map(|lines| "p\n".repeat(lines));
    prop_oneof![
        text.clone().prop_map(Step::Insert),
        prop_oneof![text, long].prop_map(Step::Paste),
        prop::sample::select(ACTIONS.to_vec()).prop_map(Step::Edit),
        (0..60usize).prop_map(Step::MoveTo),
    ]
}

fn take(editor: &mut Editor, step: &Step) {
    match step {
        Step::Insert(text) => {
            editor.insert(text);
        }
        Step::Paste(text) => {
            editor.paste(text);
        }
        Step::Edit(action) => {
            editor.edit(*action, 7);
        }
        Step::MoveTo(place) => editor.move_to(*place),
    }
}

proptest! {
    #[test]
    fn the_caret_never_stands_inside_a_piece(
        steps in prop::collection::vec(any_step(), 0..40), cols in 1..20usize,
    ) {
        let mut editor = Editor::default();
        for step in &steps {
            take(&mut editor, step);
            let (raw, caret) = (editor.raw(), editor.caret());
            prop_assert!(raw.is_char_boundary(caret));
            let again = Editor::with_draft(Shape::Page, &editor.draft());
            prop_assert_eq!(again.text(), editor.text());
            prop_assert_eq!(again.caret(), caret);
            let rows = editor.rows(cols);
            prop_assert!(rows.caret().row < rows.len());
            prop_assert!(rows.caret().column <= cols);
        }
    }

    #[test]
    fn undoing_everything_leads_back_and_redoing_forth(
        steps in prop::collection::vec(any_step(), 0..40),
    ) {
        let mut editor = Editor::default();
        let undoes = |step: &Step| {
            matches!(step, Step::Edit(EditAction::Undo | EditAction::Redo))
        };
        steps.iter().filter(|step| !undoes(step)).for_each(|step| take(&mut editor, step));
        let text = editor.text();
        while editor.edit(EditAction::Undo, COLS) == Edited::Changed {}
        prop_assert!(editor.is_empty());
        while editor.edit(EditAction::Redo, COLS) == Edited::Changed {}
        prop_assert_eq!(editor.text(), text);
    }

    #[test]
    fn moving_down_through_all_rows_and_up_again_ends_where_it_began(
        text in "[a-z日\t \n]{0,40}", cols in 2..12usize,
    ) {
        let mut editor = page(&text);
        editor.move_to(0);
        let rows = editor.rows(cols).len();
        let mut down = 0;
        while editor.move_by_row(RowMove::Down, cols) == Moved::ToRow {
            down += 1;
            prop_assert!(down <= rows);
        }
        prop_assert_eq!(editor.rows(cols).caret().row, rows - 1);
        while editor.move_by_row(RowMove::Up, cols) == Moved::ToRow {}
        prop_assert_eq!(editor.caret(), 0);
    }
}
