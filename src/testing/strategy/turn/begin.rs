//! How a random turn begins: both forms of agents, snapshots and contexts.

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::{
    AgentById, AgentOverrides, AgentSnapshot, InheritedAgent, InlineAgent, InlineSpec,
    RequestedAgent, TurnAgent,
};
use crate::domain::turn::event::{ReasoningEffort, TurnConfig, TurnContext, TurnCreated};
use crate::testing::fact::{model, previous, turn};
use crate::testing::log::{PREVIOUS_TURN, SESSION};
use crate::testing::strategy::{Choices, content};

pub(super) fn created(choices: &mut Choices<'_>) -> TurnCreated {
    let requested = requested(choices);
    let (resolved, context) = if choices.one_in(3) {
        let inherited = InheritedAgent {
            agent_id: requested.agent_id(),
            model: model(),
            inherited_from: TurnId::from(PREVIOUS_TURN),
        };
        (AgentSnapshot::Inherited(inherited), previous())
    } else if choices.one_in(2) {
        (turn().agent.resolved, previous())
    } else {
        (turn().agent.resolved, TurnContext::Inline(content::context(choices)))
    };
    TurnCreated {
        session_id: choices.maybe(|_| SessionId::from(SESSION)),
        agent: TurnAgent { requested, resolved },
        context,
        input: content::user(choices),
        config: config(choices),
        analytics: choices.maybe(content::any_json),
        ..turn()
    }
}

fn requested(choices: &mut Choices<'_>) -> RequestedAgent {
    if choices.one_in(2) {
        return RequestedAgent::Inline(InlineAgent {
            inline: InlineSpec {
                name: "scout".into(),
                instructions: content::text(choices),
                model: choices.maybe(|_| model()),
                tools: choices.maybe(|_| vec!["read-file".to_owned()]),
                composition: choices.maybe(content::any_json),
            },
        });
    }
    let overrides = choices.maybe(|choices| AgentOverrides {
        model: choices.maybe(|_| model()),
        composition: choices.maybe(content::any_json),
    });
    RequestedAgent::ById(AgentById { agent_id: "assistant".into(), overrides })
}

fn config(choices: &mut Choices<'_>) -> TurnConfig {
    let efforts = [ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::High];
    TurnConfig {
        auto_permission: choices.one_in(2),
        human_available: choices.one_in(2),
        max_model_calls: 1 + choices.below(6) as u64,
        reasoning_effort: choices.maybe(|choices| choices.of(&efforts)),
    }
}
