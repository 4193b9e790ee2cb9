//! Turns and sessions for the scripts: legal logs, made event by event.

use std::sync::Arc;

use crate::app::notice::{LoadedTurn, Notice, TurnView};
use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::{
    AgentSnapshot, Execution, ModelDescriptor, RequestedAgent, ResolvedAgent, TurnAgent,
};
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Content, TextPart, ToolCallPart, UserMessage,
};
use crate::domain::question::ASK_HUMAN;
use crate::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use crate::domain::session::event::{Compacted, SessionCreated};
use crate::domain::session::state::{Compaction, SessionState, SessionTurn};
use crate::domain::turn::event::{
    Decision, DecisionSource, InvocationRequested, ModelCallCompleted, ModelCallRequested,
    ModelRequest, PendingAsyncTool, PendingPermission, PermissionRequired, PermissionResolved,
    ResultSource, ToolResult, ToolResultData, TurnCancelled, TurnCompleted, TurnConfig,
    TurnContext, TurnCreated, TurnEvent, TurnFact, TurnFailed, TurnSuspended,
};
use crate::domain::turn::live::{Delta, DeltaKind, LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::domain::turn::status::TurnStatus;
use crate::domain::usage::TurnUsage;

/// A session and its turns, as the program has them.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) turns: Vec<Turn>,
    /// How often it was summed up, each after so many turns.
    pub(super) compactions: Vec<Compaction>,
}

/// A turn, as the program has it.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    session: SessionId,
    state: Option<TurnState>,
    offset: u64,
    auto_permission: bool,
    is_running: bool,
}

impl Session {
    pub(super) fn new(id: &str) -> Self {
        Self { id: SessionId::from(id), turns: Vec::new(), compactions: Vec::new() }
    }

    /// A new turn, and its first notice.
    pub(super) fn begin(&mut self, text: &str) -> Notice {
        self.begin_with(text, false)
    }

    /// A new turn in which a classifier may decide.
    pub(super) fn begin_auto(&mut self, text: &str) -> Notice {
        self.begin_with(text, true)
    }

    fn begin_with(&mut self, text: &str, auto_permission: bool) -> Notice {
        let id = TurnId::from(format!("{}-t{}", self.id, self.turns.len() + 1));
        let session = self.id.clone();
        self.turns.push(Turn {
            id,
            session,
            state: None,
            offset: 0,
            auto_permission,
            is_running: false,
        });
        self.turn().created(text)
    }

    pub(super) fn turn(&mut self) -> &mut Turn {
        self.turns.last_mut().expect("a turn was begun")
    }

    /// What the program tells when the session is opened.
    pub(super) fn opened(&self) -> Vec<Notice> {
        let session = self.id.clone();
        let turns = self.turns.iter().rev().map(|turn| LoadedTurn {
            id: turn.id.clone(),
            session_seq: self.seq(turn),
            content: Ok(turn.view()),
        });
        let state = Ok(Arc::new(self.state()));
        vec![
            Notice::SessionOpened { session: session.clone(), state },
            Notice::TurnsLoaded { session, turns: turns.collect(), left: 0 },
        ]
    }

    pub(super) fn state(&self) -> SessionState {
        let header = Arc::new(SessionCreated { schema_version: 1, ..SessionCreated::default() });
        let created = crate::domain::event::Event {
            id: self.id.clone(),
            ts: Timestamp::from_ms(0),
            fact: crate::domain::session::event::SessionFact::Created(header),
        };
        let mut state = crate::domain::session::apply::reduce_session(&[created]).expect("legal");
        state.turns = self
            .turns
            .iter()
            .map(|turn| SessionTurn {
                id: turn.id.clone(),
                session_seq: self.seq(turn),
                agent_id: "assistant".into(),
                model: model(),
                at: Timestamp::from_ms(0),
            })
            .collect();
        state.compactions.clone_from(&self.compactions);
        state
    }

    /// It is summed up after its turns so far.
    pub(super) fn compacts(&mut self, summary: &str) -> Notice {
        let fact = Compacted {
            compaction_id: format!("k{}", self.compactions.len()),
            summary: summary.to_owned(),
            first_kept_turn_id: self.turn().id.clone(),
        };
        self.compactions.push(Compaction { fact, after_turns: self.turns.len() });
        Notice::SessionChanged { session: self.id.clone(), state: Arc::new(self.state()) }
    }

    /// What the list knows of it.
    pub(super) fn entry(&self) -> Arc<SessionIndexEntry> {
        let latest = self.turns.last().and_then(|turn| turn.state.as_ref());
        let mut entry = SessionIndexEntry::new(&self.state(), latest);
        entry.title = Some(format!("Session {}", self.id));
        Arc::new(entry)
    }

