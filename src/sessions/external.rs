//! Answers from outside: each becomes one advance of its turn, and is told as soon as it is safe
//! (`spec/session-layer.md` section 9.2).

use crate::base::id::{ToolCallId, TurnId};
use crate::domain::json::Json;
use crate::domain::question::{ASK_HUMAN, Answer, Questions};
use crate::domain::turn::event::{Decision, ToolResultData};
use crate::domain::turn::state::TurnState;
use crate::runtime::api::ExternalInput;
use crate::sessions::Sessions;
use crate::sessions::advance::Followed;
use crate::sessions::error::SessionError;

impl Sessions {
    /// Decides on a call that waits for permission. The decision is safe when this returns. The
    /// person's words to the model stand in `metadata.reason`.
    ///
    /// # Errors
    /// What the runtime says of a call that does not wait, or a turn that has ended.
    pub async fn respond_to_permission(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        decision: Decision,
        metadata: Option<Json>,
    ) -> Result<(), SessionError> {
        let call = call.clone();
        self.answer(turn, ExternalInput::PermissionDecision { call, decision, metadata }).await
    }

    /// Answers a single question with a text.
    ///
    /// # Errors
    /// [`SessionError::SeveralQuestions`] if there are several; else as
    /// [`Sessions::answer_questions`].
    pub async fn respond_to_ask_human(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        answer: &str,
    ) -> Result<(), SessionError> {
        let state = self.parts.turns.get_turn(turn).await?.state;
        check_asks(&state, call)?;
        let asked = state.tool_calls.get(call).and_then(|it| Questions::read(&it.arguments).ok());
        let id = match asked.as_ref().map(Questions::list) {
            Some([only]) => only.id.clone(),
            Some([_, _, ..]) => return Err(SessionError::SeveralQuestions(call.clone())),
            // A call that there is not, or that waits for nothing, is the runtime's to refuse.
            Some([]) | None => String::new(),
        };
        let answers = [(id, vec![answer.to_owned()])].into_iter().collect();
        self.answer_questions(turn, call, &Answer::Answered(answers)).await
    }

    /// Answers, or dismisses, a form of questions.
    ///
    /// # Errors
    /// [`SessionError::NoQuestion`] if the call waits for the result of another tool; else as
    /// [`Sessions::respond_to_permission`].
    pub async fn answer_questions(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        answer: &Answer,
    ) -> Result<(), SessionError> {
        check_asks(&self.parts.turns.get_turn(turn).await?.state, call)?;
        self.deliver_async_tool_result(turn, call, answer.to_result()).await
    }

    /// Delivers the result of an async tool.
    ///
    /// # Errors
    /// As [`Sessions::respond_to_permission`].
    pub async fn deliver_async_tool_result(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        result: ToolResultData,
    ) -> Result<(), SessionError> {
        let call = call.clone();
        self.answer(turn, ExternalInput::AsyncToolResult { call, result }).await
    }

    /// Delivers a report of an async tool on its way.
    ///
    /// # Errors
    /// As [`Sessions::respond_to_permission`].
    pub async fn report_async_tool_progress(
        &self,
        turn: &TurnId,
        call: &ToolCallId,
        progress: Json,
    ) -> Result<(), SessionError> {
        let call = call.clone();
        self.answer(turn, ExternalInput::AsyncToolProgress { call, progress }).await
    }

    async fn answer(&self, turn: &TurnId, input: ExternalInput) -> Result<(), SessionError> {
        let state = self.parts.turns.get_turn(turn).await?.state;
        self.begin(&state, input).await?.outcome().await
    }

    /// Starts an advance of a turn with this input, unless its session is being deleted.
    pub(super) async fn begin(
        &self,
        turn: &TurnState,
        input: ExternalInput,
    ) -> Result<Followed, SessionError> {
        let session = turn.definition.session_id.as_ref();
        let session = session.ok_or_else(|| SessionError::NoSession(turn.id.clone()))?;
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let session = self.get_session(session).await?;
        Ok(self.advance(&session, &turn.id, Some(input)))
    }
}

/// That a call which waits for a result waits for a person's. Calls that wait for none are the
/// runtime's to refuse.
fn check_asks(turn: &TurnState, call: &ToolCallId) -> Result<(), SessionError> {
    let awaits = turn.tool_calls.get(call).filter(|it| it.awaits_async_result());
    match awaits.filter(|it| it.name != ASK_HUMAN) {
        Some(other) => {
            Err(SessionError::NoQuestion { call: call.clone(), tool: other.name.clone() })
        }
        None => Ok(()),
    }
}
