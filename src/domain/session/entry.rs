//! The index entry of a session: what the list shows, derived from the session's state and its
//! latest turn (`spec/session-layer.md` section 8, `design/sessions.md`).

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::brief;
use crate::domain::question::ASK_HUMAN;
use crate::domain::session::event::Origin;
use crate::domain::session::state::SessionState;
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::domain::turn::status::TurnStatus;

/// What the list shows of a session. Never a source of truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionIndexEntry {
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last event was recorded.
    pub updated_at: Timestamp,
    /// When somebody last did something in it; what the list is sorted by.
    #[serde(skip)]
    pub active_at: Timestamp,
    /// How many turns it has.
    pub turn_count: usize,
    /// The agent of the latest turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_agent_id: Option<String>,
    /// The model of the latest turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_model: Option<ModelDescriptor>,
    /// The latest turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_turn_id: Option<TurnId>,
    /// How the latest turn stands.
    pub latest_turn_status: LatestTurnStatus,
    /// Why only inspection, export and deletion work on it, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The folder in which its tools run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The session that it was forked or spawned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// What it is, if it is not a conversation of a person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Whether it is put away.
    pub archived: bool,
    /// What waits for a person in it.
    pub waiting: Vec<WaitingCall>,
    /// How many messages wait to be sent in it.
    pub unsent: usize,
    /// What went wrong when the last of them was to be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How the latest turn of a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LatestTurnStatus {
    /// There is no turn.
    None,
    /// The latest turn stands so.
    #[serde(untagged)]
    Turn(TurnStatus),
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingCall {
    /// Its turn.
    pub turn: TurnId,
    /// The call.
    pub call: ToolCallId,
    /// What it waits for.
    pub kind: WaitingKind,
    /// Since when.
    pub since: Timestamp,
    /// Its place among the calls of one answer.
    #[serde(skip)]
    pub place: usize,
    /// The name of its tool.
    #[serde(skip)]
    pub tool: String,
    /// What it wants, in one line.
    #[serde(skip)]
    pub wants: String,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitingKind {
    /// A decision.
    Permission,
    /// An answer.
    Question,
}

impl SessionIndexEntry {
    /// The entry of a session whose latest turn is `latest` (none if it has no turns).
    #[must_use]
    pub fn new(session: &SessionState, latest: Option<&TurnState>) -> Self {
        let turn = session.latest();
        Self {
            session_id: session.id.clone(),
            title: session.title.clone(),
            created_at: session.created_at,
            updated_at: session.updated_at,
            active_at: session.active_at(),
            turn_count: session.turns.len(),
            last_agent_id: turn.map(|turn| turn.agent_id.clone()),
            last_model: turn.map(|turn| turn.model.clone()),
            latest_turn_id: turn.map(|turn| turn.id.clone()),
            latest_turn_status: latest
                .map_or(LatestTurnStatus::None, |turn| LatestTurnStatus::Turn(turn.status())),
            error: None,
            cwd: session.header.cwd.clone(),
            parent_session: session.header.parent_session.clone(),
            origin: session.header.origin,
            archived: session.archived,
            waiting: latest.map(waiting_calls).unwrap_or_default(),
            unsent: 0,
            last_error: None,
        }
    }

    /// The entry of a session whose latest turn cannot be read: its own fields hold.
    #[must_use]
    pub fn with_damaged_turn(session: &SessionState, error: String) -> Self {
        let idle = LatestTurnStatus::Turn(TurnStatus::Idle);
        Self { error: Some(error), latest_turn_status: idle, ..Self::new(session, None) }
    }

    /// The entry of a session whose own log cannot be read; its times are those of its id.
    #[must_use]
    pub fn damaged(session_id: SessionId, made_at: Timestamp, error: String) -> Self {
        Self {
            session_id,
            title: None,
            created_at: made_at,
            updated_at: made_at,
            active_at: made_at,
            turn_count: 0,
            last_agent_id: None,
            last_model: None,
            latest_turn_id: None,
            latest_turn_status: LatestTurnStatus::None,
            error: Some(error),
            cwd: None,
            parent_session: None,
            origin: None,
            archived: false,
            waiting: Vec::new(),
            unsent: 0,
            last_error: None,
        }
    }

    /// Takes over what a newer look at the latest turn says.
    pub fn observe(&mut self, latest: &TurnState) {
        self.latest_turn_status = LatestTurnStatus::Turn(latest.status());
        self.waiting = waiting_calls(latest);
        self.error = None;
    }
}

/// What waits for a person in a turn, in source order.
#[must_use]
pub fn waiting_calls(turn: &TurnState) -> Vec<WaitingCall> {
    let calls = turn.last_batch().iter().enumerate();
    calls.filter_map(|(place, call)| waiting_call(turn, call, place)).collect()
}

fn waiting_call(turn: &TurnState, call: &ToolCall, place: usize) -> Option<WaitingCall> {
    let (kind, since) = if call.awaits_permission() {
        (WaitingKind::Permission, call.permission.as_ref()?.required_at)
    } else if call.awaits_async_result() && call.name == ASK_HUMAN {
        (WaitingKind::Question, call.invocation.as_ref()?.at)
    } else {
        return None;
    };
    let (tool, wants) = (call.name.clone(), brief::call(call));
    Some(WaitingCall {
        turn: turn.id.clone(),
        call: call.id.clone(),
        kind,
        since,
        place,
        tool,
        wants,
    })
}
