//! The library in another program's hands: a model, a tool and rules of its own, the logs and the
//! messages that wait (`mailbox::inbox::Inbox`) in files, and nothing of the feature `testing`. What
//! waits for a person outlives the process.
#![expect(clippy::expect_used, reason = "tests stop where they fail")]

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;
use turnstile::base::clock::{Clock, System};
use turnstile::base::id::{EventIds, Ids, SessionId};
use turnstile::base::tasks::Tasks;
use turnstile::domain::agent::{
    Execution, ModelDescriptor, RequestedAgent, ResolvedAgent, ToolDescriptor,
};
use turnstile::domain::json::Json;
use turnstile::domain::message::{Message, TextPart, UserMessage};
use turnstile::domain::permission::decide::{ReadGuard, Verdict};
use turnstile::domain::permission::plan::{LocatedPath, Plan};
use turnstile::domain::permission::rule::Ruling;
use turnstile::domain::session::entry::{LatestTurnStatus, WaitingKind};
use turnstile::domain::turn::event::{Decision, ToolResultData};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::mailbox::inbox::Inbox;
use turnstile::models::delta::{Answer, AnswerPart, ModelDelta, ProviderToolCall};
use turnstile::models::model::{DeltaStream, Model};
use turnstile::models::request::ModelRequest;
use turnstile::policy::checker::{Call, NoVerdict, PermissionChecker};
use turnstile::runtime::api::{AgentResolver, AgentSetting, FindModel, ModelGone};
use turnstile::runtime::context::ContextResolver;
use turnstile::runtime::error::ResolveError;
use turnstile::runtime::hub::Hub;
use turnstile::runtime::{MAX_MODEL_CALLS, Options, Parts, TurnRuntime};
use turnstile::sessions::api::{NewSession, SendMessageConfig};
use turnstile::sessions::{self, Sessions, SessionsParts};
use turnstile::store::cache::CacheBounds;
use turnstile::store::disk::{Disk, RealDisk};
use turnstile::store::lock::InstanceLock;
use turnstile::store::repo::Repo;
use turnstile::store::seam::SyncMode;
use turnstile::store::work_dir::WorkDir;
use turnstile::store::{jsonl, live_text};
use turnstile::tools::input::InputError;
use turnstile::tools::output::OUTPUT_BYTES;
use turnstile::tools::registry::Registry;
use turnstile::tools::tool::{Tool, ToolContext, ToolError};

/// Calls the tool, and then says what came of it.
struct Parrot(ModelDescriptor);

impl Model for Parrot {
    fn descriptor(&self) -> &ModelDescriptor {
        &self.0
    }

    fn stream(&self, request: ModelRequest, _: CancellationToken) -> DeltaStream {
        let mut answer = Answer::default();
        let mut deltas = if let Some(Message::Tool(result)) = request.messages.last() {
            let text: Arc<str> = format!("It says {}.", result.content).into();
            let part = TextPart { text: Arc::clone(&text), provider_options: None };
            answer.parts.push(AnswerPart::Text(part));
            vec![ModelDelta::TextStart, ModelDelta::Text(text), ModelDelta::TextEnd]
        } else {
            let (name, arguments) = ("clock".to_owned(), Json::of(&serde_json::json!({})));
            let call = ProviderToolCall { name, arguments, provider_options: None };
            answer.parts.push(AnswerPart::ToolCall(call.clone()));
            vec![ModelDelta::ToolCall(call)]
        };
        deltas.push(ModelDelta::Finish(Box::new(answer)));
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

/// Tells a time.
struct Noon(ToolDescriptor);

#[async_trait]
impl Tool for Noon {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.0
    }

    fn plan(&self, _: &Json) -> Result<Plan, InputError> {
        Ok(Plan::default())
    }

    async fn run(&self, _: &Json, _: &ToolContext) -> Result<ToolResultData, ToolError> {
        Ok(ToolResultData { output: Json::text("noon"), is_error: false, metadata: None })
    }
}

/// Rules that ask a person about every call.
struct AskAlways;

#[async_trait]
impl PermissionChecker for AskAlways {
    async fn check(&self, _: &Call) -> Result<Verdict, NoVerdict> {
        Ok(Verdict::Ask { rule: "ask always".to_owned() })
    }

