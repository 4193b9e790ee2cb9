//! Writes that the disk does not take: trying them again, and giving them up.

use crate::app::command::{Command, StalledWish};
use crate::store::coordinate::Stall;
use crate::tui::effect::Effect;
use crate::tui::state::State;
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::status::StallEnd;
use crate::tui::update::{Effects, overlay, problem, tell};

/// What the disk has not taken is something else now.
pub(super) fn changed(state: &mut State, stalls: Vec<Stall>, out: &mut Effects) {
    let before = &state.status.stalls.list;
    let over = stalls.is_empty() && !before.is_empty();
    let news = stalls.iter().find(|stall| !before.iter().any(|it| it.why == stall.why));
    let news = news.map(|stall| format!("The disk does not take what is written: {}", stall.cause));
    state.status.stalls.change(stalls, state.now.elapsed);
    if let Some(news) = news {
        problem(state, news);
    }
    if over {
        if matches!(&state.overlay, Some(Overlay::Confirm(Confirm { about: About::GiveUp, .. }))) {
            overlay::close(state, out);
        }
        match std::mem::take(&mut state.status.stalls.end) {
            StallEnd::Written => tell(state, "The disk takes what is written again"),
            StallEnd::GivenUp => tell(state, "What was held is given up"),
        }
    }
}

/// Tries all of it again.
pub(super) fn retry(state: &mut State, out: &mut Effects) {
    if state.status.stalls.list.is_empty() {
        tell(state, "The disk has taken everything");
    } else {
        out.push(Effect::App(Command::Stalled(StalledWish::Retry)));
    }
}

/// Asks whether to give it up.
pub(super) fn ask(state: &mut State, out: &mut Effects) {
    if state.status.stalls.list.is_empty() {
        tell(state, "The disk has taken everything");
    } else {
        overlay::ask(state, About::GiveUp, out);
    }
}

/// Gives it up.
pub(super) fn give_up(state: &mut State, out: &mut Effects) {
    state.status.stalls.end = StallEnd::GivenUp;
    out.push(Effect::App(Command::Stalled(StalledWish::GiveUp)));
}
