//! Going another way from an earlier place: a fork at a turn, or before a message that is written anew.

use crate::app::command::{Command, Draft};
use crate::base::id::{SessionId, TurnId};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::State;
use crate::tui::state::item::{Body, Part};
use crate::tui::update::{Effects, may_write, reading, session, tell};

/// Forks at the turn that has the focus.
pub(super) fn fork(state: &mut State, layout: &Layout, out: &mut Effects) {
    let Some(focus) = reading::focus(state, layout) else { return tell(state, "No turn is here") };
    let turn = state.conversation.turns.slot(&focus.turn).and_then(|slot| slot.state());
    if turn.is_some_and(|turn| turn.terminal.is_none()) {
        return tell(state, "A fork begins at a turn that has ended; this one has not");
    }
    begin(state, Some(focus.turn), Draft::default(), out);
}

/// Forks before the message that has the focus, with its text in the composer of the fork.
pub(super) fn edit(state: &mut State, layout: &Layout, out: &mut Effects) {
    let focus = reading::focus(state, layout);
    let item = focus.as_ref().and_then(|focus| state.items().find(focus));
    let (part, text) = match item {
        Some(item) => match item.body {
            Body::Message { message, .. } => (item.id.part, message.plain_text()),
            Body::Loading
            | Body::Damaged(_)
            | Body::Text { .. }
            | Body::Reasoning { .. }
            | Body::Call(_)
            | Body::Failure { .. }
            | Body::Divider(_)
            | Body::End(_) => return tell(state, "Only a message of yours can be edited"),
        },
        None => return tell(state, "No message is here"),
    };
    if part != Part::Input {
        return tell(state, "This was added to a turn that ran; a fork cannot begin within a turn");
    }
    let turns = &state.conversation.turns;
    let slot = focus.and_then(|focus| turns.slot(&focus.turn));
    let before = slot.and_then(|slot| turns.before(slot).next()).map(|slot| slot.id.clone());
    begin(state, before, Editor::with_text(Shape::Page, &text).draft(), out);
}

fn begin(state: &mut State, at: Option<TurnId>, draft: Draft, out: &mut Effects) {
    let Some(session) = state.session().cloned() else { return };
    if may_write(state) {
        out.push(Effect::App(Command::Fork { session, at, draft }));
    }
}

/// The fork is there. Who has gone elsewhere meanwhile stays there.
pub(super) fn forked(state: &mut State, of: &SessionId, fork: &SessionId, out: &mut Effects) {
    if state.session() == Some(of) && state.overlay.is_none() {
        session::open(state, fork, out);
        tell(state, "This is a fork; what it was made of is as it was");
    } else {
        tell(state, "The fork is in the list");
    }
}
