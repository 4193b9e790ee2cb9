//! What a turn's log says, event by event, and what was sent to the model. Nothing is changed.

use std::sync::Arc;

use serde::Serialize;

use crate::app::App;
use crate::app::command::{Inspect, InspectWhat, TextOf};
use crate::app::notice::{EventLine, Inspected, Notice};
use crate::app::paged::Paged;
use crate::base::id::TurnId;
use crate::domain::event::Fact as _;
use crate::domain::turn::event::{TurnEvent, TurnFact};
use crate::store::error::StoreError;

impl App {
    /// Looks at a turn; what it finds, or why it finds nothing, is told.
    pub(super) async fn inspect(&self, Inspect { turn, what }: Inspect) {
        let inspected = match what {
            InspectWhat::Events => {
                let events = self.events_of(&turn).await.map(|events| lines(&events));
                Inspected::Events { turn, events: events.map_err(|error| error.to_string()) }
            }
            InspectWhat::Text(what) => {
                let text = self.text_of(&turn, what).await.map(Paged::new).map(Arc::new);
                Inspected::Text { turn, what, text }
            }
        };
        self.tell(Notice::Inspected(inspected)).await;
    }

    async fn events_of(&self, turn: &TurnId) -> Result<Vec<Arc<TurnEvent>>, StoreError> {
        self.graph.turn_logs.read(turn).await.map(|stored| stored.events.clone())
    }

    async fn text_of(&self, turn: &TurnId, what: TextOf) -> Result<String, String> {
        match what {
            TextOf::Event(offset) => {
                let events = self.events_of(turn).await.map_err(|error| error.to_string())?;
                let at = usize::try_from(offset).ok().and_then(|offset| offset.checked_sub(1));
                let event = at.and_then(|at| events.get(at));
                let line = event.map(|event| event.to_line()).ok_or("there is no such event")?;
                let value: serde_json::Value =
                    serde_json::from_str(&line).map_err(|error| error.to_string())?;
                pretty(&value)
            }
            TextOf::Request(call) => {
                let request = self.graph.runtime.request_of(turn, call).await;
                pretty(&request.map_err(|error| error.to_string())?)
            }
        }
    }
}

fn pretty(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(|error| error.to_string())
}

fn lines(events: &[Arc<TurnEvent>]) -> Arc<[EventLine]> {
    let lines = events.iter().zip(1..).map(|(event, offset)| EventLine {
        offset,
        at: event.ts,
        kind: event.fact.kind(),
        model_call: model_call(&event.fact),
        tool: tool(&event.fact).map(str::to_owned),
    });
    lines.collect()
}

fn model_call(fact: &TurnFact) -> Option<u64> {
    match fact {
        TurnFact::ModelCallRequested(fact) => Some(fact.model_call_index),
        TurnFact::ModelStep(fact) => Some(fact.model_call_index),
        TurnFact::ModelCallCompleted(fact) => Some(fact.model_call_index),
        TurnFact::ModelCallFailed(fact) => Some(fact.model_call_index),
        _ => None,
    }
}

fn tool(fact: &TurnFact) -> Option<&str> {
    match fact {
        TurnFact::PermissionRequired(fact) => Some(&fact.tool_name),
        TurnFact::InvocationRequested(fact) => Some(&fact.tool_name),
        TurnFact::ToolResult(fact) => Some(&fact.tool_name),
        _ => None,
    }
}
