//! States for tests: sessions, turns and prompts in as few words as a test needs.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::layout::Size;

use crate::app::notice::{LoadedTurn, TurnView};
use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::{
    AgentSnapshot, Execution, ModelDescriptor, RequestedAgent, ResolvedAgent, TurnAgent,
};
use crate::domain::event::Event;
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Content, ReasoningPart, TextPart, ToolCallPart, UserMessage,
};
use crate::domain::session::apply::reduce_session;
use crate::domain::session::event::{SESSION_SCHEMA_VERSION, SessionCreated, SessionFact};
use crate::domain::turn::event::{
    Decision, DecisionSource, InvocationRequested, ModelCallCompleted, ModelCallRequested,
    ModelRequest, PermissionRequired, PermissionResolved, ResultSource, TURN_SCHEMA_VERSION,
    ToolResult, ToolResultData, TurnCompleted, TurnConfig, TurnContext, TurnCreated, TurnFact,
};
use crate::domain::turn::live::{Delta, DeltaKind};
use crate::domain::turn::state::TurnState;
use crate::domain::usage::TurnUsage;
use crate::tui::cache::Cache;
use crate::tui::keymap::Keymap;
use crate::tui::rich::code::Highlighter;
use crate::tui::state::activity::Run;
use crate::tui::state::conversation::{Load, Page};
use crate::tui::state::prompts::{Pace, outstanding};
use crate::tui::state::settings::{Access, Deleted, Motion, NotifyWhen, Settings};
use crate::tui::state::{Now, State};

/// The session on screen.
pub(super) const SESSION: &str = "2026-03-04T09-00-00Z-0000042-000";

static KEYMAP: LazyLock<Arc<Keymap>> =
    LazyLock::new(|| Arc::new(Keymap::new(None).expect("the default keys are right")));
static HIGHLIGHTER: LazyLock<Arc<Highlighter>> = LazyLock::new(Arc::default);

/// A cache that is empty.
pub(super) fn cache() -> Cache {
    Cache::new(Arc::clone(&HIGHLIGHTER))
}

/// A moment of the fourth of March.
pub(super) fn at(clock: &str) -> Timestamp {
    format!("2026-03-04T{clock}Z").parse().expect("the test spells a time")
}

/// A screen with nothing on it, at noon.
pub(super) fn state(size: Size) -> State {
    let settings = Settings {
        keymap: Arc::clone(&KEYMAP),
        access: Access::Full,
        deleted: Deleted::Kept,
        motion: Motion::Full,
        notify: NotifyWhen::Never,
        zone: TimeZone::UTC,
    };
    let now = Now { elapsed: Duration::from_secs(100), wall: at("12:00:00") };
    State::new(settings, size, now)
}

/// A screen that shows these turns of [`SESSION`].
pub(super) fn conversation(size: Size, turns: Vec<Turn>) -> State {
    let mut state = state(size);
    show(&mut state, turns);
    state
}

/// Puts these turns of [`SESSION`] on screen.
pub(super) fn show(state: &mut State, turns: Vec<Turn>) {
    let id = SessionId::from(SESSION);
    let header = SessionCreated {
        schema_version: SESSION_SCHEMA_VERSION,
        title: Some("Fix the flaky watcher test".into()),
        ..SessionCreated::default()
    };
    let created = SessionFact::Created(Arc::new(header));
    let event = Event { id: id.clone(), ts: at("09:00:00"), fact: created };
    let session = Arc::new(reduce_session(&[event]).expect("the log is legal"));
    state.conversation.page = Page::Session { id, load: Load::Open { state: session, left: 0 } };
    for (turn, session_seq) in turns.into_iter().zip(1..) {
        let _taken = state.conversation.turns.load(turn.loaded(session_seq));
    }
    sync_prompts(state);
}

/// Puts into the queue what the latest turn waits for.
pub(super) fn sync_prompts(state: &mut State) {
    let latest = state.conversation.turns.latest().and_then(|slot| slot.state());
    state.prompts.queue =
        latest.map(|turn| outstanding(turn, Pace::Rests).collect()).unwrap_or_default();
}

