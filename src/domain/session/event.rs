//! What can happen in a session: the events of `spec/session-layer.md` section 5 and those that
//! arrive with schema version 2 (`design/sessions.md`).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::event::{Event, Fact, fields_of};
use crate::domain::json::{self, no_fields, strict};

/// The schema version of a session that holds nothing but the specification's own events.
pub const SESSION_SCHEMA_VERSION: u64 = 1;
/// The highest schema version that is read and written.
pub const SESSION_SCHEMA_VERSION_MAX: u64 = 2;

/// One line of a session log.
pub type SessionEvent = Event<SessionFact>;

/// What happened in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFact {
    /// The session began.
    Created(Arc<SessionCreated>),
    /// A turn was added.
    TurnAppended(TurnAppended),
    /// It was named.
    TitleChanged(TitleChanged),
    /// What follows needs a newer schema.
    SchemaUpgraded(SchemaUpgraded),
    /// Calls of a tool were allowed for the session.
    GrantAdded(GrantAdded),
    /// They no longer are.
    GrantRemoved(GrantRemoved),
    /// Older turns were summarised.
    Compacted(Compacted),
    /// It was put away, or taken out again.
    Archived(Archived),
}

/// How a session begins. Everything but the version is optional and, absent by default, leaves a
/// file that other implementations read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCreated {
    /// 1, or 2 in a session that was begun with newer events.
    pub schema_version: u64,
    /// Its first title.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub title: Option<String>,
    /// The absolute folder in which its tools run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub cwd: Option<String>,
    /// The session that it was forked or spawned from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub parent_session: Option<SessionId>,
    /// How many of its first turns a fork inherited.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub seed_length: Option<u64>,
    /// What it is, if it is not a conversation of a person's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub origin: Option<Origin>,
    /// How many agents stand between it and a person; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub delegation_depth: Option<u64>,
}

/// What a session is, if it is not a conversation of a person's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Origin {
    /// An agent started it.
    Subagent,
    /// It was started to run by itself.
    Job,
}

strict!(word: Origin);

/// A turn was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnAppended {
    /// The turn.
    pub turn_id: TurnId,
    /// Its place in the session, from 1.
    #[serde(deserialize_with = "place")]
    pub session_seq: u64,
    /// The agent that the turn was resolved to.
    pub agent_id: String,
    /// The model that it was resolved to.
    pub model: ModelDescriptor,
}

/// The session was named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleChanged {
    /// The name.
    pub title: String,
}

/// What follows needs a newer schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchemaUpgraded {
    /// The schema.
    pub schema_version: u64,
}

/// Calls of a tool were allowed for the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantAdded {
    /// The grant.
    pub grant_id: String,
    /// The tool.
    pub tool_id: String,
    /// Which of its calls; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub pattern: Option<String>,
}

/// A grant was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantRemoved {
    /// The grant.
    pub grant_id: String,
}

/// Older turns were summarised; the next turn's context begins with the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The compaction.
    pub compaction_id: String,
    /// The summary.
    pub summary: String,
    /// The first turn that the summary does not cover.
    pub first_kept_turn_id: TurnId,
}

/// The session was put away, or taken out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Whether it is put away.
    pub archived: bool,
}

impl Fact for SessionFact {
    type Id = SessionId;
    const ID_FIELD: &'static str = "sessionId";

    fn kind(&self) -> &'static str {
        match self {
            Self::Created(_) => "session_created",
            Self::TurnAppended(_) => "turn_appended",
            Self::TitleChanged(_) => "title_changed",
            Self::SchemaUpgraded(_) => "schema_upgraded",
            Self::GrantAdded(_) => "permission_grant_added",
            Self::GrantRemoved(_) => "permission_grant_removed",
            Self::Compacted(_) => "compacted",
            Self::Archived(_) => "archived",
        }
    }

    fn from_fields<'de, D: Deserializer<'de>>(
        kind: &str,
        fields: D,
    ) -> Result<Option<Self>, D::Error> {
        Ok(Some(match kind {
            "session_created" => Self::Created(Deserialize::deserialize(fields)?),
            "turn_appended" => Self::TurnAppended(Deserialize::deserialize(fields)?),
            "title_changed" => Self::TitleChanged(Deserialize::deserialize(fields)?),
            "schema_upgraded" => Self::SchemaUpgraded(Deserialize::deserialize(fields)?),
            "permission_grant_added" => Self::GrantAdded(Deserialize::deserialize(fields)?),
            "permission_grant_removed" => Self::GrantRemoved(Deserialize::deserialize(fields)?),
            "compacted" => Self::Compacted(Deserialize::deserialize(fields)?),
            "archived" => Self::Archived(Deserialize::deserialize(fields)?),
            _ => {
                no_fields(fields)?;
                return Ok(None);
            }
        }))
    }

    fn to_fields(&self) -> serde_json::Result<String> {
        match self {
            Self::Created(fact) => fields_of(fact),
            Self::TurnAppended(fact) => fields_of(fact),
            Self::TitleChanged(fact) => fields_of(fact),
            Self::SchemaUpgraded(fact) => fields_of(fact),
            Self::GrantAdded(fact) => fields_of(fact),
            Self::GrantRemoved(fact) => fields_of(fact),
            Self::Compacted(fact) => fields_of(fact),
            Self::Archived(fact) => fields_of(fact),
        }
    }

    fn unsupported_version(&self) -> Option<u64> {
        let version = match self {
            Self::Created(created) => created.schema_version,
            Self::SchemaUpgraded(upgraded) => upgraded.schema_version,
            Self::TurnAppended(_)
            | Self::TitleChanged(_)
            | Self::GrantAdded(_)
            | Self::GrantRemoved(_)
            | Self::Compacted(_)
            | Self::Archived(_) => return None,
        };
        let supported = SESSION_SCHEMA_VERSION..=SESSION_SCHEMA_VERSION_MAX;
        (!supported.contains(&version)).then_some(version)
    }
}

impl SessionFact {
    /// The lowest schema version that has this kind of fact.
    #[must_use]
    pub fn needs_version(&self) -> u64 {
        match self {
            Self::Created(_) | Self::TurnAppended(_) | Self::TitleChanged(_) => 1,
            Self::SchemaUpgraded(_)
            | Self::GrantAdded(_)
            | Self::GrantRemoved(_)
            | Self::Compacted(_)
            | Self::Archived(_) => 2,
        }
    }
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(de::Error::invalid_value(de::Unexpected::Unsigned(0), &"a place from 1")),
        place => Ok(place),
    }
}
