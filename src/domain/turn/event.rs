//! What can happen in a turn: the events of `design/turn-runtime.md` section 3, with exactly its
//! JSON names.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::{Execution, ToolDescriptor, TurnAgent};
use crate::domain::event::{Event, Fact, fields_of};
use crate::domain::json::{self, Json, no_fields, strict};
use crate::domain::message::{AssistantMessage, Message, UserMessage};
use crate::domain::turn::reference::MessageRef;
use crate::domain::turn::step::StepEvent;
use crate::domain::usage::TurnUsage;

/// The schema version of turn logs.
pub const TURN_SCHEMA_VERSION: u64 = 1;

/// The `code` of a turn that used up its model calls.
pub const MODEL_CALL_LIMIT: &str = "model-call-limit";

/// One line of a turn log.
pub type TurnEvent = Event<TurnFact>;

macro_rules! turn_facts {
    ($($kind:literal => $variant:ident($fields:ty): $doc:literal),+ $(,)?) => {
        /// What happened in a turn.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum TurnFact {
            $(#[doc = $doc] $variant($fields)),+
        }

        impl Fact for TurnFact {
            type Id = TurnId;
            const ID_FIELD: &'static str = "turnId";

            fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind),+ }
            }

            fn from_fields<'de, D: Deserializer<'de>>(
                kind: &str,
                fields: D,
            ) -> Result<Option<Self>, D::Error> {
                Ok(Some(match kind {
                    $($kind => Self::$variant(Deserialize::deserialize(fields)?),)+
                    _ => {
                        no_fields(fields)?;
                        return Ok(None);
                    }
                }))
            }

            fn to_fields(&self) -> serde_json::Result<String> {
                match self { $(Self::$variant(fields) => fields_of(fields)),+ }
            }

            fn unsupported_version(&self) -> Option<u64> {
                let Self::Created(created) = self else {
                    return None;
                };
                let version = created.schema_version;
                (version != TURN_SCHEMA_VERSION).then_some(version)
            }
        }
    };
}

turn_facts! {
    "turn_created" => Created(Arc<TurnCreated>): "The turn began.",
    "model_call_requested" => ModelCallRequested(ModelCallRequested): "The model is about to be called.",
    "model_step_event" => ModelStep(ModelStep): "A piece of a model's answer is whole.",
    "model_call_completed" => ModelCallCompleted(ModelCallCompleted): "A model answered.",
    "model_call_failed" => ModelCallFailed(ModelCallFailed): "A model call ended without an answer.",
    "tool_permission_required" => PermissionRequired(PermissionRequired): "A call may not run unasked.",
    "tool_permission_classified" => PermissionClassified(PermissionClassified): "A classifier has an opinion.",
    "tool_permission_classification_failed" => ClassificationFailed(ClassificationFailed): "A classifier has none.",
    "tool_permission_resolved" => PermissionResolved(PermissionResolved): "Somebody decided.",
    "tool_invocation_requested" => InvocationRequested(InvocationRequested): "A tool is about to run.",
    "tool_progress" => ToolProgress(ToolProgress): "A tool reported on its way.",
    "tool_result" => ToolResult(ToolResult): "A call has its result.",
    "tools_extended" => ToolsExtended(ToolsExtended): "A tool brought further tools.",
    "input_added" => InputAdded(InputAdded): "A person added a message to the running turn.",
    "turn_suspended" => Suspended(Arc<TurnSuspended>): "The turn rests until somebody outside acts.",
    "turn_completed" => Completed(TurnCompleted): "The turn ended with an answer.",
    "turn_failed" => Failed(TurnFailed): "The turn ended without an answer.",
    "turn_cancelled" => Cancelled(TurnCancelled): "The turn was ended from outside.",
}

/// How a turn begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnCreated {
    /// Always [`TURN_SCHEMA_VERSION`] in a log that is read.
    pub schema_version: u64,
    /// The session of the turn; none for a standalone turn. Required and nullable.
    #[serde(deserialize_with = "json::nullable")]
    pub session_id: Option<SessionId>,
    /// Who answers.
    pub agent: TurnAgent,
    /// What was said before.
    pub context: TurnContext,
    /// The message that the turn is about.
    pub input: Arc<UserMessage>,
    /// What it may do.
    pub config: TurnConfig,
    /// Kept on read, never made here.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub analytics: Option<Json>,
}

/// What was said before a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnContext {
    /// All that the previous turn knew, and its own transcript.
    Previous(ContextRef),
    /// These messages.
    Inline(Vec<Message>),
}

/// A reference to the turn before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ContextRef {
    /// The turn before.
    pub previous_turn_id: TurnId,
}

impl Serialize for TurnContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Previous(reference) => reference.serialize(serializer),
            Self::Inline(messages) => messages.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TurnContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RefOrMessages;
        impl<'de> de::Visitor<'de> for RefOrMessages {
            type Value = TurnContext;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a reference to the previous turn or a list of messages")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TurnContext, A::Error> {
                Deserialize::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(TurnContext::Previous)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<TurnContext, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))
                    .map(TurnContext::Inline)
            }
        }
        deserializer.deserialize_any(RefOrMessages)
    }
}

/// What a turn may do. Resolved when it is created, and final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TurnConfig {
    /// Whether a classifier may allow what would else be asked.
    pub auto_permission: bool,
    /// Whether there is a person to ask.
    pub human_available: bool,
    /// How many model calls may follow one input; at least 1.
    #[serde(deserialize_with = "positive")]
    pub max_model_calls: u64,
    /// How hard the model is to think.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// How hard a model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A model is about to be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallRequested {
    /// The number of the call in its turn, from 0.
    pub model_call_index: u64,
    /// What is new since the call before.
    pub request: ModelRequest,
}

