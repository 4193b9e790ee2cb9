//! What a turn runs with: the agent that was asked for, what it was resolved to, its model and tools.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::base::id::TurnId;
use crate::domain::json::{self, Derived, Json, object, strict};

/// A model of a provider, by the names that this program or its configuration gives them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct ModelDescriptor {
    /// The provider's name.
    pub provider: String,
    /// The model's name at that provider.
    pub model: String,
}

impl std::fmt::Display for ModelDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// The agent that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RequestedAgent {
    /// An agent by its id.
    ById(AgentById),
    /// An agent that is described on the spot, for one spawned turn.
    Inline(InlineAgent),
}

impl RequestedAgent {
    /// The agent with this id, as it is.
    #[must_use]
    pub fn by_id(agent_id: &str) -> Self {
        Self::ById(AgentById { agent_id: agent_id.to_owned(), overrides: None })
    }

    /// The id under which the turn is listed; `inline:<name>` for one described on the spot.
    #[must_use]
    pub fn agent_id(&self) -> String {
        match self {
            Self::ById(agent) => agent.agent_id.clone(),
            Self::Inline(agent) => format!("inline:{}", agent.inline.name),
        }
    }

    /// The model that was asked for, if any was.
    #[must_use]
    pub fn model(&self) -> Option<&ModelDescriptor> {
        match self {
            Self::ById(agent) => agent.overrides.as_ref().and_then(|wish| wish.model.as_ref()),
            Self::Inline(agent) => agent.inline.model.as_ref(),
        }
    }
}

/// An agent by its id, with what is to be different this time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentById {
    /// Which agent.
    pub agent_id: String,
    /// What is to be different from its definition.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub overrides: Option<AgentOverrides>,
}

/// What one turn changes about its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct AgentOverrides {
    /// Another model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub model: Option<ModelDescriptor>,
    /// Hints for the agent resolver, kept as they came.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub composition: Option<Json>,
}

/// The wrapper around an agent that is described on the spot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InlineAgent {
    /// The description.
    pub inline: InlineSpec,
}

/// An agent that is described on the spot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct InlineSpec {
    /// Its name; its id is `inline:<name>`.
    pub name: String,
    /// Its system prompt.
    pub instructions: String,
    /// Its model, else the default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub model: Option<ModelDescriptor>,
    /// The names of its tools, else the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub tools: Option<Vec<String>>,
    /// Hints for the agent resolver, kept as they came.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub composition: Option<Json>,
}

/// The fields of both forms of [`RequestedAgent`]; an id decides for the first form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedFields {
    #[serde(default, deserialize_with = "json::present")]
    agent_id: Option<String>,
    #[serde(default, deserialize_with = "json::present")]
    overrides: Option<AgentOverrides>,
    #[serde(default, deserialize_with = "json::present")]
    inline: Option<InlineSpec>,
}

impl<'de> Deserialize<'de> for RequestedAgent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer)
    }
}

impl Derived for RequestedAgent {
    fn derived<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RequestedFields { agent_id, overrides, inline } =
            Deserialize::deserialize(deserializer)?;
        match (agent_id, inline) {
            (Some(agent_id), _) => Ok(Self::ById(AgentById { agent_id, overrides })),
            (None, Some(inline)) => Ok(Self::Inline(InlineAgent { inline })),
            (None, None) => {
                Err(de::Error::custom("a requested agent has neither `agentId` nor `inline`"))
            }
        }
    }
}

/// How a tool's result comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "lowercase")]
pub enum Execution {
    /// The loop runs it and waits.
    Sync,
    /// Somebody else answers, later.
    Async,
}

/// A tool as the model sees it and as the loop knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ToolDescriptor {
    /// The tool behind the name, in `snake_case`.
    pub tool_id: String,
    /// The name that the model uses, in `kebab-case`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Json,
    /// How its result comes about.
    pub execution: Execution,
    /// Whether only a person can answer it.
    pub requires_human: bool,
}

/// Everything that the model gets besides the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedAgent {
    /// The agent's id.
    pub agent_id: String,
    /// The system prompt.
    pub system_prompt: Arc<str>,
    /// The model.
    pub model: ModelDescriptor,
    /// The tools.
    pub tools: Arc<[ToolDescriptor]>,
}

/// A snapshot that is not repeated: system prompt and tools are those of another turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InheritedAgent {
    /// The agent's id.
    pub agent_id: String,
    /// The model.
    pub model: ModelDescriptor,
    /// The turn whose snapshot holds here too; always the context's previous turn.
    pub inherited_from: TurnId,
}

/// What an agent was resolved to when its turn was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AgentSnapshot {
    /// Written out.
    Full(ResolvedAgent),
    /// By reference.
    Inherited(InheritedAgent),
}

impl AgentSnapshot {
    /// The agent's id.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        match self {
            Self::Full(agent) => &agent.agent_id,
            Self::Inherited(agent) => &agent.agent_id,
        }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &ModelDescriptor {
        match self {
            Self::Full(agent) => &agent.model,
            Self::Inherited(agent) => &agent.model,
        }
    }

    /// The tools, if they stand here.
    #[must_use]
    pub fn tools(&self) -> &[ToolDescriptor] {
        match self {
            Self::Full(agent) => &agent.tools,
            Self::Inherited(_) => &[],
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotFields {
    agent_id: String,
    model: ModelDescriptor,
    #[serde(default, deserialize_with = "json::present")]
    system_prompt: Option<Arc<str>>,
    #[serde(default, deserialize_with = "json::present")]
    tools: Option<Arc<[ToolDescriptor]>>,
    #[serde(default, deserialize_with = "json::present")]
    inherited_from: Option<TurnId>,
}

impl<'de> Deserialize<'de> for AgentSnapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object(deserializer)
    }
}

impl Derived for AgentSnapshot {
    fn derived<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SnapshotFields { agent_id, model, system_prompt, tools, inherited_from } =
            Deserialize::deserialize(deserializer)?;
        match (system_prompt, tools, inherited_from) {
            (Some(system_prompt), Some(tools), _) => {
                Ok(Self::Full(ResolvedAgent { agent_id, system_prompt, model, tools }))
            }
            (_, _, Some(inherited_from)) => {
                Ok(Self::Inherited(InheritedAgent { agent_id, model, inherited_from }))
            }
            _ => Err(de::Error::custom(
                "a resolved agent has neither `systemPrompt` and `tools` nor `inheritedFrom`",
            )),
        }
    }
}

/// The agent of a turn, as asked for and as resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct TurnAgent {
    /// As asked for.
    pub requested: RequestedAgent,
    /// As resolved, final for the turn.
    pub resolved: AgentSnapshot,
}

strict!(object: ModelDescriptor, AgentOverrides, InlineSpec, ToolDescriptor, TurnAgent);
strict!(word: Execution);