    pub(super) fn indexed(&self) -> Notice {
        Notice::IndexChanged { session: self.id.clone(), entry: Some(self.entry()) }
    }

    fn seq(&self, turn: &Turn) -> u64 {
        1 + self.turns.iter().position(|other| other.id == turn.id).expect("its own") as u64
    }
}

impl Turn {
    fn created(&mut self, text: &str) -> Notice {
        let resolved = AgentSnapshot::Full(ResolvedAgent {
            agent_id: "assistant".into(),
            system_prompt: Arc::from(""),
            model: model(),
            tools: Arc::from([]),
        });
        let config = TurnConfig {
            auto_permission: self.auto_permission,
            human_available: true,
            max_model_calls: 50,
            reasoning_effort: None,
        };
        self.tell(TurnFact::Created(Arc::new(TurnCreated {
            schema_version: 1,
            session_id: Some(self.session.clone()),
            agent: TurnAgent { requested: RequestedAgent::by_id("assistant"), resolved },
            context: TurnContext::Inline(Vec::new()),
            input: Arc::new(UserMessage::text(text)),
            config,
            analytics: None,
        })))
    }

    pub(super) fn state(&self) -> &TurnState {
        self.state.as_ref().expect("begun")
    }

    pub(super) fn view(&self) -> TurnView {
        let (state, running) = (Arc::new(self.state().clone()), self.is_running);
        TurnView { offset: self.offset, state, interrupted: None, running }
    }

    pub(super) fn loaded(&self, session_seq: u64) -> LoadedTurn {
        LoadedTurn { id: self.id.clone(), session_seq, content: Ok(self.view()) }
    }

    /// Records an event, and gives the notice of it.
    pub(super) fn tell(&mut self, fact: TurnFact) -> Notice {
        self.offset += 1;
        let ts = Timestamp::from_ms(i64::try_from(self.offset).expect("small") * 1000);
        let event = TurnEvent { id: self.id.clone(), ts, fact };
        match &mut self.state {
            Some(state) => state.apply(&event).expect("the script is legal"),
            None => self.state = Some(TurnState::begin(&event).expect("a beginning")),
        }
        self.news(News::Recorded { offset: self.offset, event: Arc::new(event) })
    }

    pub(super) fn news(&self, news: News) -> Notice {
        let (session, turn) = (Some(self.session.clone()), self.id.clone());
        Notice::Live(LiveEvent { session, turn, news })
    }

    pub(super) fn started(&mut self) -> Notice {
        self.is_running = true;
        self.news(News::Started)
    }

    pub(super) fn rested(&mut self) -> Notice {
        self.is_running = false;
        self.news(News::Rested)
    }

    pub(super) fn asks_model(&mut self) -> Notice {
        let state = self.state();
        let messages = state.next_message_refs();
        let context_ref = state.next_context_ref().cloned();
        let request =
            ModelRequest { context_ref, messages, parameters: Json::of(&serde_json::json!({})) };
        let model_call_index = state.next_call_index();
        self.tell(TurnFact::ModelCallRequested(ModelCallRequested { model_call_index, request }))
    }

    pub(super) fn delta(&self, at: u64, text: &str) -> Notice {
        self.news(News::Delta(Delta {
            model_call_index: self.state().next_call_index() - 1,
            kind: DeltaKind::Text,
            block: 0,
            at,
            text: text.to_owned(),
        }))
    }

    /// The model answers with a text and calls of tools, given as (name, arguments).
    pub(super) fn answers(&mut self, text: &str, calls: &[(&str, &str)]) -> Notice {
        let before = self.state().tool_calls.len();
        let text = (!text.is_empty()).then(|| {
            AssistantPart::Text(TextPart { text: Arc::from(text), provider_options: None })
        });
        let calls = calls.iter().zip(before + 1..).map(|((name, arguments), number)| {
            AssistantPart::ToolCall(ToolCallPart {
                tool_call_id: ToolCallId::of_turn(&self.id, number),
                tool_name: (*name).to_owned(),
                arguments: Json::parse(arguments).expect("the script writes JSON"),
                provider_options: None,
            })
        });
        let content = Content::Parts(text.into_iter().chain(calls).collect());
        self.tell(TurnFact::ModelCallCompleted(ModelCallCompleted {
            model_call_index: self.state().next_call_index() - 1,
            message: Arc::new(AssistantMessage { content, provider_options: None }),
            finish_reason: "stop".into(),
            usage: TurnUsage::default(),
            provider_metadata: None,
        }))
    }

    pub(super) fn call(&self, number: usize) -> ToolCallId {
        ToolCallId::of_turn(&self.id, number)
    }

