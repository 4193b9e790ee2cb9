//! From the agent that was asked for to all that its model gets besides the conversation. The same
//! request gives the same prompt within a session, so that providers can cache it.

use std::sync::Arc;

use async_trait::async_trait;

use crate::agents::builtin;
use crate::agents::choice::DefaultModel;
use crate::domain::agent::{InlineSpec, ModelDescriptor, RequestedAgent, ResolvedAgent};
use crate::runtime::api::{AgentResolver, AgentSetting, FindModel};
use crate::runtime::error::ResolveError;
use crate::tools::registry::Registry;

/// The resolver.
pub struct Resolver {
    tools: Registry,
    models: Arc<dyn FindModel>,
    default_model: DefaultModel,
}

impl Resolver {
    /// A resolver of the built-in agents and of those that are described on the spot.
    #[must_use]
    pub fn new(tools: Registry, models: Arc<dyn FindModel>, default_model: DefaultModel) -> Self {
        Self { tools, models, default_model }
    }

    fn model(&self, wanted: Option<ModelDescriptor>) -> Result<ModelDescriptor, ResolveError> {
        let model = wanted.unwrap_or_else(|| self.default_model.get().model);
        match self.models.find(&model) {
            Ok(_) => Ok(model),
            Err(gone) => Err(ResolveError::UnknownModel(gone.to_string())),
        }
    }

    fn inline(
        &self,
        spec: &InlineSpec,
        setting: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError> {
        let tools = match &spec.tools {
            None => self.tools.descriptors(),
            Some(wanted) => self.tools.select(wanted).map_err(|unknown| {
                ResolveError::UnknownTool { agent: spec.name.clone(), tool: unknown.0 }
            })?,
        };
        Ok(ResolvedAgent {
            agent_id: format!("inline:{}", spec.name),
            system_prompt: prompt(&spec.instructions, setting).into(),
            model: self.model(spec.model.clone())?,
            tools: tools.into(),
        })
    }
}

#[async_trait]
impl AgentResolver for Resolver {
    async fn resolve(
        &self,
        requested: &RequestedAgent,
        setting: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError> {
        let by_id = match requested {
            RequestedAgent::Inline(agent) => return self.inline(&agent.inline, setting),
            RequestedAgent::ById(by_id) => by_id,
        };
        let agent = builtin::find(&by_id.agent_id).ok_or_else(|| ResolveError::UnknownAgent {
            agent: by_id.agent_id.clone(),
            known: builtin::ids(),
        })?;
        let wanted = requested.model().cloned();
        let fixed = agent.model.map(builtin::FixedModel::descriptor);
        Ok(ResolvedAgent {
            agent_id: by_id.agent_id.clone(),
            system_prompt: prompt(agent.prompt, setting).into(),
            model: self.model(fixed.or(wanted))?,
            tools: self.tools.descriptors().into(),
        })
    }
}

/// An agent's text, and where it works. The date is the session's, so that it stays the same; the
/// time of a message goes with the message.
fn prompt(text: &str, setting: &AgentSetting) -> String {
    let began = setting.session_created_at.to_string();
    let date = began.get(..10).unwrap_or_default();
    format!(
        "{}\n\nYou work in the folder {}, on {}. The conversation began on {date}.\n",
        text.trim_end(),
        setting.folder.display(),
        std::env::consts::OS,
    )
}