/// Lets a turn run since five seconds.
pub(super) fn run(state: &mut State, turn: &str) {
    let since = state.now.elapsed.saturating_sub(Duration::from_secs(5));
    let run = Run { session: Some(SessionId::from(SESSION)), since };
    state.activity.started(TurnId::from(turn), run);
}

/// Adds text to the open call of a turn.
pub(super) fn stream(state: &mut State, turn: &str, kind: DeltaKind, text: &str) {
    let turn = TurnId::from(turn);
    let slot = state.conversation.turns.slot(&turn).expect("the turn is there");
    let calls = slot.state().expect("the turn is loaded").model_calls.len() as u64;
    let open = slot.live.streaming.as_ref().map(|streaming| &streaming.call);
    let last = open.and_then(|call| call.blocks.last());
    let block = last.map_or(0, |last| last.block + u32::from(last.kind != kind));
    let at = open.map_or(0, |call| call.len);
    let delta = Delta { model_call_index: calls - 1, kind, block, at, text: text.to_owned() };
    let _folded = state.conversation.turns.delta(&turn, &delta);
}

/// JSON that a test writes down.
pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("the test's JSON is JSON")
}

/// A turn in the making; time passes by two seconds from event to event.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    state: TurnState,
    offset: u64,
}

impl Turn {
    /// A turn that begins with a message.
    pub(super) fn begin(id: &str, clock: &str, input: &str) -> Self {
        let fact = TurnFact::Created(Arc::new(TurnCreated {
            schema_version: TURN_SCHEMA_VERSION,
            session_id: Some(SessionId::from(SESSION)),
            agent: TurnAgent {
                requested: RequestedAgent::by_id("assistant"),
                resolved: AgentSnapshot::Full(ResolvedAgent {
                    agent_id: "assistant".into(),
                    system_prompt: "Be brief.".into(),
                    model: model(),
                    tools: Arc::from([]),
                }),
            },
            context: TurnContext::Inline(Vec::new()),
            input: Arc::new(UserMessage::text(input)),
            config: TurnConfig {
                auto_permission: false,
                human_available: true,
                max_model_calls: 100,
                reasoning_effort: None,
            },
            analytics: None,
        }));
        let event = Event { id: TurnId::from(id), ts: at(clock), fact };
        Self { state: TurnState::begin(&event).expect("a turn begins"), offset: 1 }
    }

    /// The next event.
    pub(super) fn then(mut self, fact: TurnFact) -> Self {
        let ts = self.state.updated_at.after(Duration::from_secs(2));
        let event = Event { id: self.state.id.clone(), ts, fact };
        self.state.apply(&event).expect("the event may follow");
        self.offset += 1;
        self
    }

    /// The model is asked.
    pub(super) fn ask(self) -> Self {
        let request = ModelRequest {
            context_ref: self.state.next_context_ref().cloned(),
            messages: self.state.next_message_refs(),
            parameters: json("{}"),
        };
        let model_call_index = self.state.next_call_index();
        self.then(TurnFact::ModelCallRequested(ModelCallRequested { model_call_index, request }))
    }

    /// The model answers with these parts.
    pub(super) fn answer(self, parts: Vec<AssistantPart>) -> Self {
        let has_calls = parts.iter().any(|part| matches!(part, AssistantPart::ToolCall(_)));
        let finish_reason = if has_calls { "tool-calls" } else { "stop" };
        self.answer_for(parts, finish_reason)
    }

    /// The model answers with these parts, for a reason.
    pub(super) fn answer_for(self, parts: Vec<AssistantPart>, finish_reason: &str) -> Self {
        let message = AssistantMessage { content: Content::Parts(parts), provider_options: None };
        let model_call_index = self.state.next_call_index() - 1;
        self.then(TurnFact::ModelCallCompleted(ModelCallCompleted {
            model_call_index,
            message: Arc::new(message),
            finish_reason: finish_reason.to_owned(),
            usage: usage(),
            provider_metadata: None,
        }))
    }

