//! The agents that come with the program.

use crate::domain::agent::ModelDescriptor;

/// The agent that answers when nothing else is said.
pub const ASSISTANT: &str = "assistant";
/// The scripted agent that shows the program around.
pub const GUIDE: &str = "guide";

/// An agent that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its id.
    pub id: &'static str,
    /// Its system prompt, without what depends on the session.
    pub prompt: &'static str,
    /// The model that it always runs on, if it does.
    pub model: Option<FixedModel>,
}

/// The model that an agent always runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedModel {
    provider: &'static str,
    model: &'static str,
}

impl FixedModel {
    /// As a turn names it.
    #[must_use]
    pub fn descriptor(self) -> ModelDescriptor {
        ModelDescriptor { provider: self.provider.to_owned(), model: self.model.to_owned() }
    }
}

/// The model behind [`GUIDE`].
pub const GUIDE_MODEL: FixedModel = FixedModel { provider: "guide", model: "guide" };

const AGENTS: &[BuiltIn] = &[
    BuiltIn {
        id: ASSISTANT,
        prompt: include_str!("../../assets/agents/assistant.md"),
        model: None,
    },
    BuiltIn {
        id: GUIDE,
        prompt: include_str!("../../assets/agents/guide.md"),
        model: Some(GUIDE_MODEL),
    },
];

/// The agent with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static BuiltIn> {
    AGENTS.iter().find(|agent| agent.id == id)
}

/// The ids of all, for people.
#[must_use]
pub fn ids() -> String {
    AGENTS.iter().map(|agent| agent.id).collect::<Vec<_>>().join(", ")
}
