//! Commands: each is carried out in the background; what comes of it is a notice.

mod conversation;
mod inspect;
mod queue;

use crate::agents::builtin;
use crate::agents::scratch;
use crate::app::command::{Command, Decide, Draft, DraftOf, Send, StalledWish, Unsent};
use crate::app::keep::Keep;
use crate::app::notice::{Notice, Refused};
use crate::app::{Access, App};
use crate::base::error::with_causes;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::{ModelDescriptor, RequestedAgent};
use crate::domain::json::Json;
use crate::sessions::api::{NewSession, SendMessageConfig, Sent, SessionFolder};
use crate::sessions::error::SessionError;

impl App {
    /// Carries a command out in the background.
    pub fn perform(&self, command: Command) {
        if let Some(what) = self.forbidden(&command) {
            let why = "nothing can be changed in a --read-only view".to_owned();
            let app = self.clone();
            self.spawn(async move { app.tell(Notice::Refused { what, why }).await });
            return;
        }
        match command {
            Command::Open(session) => self.follow(Some(session)),
            Command::Close => self.follow(None),
            Command::SaveDraft { of, draft } => self.keep(Keep::Save { of, draft }),
            Command::AppendDraft { of, typed } => self.keep(Keep::Append { of, typed }),
            Command::LoadDraft(of) => self.keep(Keep::Load(of)),
            Command::Remember(text) => self.keep(Keep::Remember(text)),
            Command::SaveListSettings(settings) => self.keep(Keep::List(settings)),
            Command::Unsent(unsent) => self.unsent(unsent),
            Command::Stalled(StalledWish::Retry) => self.graph.storage.coordinator.retry(),
            // Whoever waits for it is told, each for itself.
            Command::Stalled(StalledWish::GiveUp) => drop(self.graph.storage.coordinator.give_up()),
            command => {
                if let Command::Send(send) = &command {
                    self.keep(Keep::Sending(send.from.clone()));
                }
                let app = self.clone();
                self.spawn(async move { app.carry_out(command).await });
            }
        }
    }

    /// What a read-only view refuses, by the part that is refused.
    fn forbidden(&self, command: &Command) -> Option<Refused> {
        if self.graph.access == Access::Full {
            return None;
        }
        match command {
            Command::Open(_) | Command::Close | Command::LoadDraft(_) | Command::Inspect(_) => None,
            Command::Send(send) => Some(Refused::Send(send.from.clone())),
            Command::Unsent(Unsent::TakeBack { session, event, .. }) => {
                let (session, event) = (session.clone(), event.clone());
                Some(Refused::TakeBack { session, event })
            }
            Command::Decide(Decide { turn, .. }) | Command::Answer { turn, .. } => {
                Some(Refused::Respond(turn.clone()))
            }
            Command::Stop(turn) => Some(Refused::Stop(turn.clone())),
            Command::Resume(session) | Command::CloseInterrupted(session) => {
                Some(Refused::Resume(session.clone()))
            }
            Command::Rename { session, .. }
            | Command::Fork { session, .. }
            | Command::Compact(session)
            | Command::StopCompaction(session)
            | Command::Unsent(Unsent::Release(session) | Unsent::Edit { session, .. }) => {
                Some(Refused::Session(session.clone()))
            }
            Command::Delete(sessions)
            | Command::Restore(sessions)
            | Command::Purge(sessions)
            | Command::Archive { sessions, .. } => sessions.first().cloned().map(Refused::Session),
            Command::SaveDraft { .. }
            | Command::AppendDraft { .. }
            | Command::Remember(_)
            | Command::SaveListSettings(_)
            | Command::Stalled(_) => Some(Refused::Keep),
        }
    }

    async fn carry_out(&self, command: Command) {
        let sessions = &self.graph.sessions;
        match command {
            Command::Send(send) => self.send(send).await,
            Command::Decide(Decide { turn, call, decision, reason }) => {
                let metadata =
                    reason.map(|reason| Json::of(&serde_json::json!({"reason": reason})));
                let done = sessions.respond_to_permission(&turn, &call, decision, metadata).await;
                self.responded(done, turn, call).await;
            }
            Command::Answer { turn, call, answer } => {
                let done = sessions.answer_questions(&turn, &call, &answer).await;
                self.responded(done, turn, call).await;
            }
            Command::Stop(turn) => {
                let done = sessions.stop_turn(&turn, None).await;
                self.settle(done, Refused::Stop(turn)).await;
            }
            Command::Resume(session) => {
                let done = sessions.resume_turn(&session).await;
                self.settle(done, Refused::Resume(session)).await;
            }
            Command::CloseInterrupted(session) => {
                let done = sessions.close_interrupted(&session).await;
                self.settle(done, Refused::Resume(session)).await;
            }
            command => self.change(command).await,
        }
    }

    /// Carries out what is done with whole sessions.
    async fn change(&self, command: Command) {
        match command {
            Command::Rename { session, title } => {
                let done = self.graph.sessions.set_title(&session, &title).await;
                self.settle(done, Refused::Session(session)).await;
            }
            Command::Fork { session, at, draft } => self.fork(session, at, draft).await,
            Command::Compact(session) => self.compact(session).await,
            Command::StopCompaction(session) => self.graph.sessions.stop_compaction(&session),
            Command::Inspect(inspect) => self.inspect(inspect).await,
            Command::Delete(ids) => self.delete(ids).await,
            Command::Restore(ids) => self.restore(ids).await,
            Command::Purge(ids) => self.purge(ids).await,
            Command::Archive { sessions, archived } => self.archive(sessions, archived).await,
            // `perform` and `carry_out` have taken these already.
            Command::Send(_)
            | Command::Decide(_)
            | Command::Answer { .. }
            | Command::Stop(_)
            | Command::Resume(_)
            | Command::CloseInterrupted(_)
            | Command::Open(_)
            | Command::Close
            | Command::SaveDraft { .. }
            | Command::AppendDraft { .. }
            | Command::LoadDraft(_)
            | Command::Remember(_)
            | Command::Unsent(_)
            | Command::SaveListSettings(_)
            | Command::Stalled(_) => {}
        }
    }

