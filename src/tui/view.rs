//! Draws a frame: the rows that `layout` found, and what stands around them. It reads the state and
//! remembers nothing.

mod canvas;
mod frame;
mod list;
mod sheet;
mod status;
mod timeline;
mod toasts;

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use crate::tui::layout::Layout;
use crate::tui::mark::Beat;
use crate::tui::state::State;
use crate::tui::state::settings::Motion;
use crate::tui::theme::Theme;
use canvas::Canvas;

/// Draws the frame of a layout into a buffer of its size, whatever is in it; gives the place of the
/// terminal's cursor, which input methods and screen readers follow.
#[must_use]
pub fn view(
    state: &State,
    layout: &Layout,
    theme: &Theme,
    buffer: &mut Buffer,
) -> Option<Position> {
    buffer.reset();
    let mut canvas = Canvas { buffer, theme, beat: beat(state) };
    if layout.drawn.screen.area.is_empty() {
        frame::too_small(&mut canvas);
        return None;
    }
    frame::draw(&mut canvas, state, layout);
    if let Some(area) = &layout.list {
        list::draw(&mut canvas, state, layout, area);
    }
    if let Some(area) = &layout.timeline {
        timeline::draw(&mut canvas, state, layout, area);
    }
    if let Some(area) = &layout.prompt {
        canvas.lines(area.rect, &layout.drawn.prompt);
    }
    if let Some(area) = &layout.composer {
        canvas.lines(area.rect, &layout.drawn.composer);
    }
    status::draw(&mut canvas, state, layout.drawn.screen.status);
    toasts::draw(&mut canvas, state, layout);
    if let Some(sheet) = &layout.drawn.overlay {
        sheet::draw(&mut canvas, sheet);
    }
    layout.drawn.caret
}

fn beat(state: &State) -> Beat {
    match state.settings.motion {
        Motion::Reduced => Beat::Still,
        // Four frames are a turn.
        Motion::Full => Beat::Frame(u8::try_from(state.spinner_frame() % 4).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests;
