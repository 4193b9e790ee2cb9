//! The quotations, lists and items around a block, and what they put before its rows.

use super::super::{Role, RowBuilder, Style};

/// Nesting takes columns only as long as this many are left for text; deeper, a marker stands in the
/// text itself.
const TEXT_COLS_MIN: usize = 8;

#[derive(Clone, Copy)]
enum Kind {
    Quote,
    /// With the number of the next item, if it has numbers.
    List(Option<u64>),
    Item,
}

struct Frame {
    kind: Kind,
    /// Where the line begins that opens it.
    opening: usize,
    /// Whether nothing in it has been drawn yet.
    is_empty: bool,
    /// What stands before its first row, until that has been drawn.
    marker: Option<String>,
    /// The same where there is no room for it: it is drawn as text.
    loose: Option<String>,
    /// What stands before its other rows.
    rest: String,
    style: Style,
}

/// What stands before the rows of a container: the first one, and the others.
struct Before {
    marker: Option<String>,
    rest: String,
    role: Role,
}

/// The open containers, outermost first.
pub(super) struct Frames {
    stack: Vec<Frame>,
    /// How many of them are lists.
    lists: usize,
    /// How many, from the outermost, had room for their markers.
    roomy: usize,
    width: usize,
    /// The columns that they take.
    cols: usize,
}

impl Frames {
    pub(super) fn new(width: usize) -> Self {
        Self { stack: Vec::new(), lists: 0, roomy: 0, width, cols: 0 }
    }

    pub(super) fn is_top(&self) -> bool {
        self.stack.is_empty()
    }

    /// Whether the innermost container is a list at top level.
    pub(super) fn is_top_list(&self) -> bool {
        matches!(self.stack.as_slice(), [Frame { kind: Kind::List(_), .. }])
    }

    /// Something is drawn in the innermost container: whether it is the first thing there.
    pub(super) fn enter(&mut self) -> bool {
        let last = self.stack.last_mut();
        last.is_some_and(|frame| std::mem::replace(&mut frame.is_empty, false))
    }

    /// Something has been drawn in each container before.
    pub(super) fn enter_all(&mut self) {
        self.stack.iter_mut().for_each(|frame| frame.is_empty = false);
    }

    /// The columns that are left for text, at least one.
    pub(super) fn text_cols(&self) -> usize {
        self.width.saturating_sub(self.cols).max(1)
    }

    /// Where the lines begin that open the containers.
    pub(super) fn openings(&self) -> impl DoubleEndedIterator<Item = usize> {
        let drawn = self.stack.iter().filter(|frame| !matches!(frame.kind, Kind::List(_)));
        drawn.map(|frame| frame.opening)
    }

    /// The number of the open item of each open list; of a list between two items the next one.
    pub(super) fn numbers(&self) -> Vec<Option<u64>> {
        let open_item = |depth: usize| u64::from(depth + 1 < self.stack.len());
        let number = |(depth, frame): (usize, &Frame)| match frame.kind {
            Kind::List(next) => Some(next.map(|next| next.saturating_sub(open_item(depth)))),
            Kind::Quote | Kind::Item => None,
        };
        self.stack.iter().enumerate().filter_map(number).collect()
    }

    pub(super) fn push_quote(&mut self, opening: usize) {
        let bar = "▌ ".to_owned();
        let before = Before { marker: Some(bar.clone()), rest: bar, role: Role::Quote };
        self.push(Kind::Quote, opening, before);
    }

    pub(super) fn push_list(&mut self, opening: usize, first: Option<u64>) {
        self.lists += 1;
        let before = Before { marker: None, rest: String::new(), role: Role::Text };
        self.push(Kind::List(first), opening, before);
    }

    /// Opens an item of the innermost list.
    pub(super) fn push_item(&mut self, opening: usize) {
        let marker = match self.stack.last_mut().map(|frame| &mut frame.kind) {
            Some(Kind::List(Some(next))) => {
                let number = *next;
                *next = next.saturating_add(1);
                format!("{number}. ")
            }
            _ if self.lists % 2 == 1 => "• ".to_owned(),
            _ => "◦ ".to_owned(),
        };
        let rest = " ".repeat(marker.chars().count());
        let before = Before { marker: Some(marker), rest, role: Role::ListMark };
        self.push(Kind::Item, opening, before);
    }

    fn push(&mut self, kind: Kind, opening: usize, before: Before) {
        let Before { marker, rest, role } = before;
        let cols = rest.chars().count();
        let style = Style::from(role);
        let mut frame = Frame { kind, opening, is_empty: true, marker, loose: None, rest, style };
        if self.roomy == self.stack.len() && self.cols + cols + TEXT_COLS_MIN <= self.width {
            self.roomy += 1;
            self.cols += cols;
        } else {
            frame.rest.clear();
            frame.loose = frame.marker.take();
        }
        self.stack.push(frame);
    }

    /// The marker of the innermost container is not to be drawn.
    pub(super) fn drop_marker(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            (frame.marker, frame.loose) = (None, None);
        }
    }

    /// Closes the innermost container.
    pub(super) fn pop(&mut self) {
        if let Some(frame) = self.stack.pop() {
            self.roomy = self.roomy.min(self.stack.len());
            self.cols -= frame.rest.chars().count();
            self.lists -= usize::from(matches!(frame.kind, Kind::List(_)));
        }
    }

    /// Whether the innermost container has a marker that no row has drawn.
    pub(super) fn has_marker(&self) -> bool {
        self.stack.last().is_some_and(|frame| frame.marker.is_some() || frame.loose.is_some())
    }

    /// The markers that had no room, once.
    pub(super) fn take_loose(&mut self) -> String {
        self.stack.iter_mut().filter_map(|frame| frame.loose.take()).collect()
    }

    /// Begins a row; markers are drawn once.
    pub(super) fn begin_row(&mut self) -> RowBuilder {
        let mut row = RowBuilder::default();
        for frame in self.stack.iter_mut().take(self.roomy) {
            match frame.marker.take() {
                Some(marker) => row.push(&marker, frame.style),
                None => row.push(&frame.rest, frame.style),
            }
        }
        row
    }

    /// A row with nothing on it but the bars of quotations.
    pub(super) fn blank_row(&self) -> RowBuilder {
        let mut row = RowBuilder::default();
        for frame in self.stack.iter().take(self.roomy) {
            row.push(&frame.rest, frame.style);
        }
        row
    }
}
