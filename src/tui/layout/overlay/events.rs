//! The event view: only the rows that are in sight are made.

use ratatui::layout::Position;

use super::Place;
use crate::app::command::TextOf;
use crate::app::notice::EventLine;
use crate::app::paged::Paged;
use crate::tui::line::{Line, wrapped};
use crate::tui::rows::events;
use crate::tui::state::overlay::{EventPage, Events, Fetched};
use crate::tui::theme::Ui;

pub(super) fn lay(mut place: Place<'_>, view: &Events) {
    match (&view.page, &view.lines) {
        (Some(EventPage { what, text: Fetched::There(text), scroll }), _) => {
            page(place, &title(*what), text, *scroll);
        }
        (Some(EventPage { what, text: Fetched::Failed(why), .. }), _) => {
            place.note(&title(*what), why);
        }
        (None, Fetched::Failed(why)) => place.note("Events", why),
        (Some(EventPage { text: Fetched::Asked, .. }), _) | (None, Fetched::Asked) => {
            place.note("Events", "Reading…");
        }
        (None, Fetched::There(lines)) => list(place, lines, view.selected),
    }
}

fn title(what: TextOf) -> String {
    match what {
        TextOf::Event(offset) => format!("Event {offset}"),
        TextOf::Request(call) => format!("Request of call {call}"),
    }
}

fn list(mut place: Place<'_>, lines: &[EventLine], selected: usize) {
    let (cols, rows) = (usize::from(place.cols()), place.rows_max());
    let selected = selected.min(lines.len().saturating_sub(1));
    let first = selected.saturating_sub(rows / 2).min(lines.len().saturating_sub(rows));
    let in_sight = lines.iter().enumerate().skip(first).take(rows);
    let state = place.state;
    let drawn: Vec<Line> =
        in_sight.map(|(at, line)| events::line(state, line, at == selected, cols)).collect();
    let in_sight = drawn.len();
    let hints = events::list_hints(state, lines.get(selected));
    let rect = place.frame(&format!("Events · {} of {}", selected + 1, lines.len()), drawn, hints);
    place.scrolls((lines.len(), in_sight));
    let row = u16::try_from(selected - first).unwrap_or(0);
    place.layout.drawn.caret = Some(Position { x: rect.x + 1, y: rect.y + 1 + row });
}

/// The lines of a text from `scroll` on; on a narrow screen each may take several rows.
fn page(mut place: Place<'_>, title: &str, text: &Paged, scroll: usize) {
    let (cols, rows) = (usize::from(place.cols()), place.rows_max());
    let scroll = scroll.min(text.len().saturating_sub(1));
    let mut drawn: Vec<Line> = Vec::new();
    let mut whole = 0;
    for line in text.from(scroll) {
        let line = wrapped(line, Ui::Plain, cols);
        if drawn.len() + line.len() <= rows {
            whole += 1;
        }
        drawn.extend(line);
        if drawn.len() >= rows {
            break;
        }
    }
    drawn.truncate(rows);
    let in_sight = whole.max(1);
    let place_in = format!("{}–{} of {} ", scroll + 1, scroll + in_sight, text.len());
    let hints = Line::of(&place_in, Ui::Caution).with_line(events::text_hints(place.state));
    place.frame(title, drawn, hints);
    place.scrolls((text.len(), in_sight));
}

impl Place<'_> {
    fn note(&mut self, title: &str, text: &str) {
        let lines = wrapped(text, Ui::Muted, usize::from(self.cols()));
        let lines = lines.into_iter().take(self.rows_max()).collect();
        let hints = events::note_hints(self.state);
        self.frame(title, lines, hints);
    }

    fn scrolls(&mut self, (rows, rows_in_sight): (usize, usize)) {
        if let Some(area) = &mut self.layout.overlay {
            area.rows = rows;
            area.rows_in_sight = rows_in_sight;
        }
    }
}