    fn read_guard(&self, _: &Call) -> Arc<dyn ReadGuard> {
        Arc::new(Self)
    }
}

impl ReadGuard for AskAlways {
    fn ruling(&self, _: &LocatedPath) -> Ruling {
        Ruling::Ask
    }
}

/// The only agent, on the only model.
struct Only(Arc<Parrot>, Registry);

#[async_trait]
impl AgentResolver for Only {
    async fn resolve(
        &self,
        requested: &RequestedAgent,
        _: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError> {
        Ok(ResolvedAgent {
            agent_id: requested.agent_id(),
            system_prompt: "Tell the time.".into(),
            model: self.0.descriptor().clone(),
            tools: self.1.descriptors().into(),
        })
    }
}

impl FindModel for Only {
    fn find(&self, _: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone> {
        Ok(Arc::<Parrot>::clone(&self.0))
    }
}

fn tools() -> Registry {
    let clock = ToolDescriptor {
        tool_id: "clock".to_owned(),
        name: "clock".to_owned(),
        description: "Tells the time.".to_owned(),
        input_schema: Json::of(&serde_json::json!({ "type": "object" })),
        execution: Execution::Sync,
        requires_human: false,
    };
    Registry::new(vec![Arc::new(Noon(clock))]).expect("a name of its own")
}

/// A process that works with the logs below `root`, as the `number`th since they were begun.
fn start(root: &Path, number: u32, tasks: &Tasks) -> Sessions {
    let (disk, system): (Arc<dyn Disk>, _) = (Arc::new(RealDisk), Arc::new(System::new()));
    let clock: Arc<dyn Clock> = Arc::<System>::clone(&system);
    let work_dir = WorkDir::new(root.to_owned()).expect("absolute");
    work_dir.prepare(&*disk).expect("it can be written to");
    let lock = InstanceLock::acquire(Arc::clone(&disk), &work_dir, number, clock.now());
    let files = jsonl::Parts {
        disk: Arc::clone(&disk),
        clock: Arc::clone(&clock),
        entropy: Arc::<System>::clone(&system),
        tasks: tasks.clone(),
        lock: Some(Arc::new(lock.expect("nobody else is there"))),
    };
    let store = Arc::new(jsonl::Store::new(work_dir.clone(), files, jsonl::Options::default()));
    let ids = Arc::new(Ids::new(Arc::clone(&clock), number));
    let parrot = ModelDescriptor { provider: "zoo".to_owned(), model: "parrot".to_owned() };
    let only = Arc::new(Only(Arc::new(Parrot(parrot)), tools()));
    let turn_logs =
        Repo::new(Arc::<jsonl::Store>::clone(&store), tasks.clone(), CacheBounds::default());
    let runtime = TurnRuntime::new(Parts {
        turns: turn_logs.clone(),
        live_text: Arc::new(live_text::Files::new(
            Arc::clone(&disk),
            work_dir.clone(),
            tasks.clone(),
        )),
        clock: Arc::clone(&clock),
        ids: Arc::<Ids>::clone(&ids),
        agents: Arc::<Only>::clone(&only),
        models: only,
        tools: tools(),
        checker: Arc::new(AskAlways),
        classifier: None,
        hub: Hub::new(),
        tasks: tasks.clone(),
        context: ContextResolver::default(),
        options: Options {
            max_model_calls: MAX_MODEL_CALLS,
            output_dir: root.join("var/output"),
            output_bytes_max: OUTPUT_BYTES,
        },
    });
    Sessions::new(SessionsParts {
        repo: Repo::new(store, tasks.clone(), CacheBounds::default()),
        turn_logs,
        turns: Arc::new(runtime),
        clock: Arc::clone(&clock),
        ids,
        waiting: Arc::new(Inbox::new(
            disk,
            work_dir,
            Arc::clone(&clock),
            tasks.clone(),
            SyncMode::Barrier,
        )),
        event_ids: Arc::new(EventIds::new(clock, system)),
        zone: TimeZone::UTC,
        tasks: tasks.clone(),
        current_folder: root.to_owned(),
        options: sessions::Options::default(),
    })
}

/// Waits until the latest turn of a session stands so.
async fn stands(sessions: &Sessions, session: &SessionId, status: TurnStatus) {
    let mut changes = sessions.index().follow();
    let is = || {
        let entry = sessions.index().get(session);
        entry.is_some_and(|it| it.latest_turn_status == LatestTurnStatus::Turn(status))
    };
    while !is() {
        changes.recv().await.expect("the index lives");
    }
}

#[tokio::test]
async fn a_turn_of_another_program_waits_over_a_restart_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks = Tasks::new();
    let sessions = start(folder.path(), 1, &tasks);
    let session = sessions.create_session(NewSession::default()).await.expect("created");
    let config = SendMessageConfig::of(RequestedAgent::by_id("teller"));
    let message = Arc::new(UserMessage::text("What time is it?"));
    let turn = sessions.send_message(&session, message, config).await.expect("sent");
    stands(&sessions, &session, TurnStatus::Suspended).await;
    tasks.shut_down().await;
    drop(sessions);

    let tasks = Tasks::new();
    let sessions = start(folder.path(), 2, &tasks);
    sessions.scan().await.expect("the sessions can be listed");
    let entry = sessions.index().get(&session).expect("found again");
    let [waiting] = entry.waiting.as_slice() else { panic!("{entry:?}") };
    assert_eq!((&waiting.turn, waiting.kind), (&turn, WaitingKind::Permission));
    let call = waiting.call.clone();
    sessions.respond_to_permission(&turn, &call, Decision::Allow, None).await.expect("decided");
    stands(&sessions, &session, TurnStatus::Completed).await;
    let answers = sessions.get_turn(&turn).await.expect("readable").state.transcript();
    let answers = answers.expect("the turn has ended");
    let Some(Message::Assistant(last)) = answers.last() else { panic!("{answers:?}") };
    assert_eq!(last.plain_text(), "It says noon.");
    tasks.shut_down().await;
}
