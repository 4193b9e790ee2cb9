//! What the session on screen waits for: its prompts, and whether their keys are live.
//!
//! The arming rule (`design/experience.md`, approvals and questions): a prompt never takes the focus
//! from a draft, and its keys are dead until it has been drawn and nobody has pressed a key for a
//! while. [`Stage`] is that rule; only an armed prompt has keys.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::app::command::Draft;
use crate::base::id::{ToolCallId, TurnId};
use crate::domain::question::ASK_HUMAN;
use crate::domain::turn::event::Classification;
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::tui::keymap::context::Context;
use crate::tui::state::Focus;
use crate::tui::state::form::{Form, Spot};
use crate::tui::state::keys::Keys;

/// A prompt that comes this soon after a key waits in the dock.
pub const BUSY_WITHIN: Duration = Duration::from_millis(700);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompts {
    /// What waits, in the order in which it is asked: what was put off comes last.
    pub queue: Vec<Prompt>,
    /// Where the first of them stands.
    pub stage: Stage,
    /// The forms of questions, as far as they are filled in.
    pub forms: BTreeMap<ToolCallId, Form>,
    /// Reasons for a denial that were begun.
    pub reasons: BTreeMap<ToolCallId, Draft>,
    /// What has to go to the disk, and when.
    pub saves: BTreeMap<ToolCallId, Duration>,
    /// What was answered and is not recorded yet, with its turn.
    pub answered: BTreeMap<ToolCallId, TurnId>,
    /// What the person put off, the latest last.
    pub put_off: Vec<ToolCallId>,
    /// Who had the focus before the open prompt.
    pub came_from: Option<Focus>,
    /// Whether the last frame had room to show the first prompt open.
    pub room: Room,
    /// The call that the person went to from another session; its prompt opens when it is known.
    pub wanted: Option<ToolCallId>,
}

/// Whether an open prompt finds room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// It does.
    #[default]
    Enough,
    /// It does not, so that all of it is shown in a view of its own.
    TooLittle,
}

/// A call that waits for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its turn.
    pub turn: TurnId,
    /// The call.
    pub call: ToolCallId,
    /// The name of its tool.
    pub name: String,
    /// What it waits for.
    pub kind: PromptKind,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// A decision.
    Permission,
    /// An answer.
    Question,
}

/// Where the first prompt stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// One line above the composer, until the person goes to it.
    #[default]
    Docked,
    /// Open, with dead keys.
    Opening {
        /// The call.
        call: ToolCallId,
        /// When it was first drawn.
        drawn_at: Option<Duration>,
    },
    /// Open, with live keys.
    Armed {
        /// The call.
        call: ToolCallId,
    },
}

impl Prompts {
    /// The first prompt, docked or open.
    #[must_use]
    pub fn first(&self) -> Option<&Prompt> {
        self.queue.first()
    }

    /// The prompt that is open.
    #[must_use]
    pub fn open(&self) -> Option<&Prompt> {
        match &self.stage {
            Stage::Docked => None,
            Stage::Opening { call, .. } | Stage::Armed { call } => self.prompt(call),
        }
    }

    /// The prompt whose keys are live.
    #[must_use]
    pub fn armed(&self) -> Option<&Prompt> {
        match &self.stage {
            Stage::Docked | Stage::Opening { .. } => None,
            Stage::Armed { call } => self.prompt(call),
        }
    }

    /// The form of the question whose keys are live.
    #[must_use]
    pub fn armed_form(&self) -> Option<&Form> {
        self.armed().and_then(|prompt| self.forms.get(&prompt.call))
    }

    /// The prompt of a call.
    #[must_use]
    pub fn prompt(&self, call: &ToolCallId) -> Option<&Prompt> {
        self.queue.iter().find(|prompt| prompt.call == *call)
    }

    /// When the keys of the open prompt become live if nothing is pressed before.
    #[must_use]
    pub fn armed_at(&self, keys: &Keys) -> Option<Duration> {
        match &self.stage {
            Stage::Docked | Stage::Armed { .. } | Stage::Opening { drawn_at: None, .. } => None,
            Stage::Opening { drawn_at: Some(drawn), .. } => Some(keys.armed_at(*drawn)),
        }
    }

    pub(super) fn contexts(&self) -> &'static [Context] {
        let Some(prompt) = self.armed() else { return &[Context::Global] };
        let spot = self.forms.get(&prompt.call).map(|form| form.spot);
        match (prompt.kind, spot) {
            (PromptKind::Permission, _) => &[Context::Permission, Context::Global],
            (PromptKind::Question, Some(Spot::Option(_)) | None) => {
                &[Context::Question, Context::Global]
            }
            (PromptKind::Question, Some(Spot::Text)) => {
                &[Context::Answer, Context::Editing, Context::Global]
            }
        }
    }

    pub(super) fn deadline(&self, keys: &Keys) -> Option<Duration> {
        self.saves.values().copied().chain(self.armed_at(keys)).min()
    }
}

/// What of a turn waits for a person, in source order.
///
/// At rest that is every outstanding call; while the turn runs, only what no classifier may still
/// allow.
pub fn outstanding(turn: &TurnState, pace: Pace) -> impl Iterator<Item = Prompt> {
    let manual = !turn.definition.config.auto_permission;
    turn.last_batch().iter().filter_map(move |call| {
        let kind = if call.awaits_permission() {
            let asks = pace == Pace::Rests || manual || is_left_to_a_person(call);
            asks.then_some(PromptKind::Permission)?
        } else if call.awaits_async_result() && call.name == ASK_HUMAN {
            PromptKind::Question
        } else {
            return None;
        };
        let (turn, call_id) = (turn.id.clone(), call.id.clone());
        Some(Prompt { turn, call: call_id, name: call.name.clone(), kind })
    })
}

/// Whether a turn is being advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It is.
    Runs,
    /// It is not.
    Rests,
}

/// Whether a classifier was asked and has not allowed the call.
fn is_left_to_a_person(call: &ToolCall) -> bool {
    let Some(permission) = &call.permission else { return false };
    match &permission.classified {
        Some((Classification::Deny | Classification::Defer, _)) => true,
        // The loop is about to record what follows from it.
        Some((Classification::Allow, _)) => false,
        None => permission.classification_failed.is_some(),
    }
}
