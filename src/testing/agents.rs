//! Agents and models that a test can change from one turn to the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::domain::agent::{ModelDescriptor, RequestedAgent, ResolvedAgent, ToolDescriptor};
use crate::models::model::Model;
use crate::runtime::api::{AgentResolver, AgentSetting, FindModel, ModelGone};
use crate::runtime::error::ResolveError;
use crate::testing::fact::model;
use crate::testing::model::ScriptedModel;

/// The id of the one agent that there is.
pub const AGENT: &str = "assistant";

/// A resolver that knows one agent, [`AGENT`], and makes another of it where one is described.
#[derive(Debug)]
pub struct ScriptedAgents(Mutex<ResolvedAgent>);

impl ScriptedAgents {
    /// The agent with these tools, on the model of test turns.
    #[must_use]
    pub fn new(tools: Vec<ToolDescriptor>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ResolvedAgent {
            agent_id: AGENT.to_owned(),
            system_prompt: "Be brief.".into(),
            model: model(),
            tools: tools.into(),
        })))
    }

    /// Makes the agent another for the turns to come.
    pub fn change(&self, change: impl FnOnce(&mut ResolvedAgent)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[async_trait]
impl AgentResolver for ScriptedAgents {
    async fn resolve(
        &self,
        requested: &RequestedAgent,
        _: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError> {
        let agent = requested.agent_id();
        let mut resolved = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match requested {
            RequestedAgent::Inline(described) => {
                let spec = &described.inline;
                let wanted = |tool: &ToolDescriptor| {
                    spec.tools.as_ref().is_none_or(|names| names.contains(&tool.name))
                };
                resolved.agent_id = agent;
                resolved.system_prompt = spec.instructions.as_str().into();
                resolved.tools =
                    resolved.tools.iter().filter(|tool| wanted(tool)).cloned().collect();
            }
            RequestedAgent::ById(_) if agent == AGENT => {}
            RequestedAgent::ById(_) => {
                return Err(ResolveError::UnknownAgent { agent, known: AGENT.to_owned() });
            }
        }
        if let Some(model) = requested.model() {
            resolved.model = model.clone();
        }
        Ok(resolved)
    }
}

/// Scripted models by their descriptors.
#[derive(Debug, Default)]
pub struct ScriptedModels(Mutex<HashMap<ModelDescriptor, Arc<ScriptedModel>>>);

impl ScriptedModels {
    /// Adds a model without a script.
    pub fn add(&self, descriptor: ModelDescriptor) -> Arc<ScriptedModel> {
        let model = ScriptedModel::named(descriptor.clone(), []);
        self.lock().insert(descriptor, Arc::clone(&model));
        model
    }

    /// From now on there is no such model.
    pub fn remove(&self, descriptor: &ModelDescriptor) {
        self.lock().remove(descriptor);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ModelDescriptor, Arc<ScriptedModel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FindModel for ScriptedModels {
    fn find(&self, descriptor: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone> {
        match self.lock().get(descriptor) {
            Some(model) => Ok(Arc::<ScriptedModel>::clone(model)),
            None => Err(ModelGone("it was removed".to_owned())),
        }
    }
}
