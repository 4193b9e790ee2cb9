//! Texts that are being typed, as they are drawn.

use crate::base::text;
use crate::tui::editor::Editor;
use crate::tui::editor::rows::{Caret, Rows};
use crate::tui::line::Line;
use crate::tui::theme::Ui;

/// A text that is being typed, in rows of some width.
#[derive(Clone, Debug)]
pub struct Typed(Rows);

impl Typed {
    /// The rows of a text.
    #[must_use]
    pub fn new(editor: &Editor, cols: u16) -> Self {
        Self(editor.rows(usize::from(cols)))
    }

    /// How many rows there are; at least one.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.0.len()
    }

    /// Where the caret stands.
    #[must_use]
    pub fn caret(&self) -> Caret {
        self.0.caret()
    }

    /// As many rows as there are of `count`, from the row `first` on.
    pub fn lines(&self, first: usize, count: usize) -> impl Iterator<Item = Line> {
        let end = first.saturating_add(count).min(self.0.len());
        (first..end).map(|row| {
            let spans = self.0.spans(row).into_iter();
            spans.fold(Line::new(), |line, span| {
                line.with(&span.text, if span.is_chip { Ui::Chip } else { Ui::Plain })
            })
        })
    }

    /// The first of `shown` rows in sight, so that the caret is among them.
    #[must_use]
    pub fn first_row(&self, shown: usize) -> usize {
        let centred = self.caret().row.saturating_sub(shown / 2);
        centred.min(self.row_count().saturating_sub(shown))
    }
}

/// A text of one line, as much of it as there is room for, with the column of its caret.
#[must_use]
pub fn one_line(editor: &Editor, cols: u16) -> (String, u16) {
    /// Wider texts are broken; the row with the caret is drawn.
    const LINE_COLS: usize = 4_096;
    let rows = editor.rows(LINE_COLS);
    let caret = rows.caret();
    let text: String = rows.spans(caret.row).into_iter().map(|span| span.text).collect();
    let cols = usize::from(cols.max(1));
    let hidden = (caret.column + 1).saturating_sub(cols);
    let (mut passed, mut start) = (0, text.len());
    for cluster in text::clusters(&text) {
        if passed >= hidden {
            start = cluster.at;
            break;
        }
        passed += cluster.cols;
    }
    let shown = text.get(start..).unwrap_or_default();
    let column = caret.column.saturating_sub(passed);
    (text::truncate(shown, cols).into_owned(), u16::try_from(column).unwrap_or(u16::MAX))
}
