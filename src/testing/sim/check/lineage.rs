//! What holds a session together: its turns go back to one another or to a summary, and a fork has the
//! turns of the session that it comes from.

use crate::base::id::TurnId;
use crate::domain::message::Message;
use crate::domain::session::event::{Compacted, SessionFact};
use crate::domain::turn::event::TurnContext;
use crate::store::session_repo::SessionKind;
use crate::testing::sim::check::Found;
use crate::testing::store::Kept;

/// Each turn goes back to the one before it, or begins with the summary that stands between them; no
/// summary is made again before it is used; nothing is put away twice; and what a fork has inherited
/// has ended, and is what the other session has.
pub(super) fn check_chains(found: &Found) {
    for session in found.sessions.values() {
        check_chain(session, found);
        check_inherited(session, found);
    }
}

fn check_chain(session: &Kept<SessionKind>, found: &Found) {
    let id = &session.state.id;
    let (mut before, mut summary, mut archived) = (None, None, false);
    for event in &session.events {
        match &event.fact {
            SessionFact::TurnAppended(turn) => {
                let context = &found.turn(&turn.turn_id).definition.context;
                let goes_on = goes_on(before, summary.take(), context);
                assert!(goes_on, "{} in {id} does not go on from {before:?}", turn.turn_id);
                before = Some(&turn.turn_id);
            }
            SessionFact::Compacted(compacted) => {
                assert_eq!(summary.replace(compacted), None, "{id} is summarised twice");
            }
            SessionFact::Archived(fact) => {
                assert_ne!(fact.archived, archived, "what is recorded in {id} is no news");
                archived = fact.archived;
            }
            SessionFact::Created(_)
            | SessionFact::TitleChanged(_)
            | SessionFact::SchemaUpgraded(_)
            | SessionFact::GrantAdded(_)
            | SessionFact::GrantRemoved(_) => {}
        }
    }
}

fn goes_on(before: Option<&TurnId>, summary: Option<&Compacted>, context: &TurnContext) -> bool {
    match (before, summary, context) {
        (None, None, TurnContext::Inline(messages)) => messages.is_empty(),
        (Some(before), None, TurnContext::Previous(context)) => context.previous_turn_id == *before,
        (Some(_), Some(compacted), TurnContext::Inline(messages)) => {
            let first = messages.first();
            first.is_some_and(|first| {
                matches!(first, Message::User(message)
                if message.plain_text().contains(&compacted.summary))
            })
        }
        _ => false,
    }
}

fn check_inherited(fork: &Kept<SessionKind>, found: &Found) {
    let length = usize::try_from(fork.state.header.seed_length.unwrap_or(0)).expect("a few");
    let parent = fork.state.header.parent_session.as_ref();
    let parent = parent.and_then(|parent| found.sessions.get(parent));
    for (place, turn) in fork.state.turns.iter().take(length).enumerate() {
        let turn = &turn.id;
        let has_ended = found.turn(turn).terminal.is_some();
        assert!(has_ended, "{turn} is shared and goes on");
        let theirs = parent.and_then(|it| it.state.turns.get(place)).map(|it| &it.id);
        assert!(parent.is_none() || theirs == Some(turn), "{turn} is not where it comes from");
    }
}
