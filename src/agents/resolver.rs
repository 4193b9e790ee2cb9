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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::choice::Chosen;
    use crate::domain::agent::{AgentById, AgentOverrides, InlineAgent, ToolDescriptor};
    use crate::models::guide;
    use crate::testing::agents::ScriptedModels;
    use crate::testing::fact::model;
    use crate::testing::tools::FakeTool;
    use std::path::PathBuf;

    /// A resolver that knows two tools, the guide and [`model`], of which `default` is chosen.
    fn resolver(default: ModelDescriptor) -> Resolver {
        let tools = ["read_file", "write_file"].map(|id| Arc::new(FakeTool::sync(id)) as Arc<_>);
        let tools = Registry::new(tools.to_vec()).expect("names of their own");
        let models = ScriptedModels::default();
        models.add(model());
        models.add(guide::descriptor());
        let chosen = Chosen { model: default, why: "a test".to_owned() };
        Resolver::new(tools, Arc::new(models), DefaultModel::new(chosen))
    }

    fn setting() -> AgentSetting {
        let began = "2026-03-04T23:59:59Z".parse().expect("a time");
        AgentSetting { folder: PathBuf::from("/project"), session_created_at: began }
    }

    async fn resolve(requested: &RequestedAgent) -> Result<ResolvedAgent, ResolveError> {
        resolver(model()).resolve(requested, &setting()).await
    }

    fn names(tools: &[ToolDescriptor]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn on(id: &str, model: ModelDescriptor) -> RequestedAgent {
        let overrides = AgentOverrides { model: Some(model), composition: None };
        RequestedAgent::ById(AgentById { agent_id: id.to_owned(), overrides: Some(overrides) })
    }

    #[tokio::test]
    async fn the_assistant_has_all_tools_and_runs_on_what_was_chosen() {
        let agent = resolve(&RequestedAgent::by_id(builtin::ASSISTANT)).await.expect("known");
        assert_eq!((agent.agent_id.as_str(), agent.model), (builtin::ASSISTANT, model()));
        assert_eq!(names(&agent.tools), ["read-file", "write-file"]);
        let end = "You work in the folder /project, on ";
        assert!(agent.system_prompt.contains(end), "{}", agent.system_prompt);
        let began = "The conversation began on 2026-03-04.\n";
        assert!(agent.system_prompt.ends_with(began), "{}", agent.system_prompt);
    }

    #[tokio::test]
    async fn a_model_that_is_named_counts_more_than_the_chosen_one_unless_the_agent_has_its_own() {
        let chosen = resolver(guide::descriptor());
        let named = on(builtin::ASSISTANT, model());
        let agent = chosen.resolve(&named, &setting()).await.expect("known");
        assert_eq!(agent.model, model());
        let agent = resolve(&on(builtin::GUIDE, model())).await.expect("known");
        assert_eq!(agent.model, guide::descriptor());
        assert_eq!(builtin::GUIDE_MODEL.descriptor(), guide::descriptor());
    }

    #[tokio::test]
    async fn a_choice_that_gets_better_counts_from_the_next_turn_on() {
        let chosen = Chosen { model: guide::descriptor(), why: "nothing else".to_owned() };
        let choice = DefaultModel::new(chosen);
        let resolver = Resolver { default_model: choice.clone(), ..resolver(model()) };
        let assistant = RequestedAgent::by_id(builtin::ASSISTANT);
        let before = resolver.resolve(&assistant, &setting()).await.expect("known").model;
        choice.set(Chosen { model: model(), why: "found".to_owned() });
        let after = resolver.resolve(&assistant, &setting()).await.expect("known").model;
        assert_eq!((before, after), (guide::descriptor(), model()));
    }

    #[tokio::test]
    async fn what_is_not_there_is_named() {
        let unknown = resolve(&RequestedAgent::by_id("nobody")).await.expect_err("unknown");
        let message = "there is no agent \"nobody\"; there are assistant, guide";
        assert_eq!(unknown.to_string(), message);
        let gone = ModelDescriptor { provider: "lab".into(), model: "gone".into() };
        let refused = resolve(&on(builtin::ASSISTANT, gone)).await.expect_err("no such model");
        assert_eq!(refused, ResolveError::UnknownModel("it was removed".to_owned()));
    }

    #[tokio::test]
    async fn an_agent_that_is_described_on_the_spot_gets_what_it_names() {
        let spec = |tools: Option<&[&str]>| {
            let tools = tools.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            RequestedAgent::Inline(InlineAgent {
                inline: InlineSpec {
                    name: "critic".to_owned(),
                    instructions: "Find fault.".to_owned(),
                    model: None,
                    tools,
                    composition: None,
                },
            })
        };
        let agent = resolve(&spec(Some(&["write-file"]))).await.expect("known");
        assert_eq!((agent.agent_id.as_str(), agent.model), ("inline:critic", model()));
        assert!(agent.system_prompt.starts_with("Find fault.\n\nYou work in"));
        assert_eq!(names(&agent.tools), ["write-file"]);
        let agent = resolve(&spec(None)).await.expect("known");
        assert_eq!(names(&agent.tools), ["read-file", "write-file"]);
        let refused = resolve(&spec(Some(&["fly"]))).await.expect_err("no such tool");
        let (agent, tool) = ("critic".to_owned(), "fly".to_owned());
        assert_eq!(refused, ResolveError::UnknownTool { agent, tool });
    }

    #[tokio::test]
    async fn the_same_request_gives_the_same_prompt() {
        for id in [builtin::ASSISTANT, builtin::GUIDE] {
            let requested = RequestedAgent::by_id(id);
            let (one, two) = (resolve(&requested).await, resolve(&requested).await);
            assert_eq!(one.expect("known"), two.expect("known"));
        }
    }
}
