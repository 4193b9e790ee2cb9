//! What the screen shows.

mod claims;
mod properties;
mod readme;
mod scenery;
mod shots;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Style};

use crate::tui::cache::Cache;
use crate::tui::layout::layout;
use crate::tui::scenes;
use crate::tui::state::State;
use crate::tui::theme::colour::Depth;
use crate::tui::theme::{Ground, Theme};
use crate::tui::view::view;

/// The screen of a state as text, with the caret drawn as `▏` where it stands on a blank cell.
fn screen(state: &State, size: Size) -> String {
    shown(&drawn(state, size, &mut scenes::cache()))
}

/// The cells of a state.
fn drawn(state: &State, size: Size, cache: &mut Cache) -> Buffer {
    let theme = Theme::built_in(Ground::Dark, Depth::Full).expect("the built-in theme is right");
    painted(state, size, cache, &theme)
}

/// The cells of a state in a theme.
fn painted(state: &State, size: Size, cache: &mut Cache, theme: &Theme) -> Buffer {
    let layout = layout(state, size, cache);
    let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
    let caret = view(state, &layout, theme, &mut buffer);
    if let Some(cell) = caret.and_then(|caret| buffer.cell_mut(caret))
        && cell.symbol() == " "
    {
        cell.set_symbol("▏");
    }
    buffer
}

/// Cells as text, row by row.
fn shown(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// The screen of a state as text, and below each row the letters of how its cells are drawn; the
/// legend follows.
fn styled(state: &State, size: Size) -> String {
    let buffer = drawn(state, size, &mut scenes::cache());
    let mut legend: Vec<Style> = vec![Style::reset()];
    let mut out = Vec::new();
    for (y, row) in (buffer.area.top()..).zip(shown(&buffer).lines()) {
        let cells = (buffer.area.left()..buffer.area.right()).map(|x| buffer[(x, y)].style());
        let letters: String = cells
            .map(|style| {
                let known = legend.iter().position(|known| *known == style);
                let at = known.unwrap_or_else(|| {
                    legend.push(style);
                    legend.len() - 1
                });
                if at == 0 { ' ' } else { char::from(b'a' + u8::try_from(at - 1).unwrap_or(25)) }
            })
            .collect();
        let letters = letters.trim_end();
        out.push(row.to_owned());
        if !letters.is_empty() {
            out.push(letters.to_owned());
        }
    }
    for (letter, style) in ('a'..).zip(legend.iter().skip(1)) {
        out.push(format!("{letter}: {}", written(*style)));
    }
    out.join("\n")
}

fn written(style: Style) -> String {
    let colour = |colour: Option<Color>| colour.map_or("-".to_owned(), |colour| colour.to_string());
    format!("{} on {} {:?}", colour(style.fg), colour(style.bg), style.add_modifier)
}
