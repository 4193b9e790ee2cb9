//! turnstile: a full-screen terminal program for working with AI agents that never loses work.
//!
//! # From above
//!
//! Everything that happens is an **event** in an append-only **log**: one log for each session, one
//! for each turn. State is always the fold of a log by a pure reducer; there are no summary files and
//! no checkpoints. A **turn** begins with one message of a person and holds all the work that it
//! causes: model calls, permission decisions, tool runs, and exactly one end. A **session** is a
//! chain of turns with a title. What waits for a person is in the log too, so it survives every
//! crash. The terminal draws the list of sessions from an index in memory, a timeline of turns from
//! their reduced states, and live text as an overlay that the recorded answer replaces.
//!
//! # Floors
//!
//! A module uses strictly lower floors only; modules of one floor are strangers. A test keeps it
//! (`tests/architecture.rs`).
//!
//! | floor | modules | what lives there |
//! |---|---|---|
//! | 9 | [`cli`] | arguments, exit codes, the process |
//! | 8 | [`tui`] | state, update, layout and view (pure); the shell (terminal, loop, effects) |
//! | 7 | [`app`] | builds the graph; commands in, notices out; no screen |
//! | 6 | [`mailbox`] | messages that wait for a session, in files |
//! | 5 | [`agents`] | what an agent is: its prompt, its model, its tools |
//! | 4 | [`sessions`] | one writer for each session, the index, forks, compaction, deletion |
//! | 3 | [`runtime`] | runs one turn: the loop, recovery, context, requests, the live stream |
//! | 2 | [`store`], [`models`], [`tools`], [`policy`], [`config`] | seams and their real parts |
//! | 1 | [`domain`] | events, reducers, transcripts, references, rules, plans; pure |
//! | 0 | [`base`] | ids, clock and chance, owned tasks, text, secrets |
//!
//! `testing` (feature `testing`) stands above all floors and is used by none.
//!
//! # The life of a turn
//!
//! What follows is a whole turn in which a person is asked, and the events that its log gets:
//!
//! | what happens | recorded, in this order |
//! |---|---|
//! | a message is sent: [`Sessions::send_message`] | `turn_created`; in the session's log `turn_appended` |
//! | the turn is advanced: the model is called | `model_call_requested`, before anything is sent |
//! | the answer streams | nothing; deltas are told on the hub, and the crash buffer keeps them |
//! | the answer is whole | `model_step_event`s, `model_call_completed` |
//! | it calls a tool, and the rules want a person | `tool_permission_required`, `turn_suspended` |
//! | days later, perhaps: [`Sessions::respond_to_permission`] | `tool_permission_resolved` |
//! | the tool runs | `tool_invocation_requested` before, `tool_progress` while, `tool_result` after |
//! | the model gets the result and answers | `model_call_requested`, `model_step_event`s, `model_call_completed` |
//! | the answer calls no tool | `turn_completed` |
//!
//! A turn that is killed anywhere in between is closed or resumed from what its log says; the loop,
//! `runtime::advance`, never needs anything else. A stop ends it with `turn_cancelled`, a failure of
//! the model with `turn_failed`; a tool's failure is a result like any other.
//!
//! The same as a program, with a model, a tool and rules of its own, and all in memory. With
//! [`store::jsonl`] and [`store::live_text::Files`] in the place of the two stores, and
//! [`mailbox::inbox::Inbox`] in that of [`waiting::memory`](sessions::waiting::memory) for the messages
//! that wait, it survives a restart (`tests/embed.rs`).
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use futures_util::{StreamExt as _, stream};
//! use tokio_util::sync::CancellationToken;
//! use turnstile::base::clock::{Clock, System};
//! use turnstile::base::id::{EventIds, Ids};
//! use turnstile::base::tasks::Tasks;
//! use turnstile::domain::agent::*;
//! use turnstile::domain::event::Fact as _;
//! use turnstile::domain::json::Json;
//! use turnstile::domain::message::{Message, TextPart, UserMessage};
//! use turnstile::domain::permission::decide::{ReadGuard, Verdict};
//! use turnstile::domain::permission::plan::{LocatedPath, Plan};
//! use turnstile::domain::permission::rule::Ruling;
//! use turnstile::domain::session::entry::LatestTurnStatus;
//! use turnstile::domain::turn::event::{Decision, ToolResultData};
//! use turnstile::domain::turn::status::TurnStatus;
//! use turnstile::models::delta::{Answer, AnswerPart, ModelDelta, ProviderToolCall};
//! use turnstile::models::model::{DeltaStream, Model};
//! use turnstile::models::request::ModelRequest;
//! use turnstile::policy::checker::{Call, NoVerdict, PermissionChecker};
//! use turnstile::runtime::api::{AgentResolver, AgentSetting, FindModel, ModelGone};
//! use turnstile::runtime::context::ContextResolver;
//! use turnstile::runtime::error::ResolveError;
//! use turnstile::runtime::hub::Hub;
//! use turnstile::runtime::{MAX_MODEL_CALLS, Options, Parts, TurnRuntime};
//! use turnstile::sessions::api::{NewSession, SendMessageConfig};
//! use turnstile::sessions::{self, Sessions, SessionsParts, waiting};
//! use turnstile::store::cache::CacheBounds;
//! use turnstile::store::repo::Repo;
//! use turnstile::store::{live_text, memory};
//! use turnstile::tools::input::InputError;
//! use turnstile::tools::output::OUTPUT_BYTES;
//! use turnstile::tools::registry::Registry;
//! use turnstile::tools::tool::{Tool, ToolContext, ToolError};
//!
//! /// Calls the tool, and then says what came of it.
//! struct Parrot(ModelDescriptor);
//!
//! impl Model for Parrot {
//!     fn descriptor(&self) -> &ModelDescriptor {
//!         &self.0
//!     }
//!
//!     fn stream(&self, request: ModelRequest, _: CancellationToken) -> DeltaStream {
//!         let mut answer = Answer::default();
//!         let mut deltas = match request.messages.last() {
//!             Some(Message::Tool(result)) => {
//!                 let text: Arc<str> = format!("It says {}.", result.content).into();
//!                 let part = TextPart { text: Arc::clone(&text), provider_options: None };
//!                 answer.parts.push(AnswerPart::Text(part));
//!                 answer.finish_reason = "stop".to_owned();
//!                 vec![ModelDelta::TextStart, ModelDelta::Text(text), ModelDelta::TextEnd]
//!             }
//!             _ => {
//!                 let (name, arguments) = ("clock".to_owned(), Json::of(&serde_json::json!({})));
//!                 let call = ProviderToolCall { name, arguments, provider_options: None };
//!                 answer.parts.push(AnswerPart::ToolCall(call.clone()));
//!                 answer.finish_reason = "tool-calls".to_owned();
//!                 vec![ModelDelta::ToolCall(call)]
//!             }
//!         };
//!         deltas.push(ModelDelta::Finish(Box::new(answer)));
//!         stream::iter(deltas.into_iter().map(Ok)).boxed()
//!     }
//! }
//!
//! /// Tells a time.
//! struct Noon(ToolDescriptor);
//!
//! #[async_trait]
//! impl Tool for Noon {
//!     fn descriptor(&self) -> &ToolDescriptor {
//!         &self.0
//!     }
//!
//!     fn plan(&self, _: &Json) -> Result<Plan, InputError> {
//!         Ok(Plan::default()) // it touches nothing
//!     }
//!
//!     async fn run(&self, _: &Json, _: &ToolContext) -> Result<ToolResultData, ToolError> {
//!         Ok(ToolResultData { output: Json::text("noon"), is_error: false, metadata: None })
//!     }
//! }
//!
//! /// Rules that ask a person about every call.
//! struct AskAlways;
//!
//! #[async_trait]
//! impl PermissionChecker for AskAlways {
//!     async fn check(&self, _: &Call) -> Result<Verdict, NoVerdict> {
//!         Ok(Verdict::Ask { rule: "ask always".to_owned() })
//!     }
//!
//!     fn read_guard(&self, _: &Call) -> Arc<dyn ReadGuard> {
//!         Arc::new(Self)
//!     }
//! }
//!
//! impl ReadGuard for AskAlways {
//!     fn ruling(&self, _: &LocatedPath) -> Ruling {
//!         Ruling::Ask
//!     }
//! }
//!
//! /// The only agent, on the only model.
//! struct Only(Arc<Parrot>, Registry);
//!
//! #[async_trait]
//! impl AgentResolver for Only {
//!     async fn resolve(
//!         &self,
//!         requested: &RequestedAgent,
//!         _: &AgentSetting,
//!     ) -> Result<ResolvedAgent, ResolveError> {
//!         Ok(ResolvedAgent {
//!             agent_id: requested.agent_id(),
//!             system_prompt: "Tell the time.".into(),
//!             model: self.0.descriptor().clone(),
//!             tools: self.1.descriptors().into(),
//!         })
//!     }
//! }
//!
//! impl FindModel for Only {
//!     fn find(&self, _: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone> {
//!         Ok(Arc::<Parrot>::clone(&self.0))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = Arc::new(System::new());
//! let clock: Arc<dyn Clock> = system.clone();
//! let ids = Arc::new(Ids::new(Arc::clone(&clock), std::process::id()));
//! let store = Arc::new(memory::Store::new(Arc::clone(&clock)));
//! let tasks = Tasks::new();
//! let tools = Registry::new(vec![Arc::new(Noon(ToolDescriptor {
//!     tool_id: "clock".to_owned(),
//!     name: "clock".to_owned(),
//!     description: "Tells the time.".to_owned(),
//!     input_schema: Json::of(&serde_json::json!({ "type": "object" })),
//!     execution: Execution::Sync,
//!     requires_human: false,
//! }))])?;
//! let parrot = ModelDescriptor { provider: "zoo".to_owned(), model: "parrot".to_owned() };
//! let only = Arc::new(Only(Arc::new(Parrot(parrot)), tools.clone()));
//! let turn_logs = Repo::new(store.clone(), tasks.clone(), CacheBounds::default());
//! let runtime = TurnRuntime::new(Parts {
//!     turns: turn_logs.clone(),
//!     live_text: Arc::new(live_text::Map::default()),
//!     clock: Arc::clone(&clock),
//!     ids: ids.clone(),
//!     agents: only.clone(),
//!     models: only,
//!     tools,
//!     checker: Arc::new(AskAlways),
//!     classifier: None,
//!     hub: Hub::new(),
//!     tasks: tasks.clone(),
//!     context: ContextResolver::default(),
//!     options: Options {
//!         max_model_calls: MAX_MODEL_CALLS,
//!         output_dir: std::env::temp_dir(),
//!         output_bytes_max: OUTPUT_BYTES,
//!     },
//! });
//! let sessions = Sessions::new(SessionsParts {
//!     repo: Repo::new(store, tasks.clone(), CacheBounds::default()),
//!     turn_logs,
//!     turns: Arc::new(runtime),
//!     clock: Arc::clone(&clock),
//!     ids,
//!     waiting: Arc::new(waiting::memory::Memory::default()),
//!     event_ids: Arc::new(EventIds::new(clock, system)),
//!     zone: jiff::tz::TimeZone::UTC,
//!     tasks,
//!     current_folder: std::env::temp_dir(),
//!     options: sessions::Options::default(),
//! });
//!
//! let mut changes = sessions.index().follow();
//! let session = sessions.create_session(NewSession::default()).await?;
//! let stands = |status| {
//!     let entry = sessions.index().get(&session);
//!     entry.is_some_and(|entry| entry.latest_turn_status == LatestTurnStatus::Turn(status))
//! };
//! let config = SendMessageConfig::of(RequestedAgent::by_id("teller"));
//! let message = Arc::new(UserMessage::text("What time is it?"));
//! let turn = sessions.send_message(&session, message, config).await?;
//! while !stands(TurnStatus::Suspended) {
//!     changes.recv().await?;
//! }
//!
//! // The turn waits in its log, however often the program is started meanwhile.
//! let waiting = sessions.index().get(&session).expect("it was created").waiting.clone();
//! sessions.respond_to_permission(&turn, &waiting[0].call, Decision::Allow, None).await?;
//! while !stands(TurnStatus::Completed) {
//!     changes.recv().await?;
//! }
//!
//! let log = sessions.get_turn(&turn).await?.events;
//! let kinds: Vec<_> = log.iter().map(|event| event.fact.kind()).collect();
//! assert_eq!(
//!     kinds,
//!     [
//!         "turn_created",
//!         "model_call_requested",
//!         "model_step_event",
//!         "model_step_event",
//!         "model_call_completed",
//!         "tool_permission_required",
//!         "turn_suspended",
//!         "tool_permission_resolved",
//!         "tool_invocation_requested",
//!         "tool_result",
//!         "model_call_requested",
//!         "model_step_event",
//!         "model_step_event",
//!         "model_step_event",
//!         "model_call_completed",
//!         "turn_completed",
//!     ]
//! );
//! let answers = sessions.get_turn(&turn).await?.state.transcript().unwrap_or_default();
//! assert!(matches!(answers.last(), Some(Message::Assistant(it)) if it.plain_text() == "It says noon."));
//! # Ok(())
//! # }
//! ```
//!
//! [`Sessions::send_message`]: sessions::Sessions::send_message
//! [`Sessions::respond_to_permission`]: sessions::Sessions::respond_to_permission
//!
//! # How data flows
//!
//! A key: `tui::shell` reads it, the keymap makes an action of it, `tui::update` changes the state and
//! returns effects as values, the shell performs them, [`app`] takes the commands among them to
//! [`sessions`], which calls [`runtime`], which writes to [`store`]. Back: the runtime tells what it
//! recorded on its hub, sessions on their index, [`app`] makes notices of both, and `tui::update` folds
//! them in. Nothing flows sideways; nothing but the shell touches the terminal.
//!
//! # What each floor must never know
//!
//! - [`domain`]: time, files, tasks, terminals. It is given events and gives answers.
//! - [`store`]: what a record means. Records are JSON objects; the typed repositories know more.
//! - [`models`], [`tools`], [`policy`], [`config`]: each other. What one makes, another gets as a
//!   value of [`domain`].
//! - [`runtime`]: sessions. It runs one turn. What it keeps between calls, it could read again: the
//!   conversations that were used last, up to a bound.
//! - [`sessions`]: the screen. Everything it changes is told on the index.
//! - [`mailbox`]: when anything is delivered. It keeps what waits, and is asked for it.
//! - [`app`]: how anything is drawn.
//! - the pure half of [`tui`]: clocks, tasks, files, the terminal library's events.
//!
//! # Ways in
//!
//! - An event, or a rule of what may follow what: [`domain::turn::event`], [`domain::turn::apply`].
//! - What happens in a turn: `runtime::advance`.
//! - What a key does: `assets/keymap.toml`, then `tui::update`.
//! - A new provider: [`models`]; a new tool: [`tools`]; a rule of permission: [`policy`].

pub mod agents;
pub mod app;
pub mod base;
pub mod cli;
pub mod config;
pub mod domain;
pub mod mailbox;
pub mod models;
pub mod policy;
pub mod runtime;
pub mod sessions;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
pub mod tui;