    /// A call asks for permission.
    pub(super) fn require(self, call: &str, request: &str) -> Self {
        let (tool_call_id, tool_name) = self.named(call);
        self.then(TurnFact::PermissionRequired(PermissionRequired {
            tool_call_id,
            tool_name,
            request: json(request),
            checker_error: None,
        }))
    }

    /// A person decides on a call.
    pub(super) fn decide(self, call: &str, decision: Decision) -> Self {
        self.then(TurnFact::PermissionResolved(PermissionResolved {
            tool_call_id: ToolCallId::from(call),
            decision,
            source: DecisionSource::Human,
            reason: None,
            metadata: None,
        }))
    }

    /// A call begins to run.
    pub(super) fn invoke(self, call: &str, execution: Execution) -> Self {
        let (tool_call_id, tool_name) = self.named(call);
        let input = self.call(call).arguments.clone();
        self.then(TurnFact::InvocationRequested(InvocationRequested {
            tool_call_id,
            tool_id: tool_name.replace('-', "_"),
            execution,
            tool_name,
            input,
        }))
    }

    /// A call runs and gives this back.
    pub(super) fn result(self, call: &str, output: &str, metadata: Option<&str>) -> Self {
        let result = ToolResultData {
            output: Json::text(output),
            is_error: false,
            metadata: metadata.map(json),
        };
        self.invoke(call, Execution::Sync).settle(call, ResultSource::Sync, result)
    }

    /// A call gets this result.
    pub(super) fn settle(self, call: &str, source: ResultSource, result: ToolResultData) -> Self {
        let (tool_call_id, tool_name) = self.named(call);
        self.then(TurnFact::ToolResult(ToolResult { tool_call_id, tool_name, source, result }))
    }

    /// The turn ends with its last answer.
    pub(super) fn complete(self) -> Self {
        let last = self.state.model_calls.last().and_then(|call| call.settlement.clone());
        let Some(crate::domain::turn::state::Settlement::Completed(response)) = last else {
            panic!("the turn has an answer");
        };
        let (finish_reason, usage) = (response.finish_reason, self.state.usage);
        let output = response.message;
        self.then(TurnFact::Completed(TurnCompleted { output, finish_reason, usage }))
    }

    /// The same turn under another id.
    pub(super) fn named_as(mut self, id: &str) -> Self {
        self.state.id = TurnId::from(id);
        self
    }

    /// As it is loaded.
    pub(super) fn loaded(self, session_seq: u64) -> LoadedTurn {
        LoadedTurn {
            id: self.state.id.clone(),
            session_seq,
            content: Ok(TurnView {
                offset: self.offset,
                state: Arc::new(self.state),
                interrupted: None,
                running: false,
            }),
        }
    }

    fn call(&self, call: &str) -> &crate::domain::turn::state::ToolCall {
        self.state.tool_calls.get(&ToolCallId::from(call)).expect("the call is there")
    }

    fn named(&self, call: &str) -> (ToolCallId, String) {
        let call = self.call(call);
        (call.id.clone(), call.name.clone())
    }
}

/// The model that test turns run on.
pub(super) fn model() -> ModelDescriptor {
    ModelDescriptor { provider: "lab".into(), model: "tiny-1".into() }
}

/// What every answer used.
pub(super) fn usage() -> TurnUsage {
    TurnUsage { input_tokens: Some(6_200), output_tokens: Some(140), ..TurnUsage::default() }
}

/// Text of an answer.
pub(super) fn text(text: &str) -> AssistantPart {
    AssistantPart::Text(TextPart { text: Arc::from(text), provider_options: None })
}

/// Reasoning of an answer.
pub(super) fn reasoning(text: &str) -> AssistantPart {
    AssistantPart::Reasoning(ReasoningPart { text: Arc::from(text), provider_options: None })
}

/// A tool call of an answer.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCallPart {
        tool_call_id: ToolCallId::from(id),
        tool_name: name.to_owned(),
        arguments: json(arguments),
        provider_options: None,
    })
}