    async fn send(&self, send: Send) {
        let from = send.from.clone();
        match self.try_send(send).await {
            Ok((session, turn)) => {
                // The message is in the turn's log, or waits durably: its draft has done its duty.
                self.keep(Keep::Sent(from.clone()));
                self.tell(match turn {
                    Some(turn) => Notice::Sent { from, session, turn },
                    None => Notice::Queued { from, session },
                })
                .await;
            }
            Err(error) => self.tell(refused(Refused::Send(from), &error)).await,
        }
    }

    /// Sends a message; there is no turn if it waits.
    async fn try_send(&self, send: Send) -> Result<(SessionId, Option<TurnId>), SessionError> {
        let sessions = &self.graph.sessions;
        let (session, latest) = match send.from {
            DraftOf::Session(session) => {
                let state = sessions.get_session(&session).await?;
                let latest = state.latest().cloned();
                (Some(session), latest)
            }
            DraftOf::NewSession | DraftOf::Prompt(_) | DraftOf::Rewrite => (None, None),
        };
        let agent = match (send.settings.agent, latest) {
            (Some(agent), _) => agent,
            (None, Some(turn)) => with_model(&turn.agent_id, self.model_after(turn.model)),
            (None, None) => RequestedAgent::by_id(&self.graph.default_agent),
        };
        let config = SendMessageConfig {
            reasoning_effort: send.settings.reasoning_effort,
            ..SendMessageConfig::of(agent.clone())
        };
        if let Some(session) = session {
            self.prepare_scratch(&session).await;
            let begun = sessions.send_or_queue(&session, send.message, config).await?;
            return Ok((session, turn_of(begun)));
        }
        let session = sessions.create_session(self.new_session(&agent)).await?;
        self.prepare_scratch(&session).await;
        match sessions.send_or_queue(&session, send.message, config).await {
            Ok(begun) => Ok((session, turn_of(begun))),
            Err(error) => {
                self.take_back(&session).await;
                Err(error)
            }
        }
    }

    /// The model that a conversation goes on with: the one that it had, unless another was named for
    /// this start or it is not configured any more.
    fn model_after(&self, latest: ModelDescriptor) -> ModelDescriptor {
        let is_there = || self.graph.models.model(&latest).is_ok();
        if !self.graph.model_is_for_this_start && is_there() {
            return latest;
        }
        self.graph.default_model.get().model
    }

    /// Takes a session back whose first message was refused: it is created with that or not at all.
    async fn take_back(&self, session: &SessionId) {
        let taken = match self.graph.sessions.delete_session(session).await {
            Ok(removed) => self.graph.sessions.destroy_removed(&removed).await,
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            tracing::warn!(%session, %error, "a session without a message is left");
        }
    }

    /// The guide's sessions have a folder of their own, so that it can show changes of files
    /// without touching anybody's.
    fn new_session(&self, agent: &RequestedAgent) -> NewSession {
        let default = || self.graph.default_model.get().model;
        let model = agent.model().cloned().unwrap_or_else(default);
        let guide =
            agent.agent_id() == builtin::GUIDE || model == builtin::GUIDE_MODEL.descriptor();
        let folder = if guide {
            SessionFolder::OwnIn(self.graph.scratch_folders.clone())
        } else {
            SessionFolder::Current
        };
        NewSession { folder, ..NewSession::default() }
    }

    /// Makes the scratch folder of a session that has one, if it is not there.
    async fn prepare_scratch(&self, session: &SessionId) {
        let Ok(state) = self.graph.sessions.get_session(session).await else { return };
        let folder = self.graph.sessions.folder_of(&state);
        if !folder.starts_with(&self.graph.scratch_folders) {
            return;
        }
        let prepared = self.graph.tasks.spawn_blocking(move || scratch::prepare(&folder)).await;
        if let Ok(Err(error)) = prepared {
            tracing::warn!(%error, "the guide's folder cannot be made");
        }
    }

    /// What came of an answer in a prompt; what was half typed there goes once it is safe.
    async fn responded(&self, done: Result<(), SessionError>, turn: TurnId, call: ToolCallId) {
        match done {
            Ok(()) => {
                self.keep(Keep::Save { of: DraftOf::Prompt(call), draft: Draft::default() });
            }
            Err(error) => self.tell(refused(Refused::Respond(turn), &error)).await,
        }
    }

    async fn settle<E: std::error::Error>(&self, done: Result<(), E>, what: Refused) {
        if let Err(error) = done {
            self.tell(refused(what, &error)).await;
        }
    }
}

/// The turn that a message began; none if it waits.
fn turn_of(sent: Sent) -> Option<TurnId> {
    match sent {
        Sent::Turn(turn) => Some(turn),
        Sent::Waits(_) => None,
    }
}

fn with_model(agent_id: &str, model: ModelDescriptor) -> RequestedAgent {
    use crate::domain::agent::{AgentById, AgentOverrides};
    let overrides = AgentOverrides { model: Some(model), composition: None };
    RequestedAgent::ById(AgentById { agent_id: agent_id.to_owned(), overrides: Some(overrides) })
}

/// The notice of something that was not done.
pub(super) fn refused(what: Refused, why: &dyn std::error::Error) -> Notice {
    Notice::Refused { what, why: with_causes(why) }
}
