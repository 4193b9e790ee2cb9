//! Sending a message: the next turn of a session (`spec/session-layer.md` sections 7 and 9.1).

use std::sync::Arc;

use crate::base::id::{SessionId, TurnId};
use crate::base::text;
use crate::domain::event::Event;
use crate::domain::message::UserMessage;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::{SessionEvent, SessionFact, TitleChanged, TurnAppended};
use crate::domain::session::state::SessionState;
use crate::domain::turn::state::TurnState;
use crate::domain::turn::status::TurnStatus;
use crate::runtime::api::{CreateConfig, CreateTurn};
use crate::sessions::Sessions;
use crate::sessions::api::SendMessageConfig;
use crate::sessions::error::{SessionError, Standing};
use crate::store::error::StoreError;
use crate::store::log::LogId;
use crate::store::seam::Durability;

impl Sessions {
    /// Sends a message: a new turn of the session, which starts to run. The answer is followed by
    /// its events (`spec/session-layer.md` section 9.1).
    ///
    /// # Errors
    /// [`SessionError::TurnNotSettled`] if the latest turn has not ended; nothing is created then.
    pub async fn send_message(
        &self,
        session: &SessionId,
        input: Arc<UserMessage>,
        config: SendMessageConfig,
    ) -> Result<TurnId, SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let state = self.get_session(session).await?;
        if let Some(latest) = state.latest() {
            self.check_settled(session, &latest.id).await?;
        }
        self.leave_behind(session).await?;
        let turn = self.start_turn(&state, input, config).await?;
        self.forget_error(session).await;
        Ok(turn)
    }

    /// Starts the next turn of a session whose latest turn has ended. Called under the session's
    /// lock.
    pub(super) async fn start_turn(
        &self,
        state: &SessionState,
        input: Arc<UserMessage>,
        config: SendMessageConfig,
    ) -> Result<TurnId, SessionError> {
        let session = &state.id;
        self.make_safe(state).await?;
        let turn = self
            .parts
            .turns
            .create_turn(CreateTurn {
                session_id: Some(session.clone()),
                agent: config.agent,
                context: self.next_context(state).await?,
                input: Arc::clone(&input),
                config: CreateConfig {
                    permission: config.permission,
                    human: config.human,
                    max_model_calls: config.max_model_calls,
                    reasoning_effort: config.reasoning_effort,
                },
                folder: self.folder_of(state),
                session_created_at: state.created_at,
            })
            .await?;
        let created = self.parts.turns.get_turn(&turn).await?;
        let events = self.appended(state, &created.state, &input);
        let state = self.parts.repo.append(session, &events, Durability::Barrier).await?;
        // Live before it is in the index, so that nobody takes it for interrupted.
        let registration = self.live.register(session, &turn);
        self.index.put(SessionIndexEntry::new(&state, Some(&created.state)), 1);
        self.start(registration, &state, &turn, None);
        Ok(turn)
    }

    /// Flushes what is pending for a session and its latest turn: nothing new is built on what the
    /// disk has not taken.
    pub(super) async fn make_safe(&self, session: &SessionState) -> Result<(), SessionError> {
        let latest = session.latest().map(|turn| LogId::turn(&turn.id));
        for log in [LogId::session(&session.id)].into_iter().chain(latest) {
            let log = log.map_err(StoreError::from)?;
            self.parts.repo.store().flush(Some(&log)).await.map_err(|error| error.first)?;
        }
        Ok(())
    }

    /// The events that a new turn adds to its session.
    fn appended(
        &self,
        session: &SessionState,
        turn: &TurnState,
        input: &UserMessage,
    ) -> Vec<SessionEvent> {
        let ts = self.parts.clock.now();
        let resolved = &turn.definition.agent.resolved;
        let appended = SessionFact::TurnAppended(TurnAppended {
            turn_id: turn.id.clone(),
            session_seq: session.turns.len() as u64 + 1,
            agent_id: resolved.agent_id().to_owned(),
            model: resolved.model().clone(),
        });
        let title = match session.title {
            Some(_) => None,
            None => Some(text::title(&input.plain_text())).filter(|title| !title.is_empty()),
        };
        let titled = title.map(|title| SessionFact::TitleChanged(TitleChanged { title }));
        let facts = [appended].into_iter().chain(titled);
        facts.map(|fact| Event { id: session.id.clone(), ts, fact }).collect()
    }

    /// Refuses what would begin a turn after this one, which is the latest, while it has not ended or
    /// its session is being compacted.
    pub(super) async fn check_settled(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<(), SessionError> {
        if self.compacting.is_under_way(session) {
            let (session, turn) = (session.clone(), turn.clone());
            let standing = Standing::Compacting;
            return Err(SessionError::TurnNotSettled { session, turn, standing });
        }
        self.check_ended(session, turn).await
    }

    /// Refuses what would build on a turn that has not ended.
    pub(super) async fn check_ended(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<(), SessionError> {
        let is_live = self.live.is_live(turn);
        let status = self.parts.turns.get_turn(turn).await?.state.status();
        if status.is_terminal() {
            return Ok(());
        }
        let standing = if is_live && status == TurnStatus::Idle {
            Standing::Running
        } else {
            Standing::Resting(status)
        };
        Err(SessionError::TurnNotSettled { session: session.clone(), turn: turn.clone(), standing })
    }
}
