//! Rows, their places in the source and back.

use proptest::prelude::*;

use super::*;
use crate::base::sanitize::hostile;
use crate::tui::rich::markdown;

fn drawn(line: &Line) -> String {
    line.spans().iter().map(|span| span.text.as_ref()).collect()
}

/// A head, a text, a note and another text.
fn rows(text: &str, other: &str, width: u16) -> Rows {
    let mut rows = Rows::default();
    rows.lines([Line::new(), Line::of("head", Ui::You)]);
    rows.text(markdown::rows(text, width, &Highlighter::new()), INDENT, Fade::Front);
    rows.line(Line::of("note", Ui::Muted));
    rows.text(plain::rows(other, width, Policy::Reading), 2 * INDENT, Fade::Back);
    rows
}

#[test]
fn rows_of_all_parts_follow_each_other() {
    let rows = rows("one two three", "four", 8);
    let all: Vec<String> = rows.range(0, 99).map(|line| drawn(&line)).collect();
    assert_eq!(all, ["", "head", "  one two", "  three", "note", "    four"]);
    assert_eq!((rows.len(), rows.get(6)), (6, None));
    let places: Vec<usize> = (0..6).map(|row| rows.source_of(row)).collect();
    assert_eq!(places, [0, 1, 2, 10, 16, 17]);
    assert_eq!(
        [0, 1, 2, 9, 10, 15, 16, 17, 99].map(|at| rows.row_at(at)),
        [0, 1, 2, 2, 3, 3, 4, 5, 5]
    );
}

proptest! {
    #[test]
    fn a_place_leads_back_to_its_row_and_to_its_text_at_another_width(
        text in hostile::text(),
        other in hostile::text(),
        widths in (1..60_u16, 1..60_u16),
    ) {
        let (rows, anew) = (rows(&text, &other, widths.0), rows(&text, &other, widths.1));
        let mut before = 0;
        for at in 0..rows.len() {
            let source = rows.source_of(at);
            prop_assert!(source >= before, "places never go back");
            before = source;
            let back = rows.row_at(source);
            prop_assert_eq!(rows.source_of(back), source);
            prop_assert!(anew.source_of(anew.row_at(source)) <= source);
            prop_assert!(anew.row_at(source) < anew.len());
        }
    }
}
