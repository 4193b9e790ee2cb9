//! Facts of sessions in as few words as a test needs.

use crate::base::id::TurnId;
use crate::domain::session::event::{
    Archived, Compacted, GrantAdded, GrantRemoved, SESSION_SCHEMA_VERSION, SchemaUpgraded,
    SessionCreated, SessionFact, TitleChanged, TurnAppended,
};
use crate::testing::fact::model;

/// The header of a plain session.
#[must_use]
pub fn header() -> SessionCreated {
    SessionCreated { schema_version: SESSION_SCHEMA_VERSION, ..SessionCreated::default() }
}

/// `turn_appended` at this place.
#[must_use]
pub fn appended(session_seq: u64, turn: &str) -> SessionFact {
    SessionFact::TurnAppended(TurnAppended {
        turn_id: TurnId::from(turn),
        session_seq,
        agent_id: "assistant".into(),
        model: model(),
    })
}

/// `title_changed`.
#[must_use]
pub fn titled(title: &str) -> SessionFact {
    SessionFact::TitleChanged(TitleChanged { title: title.into() })
}

/// `schema_upgraded`.
#[must_use]
pub fn upgraded(schema_version: u64) -> SessionFact {
    SessionFact::SchemaUpgraded(SchemaUpgraded { schema_version })
}

/// `permission_grant_added` for every call of the shell.
#[must_use]
pub fn granted(grant_id: &str) -> SessionFact {
    let (grant_id, tool_id) = (grant_id.into(), "shell".into());
    SessionFact::GrantAdded(GrantAdded { grant_id, tool_id, pattern: None })
}

/// `permission_grant_removed`.
#[must_use]
pub fn revoked(grant_id: &str) -> SessionFact {
    SessionFact::GrantRemoved(GrantRemoved { grant_id: grant_id.into() })
}

/// `compacted` up to this turn.
#[must_use]
pub fn compacted(compaction_id: &str, first_kept_turn: &str) -> SessionFact {
    SessionFact::Compacted(Compacted {
        compaction_id: compaction_id.into(),
        summary: "They looked at the watcher.".into(),
        first_kept_turn_id: TurnId::from(first_kept_turn),
    })
}

/// `archived`.
#[must_use]
pub fn archived(archived: bool) -> SessionFact {
    SessionFact::Archived(Archived { archived })
}