    fn name_of(&self, number: usize) -> String {
        self.state().tool_calls.get(&self.call(number)).expect("called").name.clone()
    }

    pub(super) fn requires(&mut self, number: usize) -> Notice {
        self.tell(TurnFact::PermissionRequired(PermissionRequired {
            tool_call_id: self.call(number),
            tool_name: self.name_of(number),
            request: Json::text("rm -r build"),
            checker_error: None,
        }))
    }

    pub(super) fn resolves(&mut self, number: usize, decision: Decision) -> Notice {
        self.tell(TurnFact::PermissionResolved(PermissionResolved {
            tool_call_id: self.call(number),
            decision,
            source: DecisionSource::Human,
            reason: None,
            metadata: None,
        }))
    }

    pub(super) fn invokes(&mut self, number: usize, execution: Execution) -> Notice {
        let call = self.state().tool_calls.get(&self.call(number)).expect("called").clone();
        self.tell(TurnFact::InvocationRequested(InvocationRequested {
            tool_call_id: call.id,
            tool_id: call.name.replace('-', "_"),
            tool_name: call.name,
            execution,
            input: call.arguments,
        }))
    }

    pub(super) fn finishes(&mut self, number: usize, source: ResultSource) -> Notice {
        self.tell(TurnFact::ToolResult(ToolResult {
            tool_call_id: self.call(number),
            tool_name: self.name_of(number),
            source,
            result: ToolResultData { output: Json::text("done"), is_error: false, metadata: None },
        }))
    }

    pub(super) fn suspends(&mut self) -> Notice {
        let state = self.state();
        let pending_permissions = state.outstanding_permissions().map(|call| PendingPermission {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            request: call.permission.as_ref().expect("required").request.clone(),
        });
        let pending_async_tools = state.outstanding_async().map(|call| PendingAsyncTool {
            tool_call_id: call.id.clone(),
            tool_id: call.tool_id.clone().expect("invoked"),
            tool_name: call.name.clone(),
            input: call.invocation.as_ref().expect("invoked").input.clone(),
        });
        let suspended = TurnSuspended {
            pending_permissions: pending_permissions.collect(),
            pending_async_tools: pending_async_tools.collect(),
            usage: state.usage,
        };
        self.tell(TurnFact::Suspended(Arc::new(suspended)))
    }

    pub(super) fn completes(&mut self) -> Notice {
        let state = self.state();
        let output = state.model_calls.last().and_then(|call| call.response()).expect("answered");
        let completed = TurnCompleted {
            output: Arc::clone(output),
            finish_reason: "stop".into(),
            usage: state.usage,
        };
        self.tell(TurnFact::Completed(completed))
    }

    pub(super) fn fails(&mut self) -> Notice {
        let usage = self.state().usage;
        self.tell(TurnFact::Failed(TurnFailed { error: "no".into(), code: None, usage }))
    }

    pub(super) fn is_cancelled(&mut self) -> Notice {
        let usage = self.state().usage;
        self.tell(TurnFact::Cancelled(TurnCancelled { reason: None, usage }))
    }
}

fn model() -> ModelDescriptor {
    ModelDescriptor { provider: "guide".into(), model: "guide".into() }
}

/// A session whose one turn has ended.
pub(super) fn ended(id: &str) -> Session {
    let mut session = Session::new(id);
    session.begin("hello");
    let turn = session.turn();
    turn.asks_model();
    turn.answers("Hello there.", &[]);
    turn.completes();
    session
}

/// A session whose one turn runs; its answer streams.
pub(super) fn running(id: &str) -> Session {
    let mut session = Session::new(id);
    session.begin("hello");
    session.turn().asks_model();
    session
}

/// A session whose turn waits for decisions on `calls` calls of `shell`.
pub(super) fn asking(id: &str, calls: usize) -> Session {
    let mut session = running(id);
    let turn = session.turn();
    turn.answers("", &vec![("shell", r#"{"command":"rm -r build"}"#); calls]);
    for number in 1..=calls {
        turn.requires(number);
    }
    turn.suspends();
    session
}

/// A session whose turn waits for the answer to a form of questions.
pub(super) fn questioning(id: &str, input: &str) -> Session {
    let mut session = running(id);
    let turn = session.turn();
    turn.answers("", &[(ASK_HUMAN, input)]);
    turn.invokes(1, Execution::Async);
    turn.suspends();
    session
}

/// An entry of the list, as a scan finds it.
pub(super) fn listed(id: &str, status: TurnStatus) -> Arc<SessionIndexEntry> {
    let mut entry = SessionIndexEntry::clone(&ended(id).entry());
    entry.latest_turn_status = LatestTurnStatus::Turn(status);
    Arc::new(entry)
}
