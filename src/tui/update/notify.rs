//! Which events become a notice on the desktop: each once, and none about what the person looks at.

use crate::base::id::SessionId;
use crate::domain::question::ASK_HUMAN;
use crate::domain::session::event::Origin;
use crate::domain::turn::event::{TurnFact, TurnSuspended};
use crate::tui::effect::{Effect, Note, NoteAbout};
use crate::tui::state::State;
use crate::tui::state::prompts::{Prompt, PromptKind};
use crate::tui::state::settings::NotifyWhen;
use crate::tui::state::status::Window;
use crate::tui::update::Effects;

/// A prompt appeared in the session on screen.
pub(super) fn prompt(state: &State, prompt: &Prompt, out: &mut Effects) {
    let about = match prompt.kind {
        PromptKind::Permission => NoteAbout::Permission,
        PromptKind::Question => NoteAbout::Question,
    };
    if let Some(session) = state.session() {
        note(state, session, about, out);
    }
}

/// Something was recorded in a turn of a session. What waits in the session on screen is told by its
/// prompts.
pub(super) fn recorded(state: &State, session: &SessionId, fact: &TurnFact, out: &mut Effects) {
    let about = match fact {
        TurnFact::Completed(_) => Some(NoteAbout::Completed),
        TurnFact::Failed(_) => Some(NoteAbout::Failed),
        TurnFact::Suspended(suspended) if state.session() != Some(session) => {
            waits_for(state, session, suspended)
        }
        // A person ended it, or it goes on.
        TurnFact::Cancelled(_)
        | TurnFact::Suspended(_)
        | TurnFact::Created(_)
        | TurnFact::ModelCallRequested(_)
        | TurnFact::ModelStep(_)
        | TurnFact::ModelCallCompleted(_)
        | TurnFact::ModelCallFailed(_)
        | TurnFact::PermissionRequired(_)
        | TurnFact::PermissionClassified(_)
        | TurnFact::ClassificationFailed(_)
        | TurnFact::PermissionResolved(_)
        | TurnFact::InvocationRequested(_)
        | TurnFact::ToolProgress(_)
        | TurnFact::ToolResult(_)
        | TurnFact::ToolsExtended(_)
        | TurnFact::InputAdded(_) => None,
    };
    if let Some(about) = about {
        note(state, session, about, out);
    }
}

/// What a suspended turn waits for that its session did not wait for before.
fn waits_for(state: &State, session: &SessionId, suspended: &TurnSuspended) -> Option<NoteAbout> {
    let known = state.list.entry(session).map_or(&[][..], |entry| &entry.waiting);
    let is_new = |call: &_| !known.iter().any(|waiting| waiting.call == *call);
    if suspended.pending_permissions.iter().any(|pending| is_new(&pending.tool_call_id)) {
        return Some(NoteAbout::Permission);
    }
    let mut questions =
        suspended.pending_async_tools.iter().filter(|pending| pending.tool_name == ASK_HUMAN);
    questions.any(|pending| is_new(&pending.tool_call_id)).then_some(NoteAbout::Question)
}

fn note(state: &State, session: &SessionId, about: NoteAbout, out: &mut Effects) {
    let entry = state.list.entry(session);
    let origin = entry.and_then(|entry| entry.origin);
    let ended = matches!(about, NoteAbout::Completed | NoteAbout::Failed);
    // What a spawned agent comes to is the business of whoever spawned it.
    let is_wanted = !(ended && origin == Some(Origin::Subagent));
    let looked_at = state.status.window == Window::Focused && state.session() == Some(session);
    let wanted = match state.settings.notify {
        NotifyWhen::Unfocused => state.status.window == Window::Unfocused,
        NotifyWhen::Always => !looked_at,
        NotifyWhen::Never => false,
    };
    if is_wanted && wanted {
        let title = entry.and_then(|entry| entry.title.clone());
        out.push(Effect::Notify(Note { session: session.clone(), title, about }));
    }
}
