//! What a model call of a turn sent, made anew from the logs: an audit of what was said to a model
//! (`design/turn-runtime.md` section 4).

use crate::base::id::TurnId;
use crate::models::request::ModelRequest;
use crate::runtime::TurnRuntime;
use crate::runtime::api::Turns as _;
use crate::runtime::compose::compose;
use crate::runtime::error::AuditError;

impl TurnRuntime {
    /// The request of the model call `model_call_index` of a turn: what the composer made of the log
    /// when the call was made, and makes of it again. Reads only.
    ///
    /// # Errors
    /// [`AuditError`] if a log that it goes back to cannot be read, or there was no such call.
    pub async fn request_of(
        &self,
        turn: &TurnId,
        model_call_index: u64,
    ) -> Result<ModelRequest, AuditError> {
        let state = self.get_turn(turn).await?.state;
        if model_call_index >= state.next_call_index() {
            return Err(AuditError::NoSuchCall { turn: turn.clone(), model_call_index });
        }
        let parts = &self.parts;
        let surroundings = parts.context.resolve(turn, &state.definition, &parts.turns).await?;
        Ok(compose(&state, &surroundings, model_call_index))
    }
}