/// What is new in a request since the one before, by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ModelRequest {
    /// The turn's context, on call 0 of a turn whose context is a reference.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub context_ref: Option<ContextRef>,
    /// The new messages.
    pub messages: Vec<MessageRef>,
    /// What the request is sent with; a JSON object.
    #[serde(deserialize_with = "object")]
    pub parameters: Json,
}

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelStep {
    /// The call.
    pub model_call_index: u64,
    /// The piece.
    pub event: StepEvent,
}

/// A model answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallCompleted {
    /// The call.
    pub model_call_index: u64,
    /// The answer.
    pub message: Arc<AssistantMessage>,
    /// Why it ended, in the provider's or our word (`stop`, `tool-calls`, `length`, …).
    pub finish_reason: String,
    /// What it used.
    pub usage: TurnUsage,
    /// Whatever else the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_metadata: Option<Json>,
}

/// A model call ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallFailed {
    /// The call.
    pub model_call_index: u64,
    /// What went wrong.
    pub error: String,
}

/// A call may not run unasked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequired {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its tool.
    pub tool_name: String,
    /// What is shown and approved (`domain::permission::PermissionRequest` in our own logs).
    pub request: Json,
    /// Why the checker could not answer, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub checker_error: Option<String>,
}

/// A classifier's opinion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionClassified {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The opinion.
    pub decision: Classification,
    /// Its grounds.
    pub reason: String,
}

/// What a classifier can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Classification {
    /// It may run.
    Allow,
    /// It should not.
    Deny,
    /// A person should say.
    Defer,
}

/// A classifier has no opinion on these calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassificationFailed {
    /// The calls.
    pub tool_call_ids: Vec<ToolCallId>,
    /// Why.
    pub error: String,
}

/// The one decision that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionResolved {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The decision.
    pub decision: Decision,
    /// Who decided.
    pub source: DecisionSource,
    /// The person's words, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub reason: Option<String>,
    /// How it came about.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub metadata: Option<Json>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Decision {
    /// The call may run.
    Allow,
    /// It may not.
    Deny,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum DecisionSource {
    /// The classifier, by the turn's configuration.
    Classifier,
    /// A person.
    Human,
    /// Nobody was there to ask.
    HumanUnavailable,
}

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvocationRequested {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool behind the name.
    pub tool_id: String,
    /// The name that the model used.
    pub tool_name: String,
    /// How its result comes about.
    pub execution: Execution,
    /// What it is given.
    pub input: Json,
}

/// A tool reported on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// How the result will come about.
    pub source: Execution,
    /// The report.
    pub progress: Json,
}

/// A call has its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its tool.
    pub tool_name: String,
    /// Where the result comes from.
    pub source: ResultSource,
    /// The result.
    pub result: ToolResultData,
}

/// Where a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum ResultSource {
    /// The tool, which the loop ran.
    Sync,
    /// Somebody outside.
    Async,
    /// The loop itself: a denial, an interruption, a call that cannot run.
    Runtime,
}

/// A tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ToolResultData {
    /// For the model.
    pub output: Json,
    /// Whether it is an error.
    pub is_error: bool,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub metadata: Option<Json>,
}

/// A tool brought further tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsExtended {
    /// The call whose result brought them.
    pub tool_call_id: ToolCallId,
    /// What they belong to.
    pub source: String,
    /// The tools; at least one.
    #[serde(deserialize_with = "non_empty")]
    pub tools: Vec<ToolDescriptor>,
}

/// A person added a message to the running turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputAdded {
    /// Its number in the turn, from 1.
    #[serde(deserialize_with = "positive")]
    pub input_index: u64,
    /// The message.
    pub message: Arc<UserMessage>,
}

/// What a resting turn waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnSuspended {
    /// Calls that nobody has decided on.
    pub pending_permissions: Vec<PendingPermission>,
    /// Calls that somebody outside will answer.
    pub pending_async_tools: Vec<PendingAsyncTool>,
    /// What the turn has used so far.
    pub usage: TurnUsage,
}

/// A call that nobody has decided on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct PendingPermission {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its tool.
    pub tool_name: String,
    /// What is shown and approved.
    pub request: Json,
}

/// A call that somebody outside will answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct PendingAsyncTool {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool behind the name.
    pub tool_id: String,
    /// The name that the model used.
    pub tool_name: String,
    /// What it was given.
    pub input: Json,
}

/// The turn ended with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompleted {
    /// The answer.
    pub output: Arc<AssistantMessage>,
    /// Why the last call ended.
    pub finish_reason: String,
    /// What the turn used.
    pub usage: TurnUsage,
}

/// The turn ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnFailed {
    /// What went wrong.
    pub error: String,
    /// A word for programs, such as [`MODEL_CALL_LIMIT`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub code: Option<String>,
    /// What the turn used.
    pub usage: TurnUsage,
}

/// The turn was ended from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnCancelled {
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub reason: Option<String>,
    /// What the turn used.
    pub usage: TurnUsage,
}

strict!(object: ContextRef, TurnConfig, ModelRequest, ToolResultData, PendingPermission, PendingAsyncTool);
strict!(word: ReasoningEffort, Classification, Decision, DecisionSource, ResultSource);

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(de::Error::invalid_value(de::Unexpected::Unsigned(0), &"a number from 1")),
        number => Ok(number),
    }
}

fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    let json = Json::deserialize(deserializer)?;
    if json.get().starts_with('{') {
        Ok(json)
    } else {
        Err(de::Error::custom("`parameters` is not an object"))
    }
}

fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolDescriptor>, D::Error> {
    let tools = Vec::deserialize(deserializer)?;
    if tools.is_empty() {
        return Err(de::Error::custom("`tools` is empty"));
    }
    Ok(tools)
}
