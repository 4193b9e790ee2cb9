//! Why an event cannot follow what a turn's log holds already: one variant per rule of
//! `design/turn-runtime.md` section 5, each naming the id that broke it.

use thiserror::Error;

use crate::base::id::{ToolCallId, TurnId};

/// A log that no run of a turn can have written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {number}: {refusal}")]
pub struct TurnCorruption {
    /// The first event that is refused, from 1; 1 for an empty log.
    pub number: usize,
    /// Why.
    #[source]
    pub refusal: TurnRefusal,
}

/// Why an event is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TurnRefusal {
    /// It breaks the life of the turn as a whole.
    #[error(transparent)]
    Life(#[from] LifeRefusal),
    /// It breaks the order of model calls.
    #[error(transparent)]
    Call(#[from] CallRefusal),
    /// It breaks the order of permissions.
    #[error(transparent)]
    Permission(#[from] PermissionRefusal),
    /// It breaks the order of tool runs.
    #[error(transparent)]
    Tool(#[from] ToolRefusal),
}

/// How an event breaks the life of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LifeRefusal {
    /// There is no event.
    #[error("the log is empty")]
    Empty,
    /// The first event is another.
    #[error("the first event is {0}, not turn_created")]
    NotCreated(&'static str),
    /// The turn is of a schema that no log of ours has.
    #[error("unsupported schema version {0}")]
    UnsupportedVersion(u64),
    /// The turn is created a second time.
    #[error("a second turn_created")]
    CreatedTwice,
    /// The event belongs to another turn.
    #[error("the event belongs to turn {found}, not to {expected}")]
    ForeignTurn {
        /// The turn of this log.
        expected: TurnId,
        /// The turn that the event names.
        found: TurnId,
    },
    /// The turn has ended.
    #[error("{0} after the turn has ended")]
    AfterEnd(&'static str),
    /// The snapshot is inherited, but there is no previous turn to inherit from.
    #[error("an inherited snapshot on an inline context")]
    InheritedInline,
    /// The snapshot is inherited from another turn than the context's.
    #[error("the snapshot is inherited from {from}, but the previous turn is {previous}")]
    InheritedElsewhere {
        /// Where the snapshot points.
        from: TurnId,
        /// Where the context points.
        previous: TurnId,
    },
    /// Something happens that has to wait until the open model call is settled.
    #[error("{0} while a model call is open")]
    CallOpen(&'static str),
    /// Something happens that has to wait until every tool call has a result.
    #[error("{kind} while tool call {call} has no result")]
    ToolOpen {
        /// What happens.
        kind: &'static str,
        /// The first call without a result.
        call: ToolCallId,
    },
    /// The turn completes without an answer of the model.
    #[error("turn_completed without a completed response")]
    NoResponse,
    /// The turn completes although the last answer calls tools.
    #[error("turn_completed although the last response has tool calls")]
    ResponseHasCalls,
    /// An added input has the wrong number.
    #[error("input {found} out of sequence; {expected} would be next")]
    InputIndex {
        /// The next number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// The turn is suspended although nothing is outstanding.
    #[error("turn_suspended with nothing outstanding")]
    NothingOutstanding,
    /// The suspension names other permissions than the outstanding ones.
    #[error("turn_suspended names other permissions than the outstanding ones")]
    PermissionsDiffer,
    /// The suspension names other async tools than the outstanding ones.
    #[error("turn_suspended names other async tools than the outstanding ones")]
    AsyncToolsDiffer,
}

/// How an event breaks the order of model calls.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallRefusal {
    /// The request has the wrong number.
    #[error("model call {found} out of order; {expected} would be next")]
    Index {
        /// The next number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// The turn has used up its calls.
    #[error("model call {index} is beyond the budget of {max} calls")]
    Budget {
        /// The call.
        index: u64,
        /// The budget.
        max: u64,
    },
    /// The references are not those that are due.
    #[error("model call {index} refers to [{found}]; due is [{expected}]")]
    References {
        /// The call.
        index: u64,
        /// What is due.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The context reference is not the one that is due.
    #[error("model call {index} has contextRef {found}; due is {expected}")]
    ContextRef {
        /// The call.
        index: u64,
        /// What is due.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The event is about a call that is not open.
    #[error("{kind} for model call {index}, which is not open")]
    NotOpen {
        /// The event.
        kind: &'static str,
        /// The call it names.
        index: u64,
    },
    /// A response uses the id of a tool call again.
    #[error("tool call id {0} is used twice")]
    ToolCallIdTwice(ToolCallId),
}

/// How an event breaks the order of permissions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PermissionRefusal {
    /// There is no such call.
    #[error("{kind} for unknown tool call {call}")]
    UnknownCall {
        /// The event.
        kind: &'static str,
        /// The call it names.
        call: ToolCallId,
    },
    /// The call was asked about before.
    #[error("a second permission requirement for tool call {0}")]
    RequiredTwice(ToolCallId),
    /// The call was started before it was asked about.
    #[error("a permission requirement for tool call {0} after its invocation")]
    RequiredAfterInvocation(ToolCallId),
    /// The call has its result.
    #[error("{kind} for tool call {call} after its result")]
    AfterResult {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// Nobody asked about the call.
    #[error("{kind} for tool call {call}, which needs no permission")]
    NotRequired {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// The call was decided on.
    #[error("{kind} for tool call {call} after its resolution")]
    AfterResolution {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// The call was classified before.
    #[error("a second classification of tool call {0}")]
    ClassifiedTwice(ToolCallId),
}

/// How an event breaks the order of tool runs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ToolRefusal {
    /// There is no such call.
    #[error("{kind} for unknown tool call {call}")]
    UnknownCall {
        /// The event.
        kind: &'static str,
        /// The call it names.
        call: ToolCallId,
    },
    /// The call was started before.
    #[error("a second invocation of tool call {0}")]
    InvokedTwice(ToolCallId),
    /// The call has its result.
    #[error("{kind} for tool call {call} after its result")]
    AfterResult {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// The event names another tool than the call.
    #[error("{kind} for tool call {call} names the tool {found}, not {expected}")]
    OtherTool {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
        /// The tool of the call.
        expected: String,
        /// The tool of the event.
        found: String,
    },
    /// The event has the wrong execution or source.
    #[error("{kind} for tool call {call} from the wrong source")]
    WrongSource {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// Nobody allowed the call.
    #[error("an invocation of tool call {0}, which is not allowed")]
    NotAllowed(ToolCallId),
    /// The call was never started.
    #[error("{kind} for tool call {call}, which was not invoked")]
    NotInvoked {
        /// The event.
        kind: &'static str,
        /// The call.
        call: ToolCallId,
    },
    /// Tools are added by a call that has no successful result.
    #[error("tools_extended by tool call {0}, which has no successful result")]
    NoSuccess(ToolCallId),
    /// A tool is added under a name that is in use.
    #[error("tools_extended with the name {0}, which is in use")]
    NameInUse(String),
}
