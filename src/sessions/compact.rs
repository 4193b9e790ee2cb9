//! Compaction: the older turns of a session are summarised, so that its next turn begins with the
//! summary (`design/sessions.md`). Nothing is taken out of any log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::message::{AssistantPart, Content, Message, UserPart};
use crate::domain::session::event::{Compacted, SessionFact};
use crate::domain::session::state::SessionState;
use crate::runtime::api::StopSignal;
use crate::sessions::Sessions;
use crate::sessions::aside::Question;
use crate::sessions::context::kept_turns;
use crate::sessions::error::SessionError;

/// The latest turns stay as they are, as many as this holds, in bytes of text; at least one does.
/// Enough for what was said last, little beside any model's window.
const KEPT_BYTES_MAX: usize = 32 * 1024;
/// How much is summarised in one call, in bytes of text: what the windows of common models hold
/// with room to answer. More is summarised piece by piece.
const PIECE_BYTES_MAX: usize = 256 * 1024;

const INSTRUCTIONS: &str = include_str!("../../assets/agents/compact.md");

/// The sessions that are being compacted: no turn starts in them meanwhile.
#[derive(Clone, Default)]
pub(super) struct Compacting {
    under_way: Arc<Mutex<BTreeMap<SessionId, StopSignal>>>,
    told: watch::Sender<BTreeSet<SessionId>>,
}

/// A compaction under way, until this is dropped.
struct UnderWay {
    sessions: Sessions,
    session: SessionId,
    stop: StopSignal,
    waited: Waited,
}

/// What became of the messages that wait for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// They wait for its end.
    ForThis,
    /// They were delivered, or are held.
    Settled,
}

impl Compacting {
    /// Whether a session is being compacted. Asked under the session's lock.
    pub(super) fn is_under_way(&self, session: &SessionId) -> bool {
        self.lock().contains_key(session)
    }

    /// Stops the compaction of a session, if there is one.
    pub(super) fn stop(&self, session: &SessionId) {
        if let Some(stop) = self.lock().get(session) {
            stop.stop(None);
        }
    }

    fn begin(&self, session: &SessionId) -> StopSignal {
        let stop = StopSignal::new();
        let mut under_way = self.lock();
        under_way.insert(session.clone(), stop.clone());
        self.tell(&under_way);
        stop
    }

    fn end(&self, session: &SessionId) {
        let mut under_way = self.lock();
        under_way.remove(session);
        self.tell(&under_way);
    }

    /// Told under the lock, so that the last word is how things stand.
    fn tell(&self, under_way: &BTreeMap<SessionId, StopSignal>) {
        self.told.send_replace(under_way.keys().cloned().collect());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, StopSignal>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // Whoever waited for the summary may be gone: nothing is asked of the model for nobody.
        self.stop.stop(None);
        self.sessions.compacting.end(&self.session);
        // Without a runtime the program is at its end, and what waits is there for the next one.
        if self.waited == Waited::ForThis && Handle::try_current().is_ok() {
            let (sessions, session) = (self.sessions.clone(), self.session.clone());
            let work = async move { sessions.deliver_what_waited(&session).await };
            drop(self.sessions.parts.tasks.spawn("deliver what waited for a summary", work));
        }
    }
}

/// What is to be summarised.
struct Plan {
    /// The summary that goes before it, if there was a compaction.
    before: Option<String>,
    /// What was said since then, in pieces.
    pieces: Vec<String>,
    first_kept: TurnId,
    model: ModelDescriptor,
}

impl Sessions {
    /// Summarises the older turns of a session with the model of its latest turn, so that the next
    /// turn begins with the summary and the latest turns. A compaction that no turn has used yet is
    /// not repeated.
    ///
    /// # Errors
    /// [`SessionError::TurnNotSettled`] if the latest turn has not ended;
    /// [`SessionError::NothingToCompact`]; [`SessionError::NoSummary`] if the model gave none;
    /// [`SessionError::Read`] if a turn is damaged. The session is as it was then.
    pub async fn compact(&self, session: &SessionId) -> Result<(), SessionError> {
        let (state, plan, mut under_way) = {
            let _lock = self.locks.lock(session).await;
            self.closing.check(session)?;
            let state = self.get_session(session).await?;
            let nothing = || SessionError::NothingToCompact(session.clone());
            let latest = state.latest().ok_or_else(nothing)?;
            self.check_settled(session, &latest.id).await?;
            if state.pending_compaction().is_some() {
                return Ok(());
            }
            // Reading a long session takes its time: it can be stopped from here on.
            let under_way = UnderWay {
                sessions: self.clone(),
                session: session.clone(),
                stop: self.compacting.begin(session),
                waited: Waited::ForThis,
            };
            let plan = self.plan(&state).await?.ok_or_else(nothing)?;
            (state, plan, under_way)
        };
        // The lock is free meanwhile; that no turn starts is what the mark is for.
        let summary = self.summarise(&state, &plan, &under_way.stop).await;
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let mut state = match self.get_session(session).await {
            Ok(state) => state,
            // It was deleted meanwhile.
            Err(error) => return Err(summary.err().unwrap_or(error)),
        };
        let compacted = match summary {
            Ok(summary) => self.record_summary(&mut state, summary, plan.first_kept).await,
            Err(error) => Err(error),
        };
        // What was sent meanwhile has waited for this. Whoever breaks off before that leaves it to
        // the end of the mark.
        if let Err(error) = self.deliver_next(&state).await {
            tracing::warn!(%session, %error, "a message that waits was not delivered");
        }
        under_way.waited = Waited::Settled;
        drop(under_way);
        compacted
    }

    /// Stops the compaction of a session, if one is under way: it ends with
    /// [`SessionError::NoSummary`], and the session is as it was. What waits for it goes then.
    pub fn stop_compaction(&self, session: &SessionId) {
        self.compacting.stop(session);
    }

    /// The sessions that are being compacted, and from then on every change of that.
    #[must_use]
    pub fn follow_compactions(&self) -> watch::Receiver<BTreeSet<SessionId>> {
        self.compacting.told.subscribe()
    }

    async fn record_summary(
        &self,
        session: &mut SessionState,
        summary: String,
        first_kept_turn_id: TurnId,
    ) -> Result<(), SessionError> {
        let compaction_id = self.parts.ids.next();
        let compacted = Compacted { compaction_id, summary, first_kept_turn_id };
        *session = self.record(session, vec![SessionFact::Compacted(compacted)]).await?;
        Ok(())
    }

    /// What is to be summarised of a session whose latest turn has ended; nothing if all of it is
    /// kept.
    async fn plan(&self, session: &SessionState) -> Result<Option<Plan>, SessionError> {
        let last = session.compactions.last();
        let turns = match last {
            Some(last) => kept_turns(session, &last.fact.first_kept_turn_id),
            None => &session.turns,
        };
        let mut texts = Vec::with_capacity(turns.len());
        for turn in turns {
            texts.push(as_text(&self.carried_over(session, turn).await?));
        }
        let kept = kept_at_the_end(&texts);
        let (Some(first_kept), Some(latest)) = (turns.get(turns.len() - kept), session.latest())
        else {
            return Ok(None);
        };
        texts.truncate(turns.len() - kept);
        if texts.is_empty() {
            return Ok(None);
        }
        Ok(Some(Plan {
            before: last.map(|last| last.fact.summary.clone()),
            pieces: in_pieces(texts),
            first_kept: first_kept.id.clone(),
            model: latest.model.clone(),
        }))
    }

    async fn summarise(
        &self,
        session: &SessionState,
        plan: &Plan,
        stop: &StopSignal,
    ) -> Result<String, SessionError> {
        let mut summary = plan.before.clone().unwrap_or_default();
        for piece in &plan.pieces {
            let text = if summary.is_empty() {
                piece.clone()
            } else {
                format!("## Summary of what was said before\n\n{summary}\n\n{piece}")
            };
            let question = Question {
                name: "compact",
                instructions: INSTRUCTIONS,
                model: &plan.model,
                text: &text,
            };
            let answer = self.ask_aside(session, &question, stop).await;
            summary = answer.map_err(|source| {
                let session = session.id.clone();
                SessionError::NoSummary { session, source: Box::new(source) }
            })?;
        }
        Ok(summary)
    }
}

/// How many of these turns stay as they are.
fn kept_at_the_end(texts: &[String]) -> usize {
    let mut bytes = 0;
    let fit = texts.iter().rev().take_while(|text| {
        bytes += text.len();
        bytes <= KEPT_BYTES_MAX
    });
    fit.count().max(1).min(texts.len())
}

/// Turns, as many in a piece as one call takes; at least one.
fn in_pieces(texts: Vec<String>) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for text in texts {
        match pieces.last_mut() {
            Some(piece) if piece.len() + text.len() <= PIECE_BYTES_MAX => piece.push_str(&text),
            _ => pieces.push(text),
        }
    }
    pieces
}

/// A conversation as text: who said what, which tools were called, and what came of it.
fn as_text(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let (who, said) = match message {
            Message::User(message) => ("The person", message_text(&message.content)),
            Message::Assistant(message) => ("The assistant", answer_text(&message.content)),
            Message::Tool(message) => ("A tool", message.content.to_string()),
        };
        writeln!(text, "## {who}\n\n{said}\n").ok();
    }
    text
}

fn message_text(content: &Content<UserPart>) -> String {
    match content {
        Content::Text(text) => text.to_string(),
        Content::Parts(parts) => {
            let said = parts.iter().map(|part| match part {
                UserPart::Text(part) => part.text.clone(),
                UserPart::Attachment(file) => format!("(attaches {})", file.path),
                UserPart::Image(_) => "(attaches an image)".to_owned(),
            });
            said.collect::<Vec<_>>().join("\n\n")
        }
    }
}

fn answer_text(content: &Content<AssistantPart>) -> String {
    match content {
        Content::Text(text) => text.to_string(),
        Content::Parts(parts) => {
            let said = parts.iter().filter_map(|part| match part {
                AssistantPart::Text(part) => Some(part.text.to_string()),
                AssistantPart::Reasoning(_) => None,
                AssistantPart::ToolCall(call) => {
                    Some(format!("(calls {} with {})", call.tool_name, call.arguments.get()))
                }
            });
            said.collect::<Vec<_>>().join("\n\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(messages: &str, expected: &str) {
        let messages: Vec<Message> = serde_json::from_str(messages).expect("messages");
        assert_eq!(as_text(&messages), expected);
    }

    #[test]
    fn a_conversation_is_said_with_its_files_its_calls_and_their_results() {
        check_text(
            r#"[{"role":"user","content":[{"type":"text","text":"Read it."},{"type":"attachment","path":"/a/b.txt","filename":"b.txt","mimeType":"text/plain"},{"type":"image","data":"","mediaType":"image/png"}]},
                {"role":"assistant","content":[{"type":"reasoning","text":"Hm."},{"type":"text","text":"I do."},{"type":"tool-call","toolCallId":"c1","toolName":"read-file","arguments":{"path":"b"}}]},
                {"role":"tool","content":"It says b.","toolCallId":"c1","toolName":"read-file"},
                {"role":"assistant","content":"It says b."}]"#,
            "## The person\n\nRead it.\n\n(attaches /a/b.txt)\n\n(attaches an image)\n\n\
             ## The assistant\n\nI do.\n\n(calls read-file with {\"path\":\"b\"})\n\n\
             ## A tool\n\nIt says b.\n\n\
             ## The assistant\n\nIt says b.\n\n",
        );
    }

    #[test]
    fn the_latest_turns_are_kept_as_far_as_they_fit_and_one_in_any_case() {
        let check = |sizes: &[usize], kept| {
            let texts: Vec<_> = sizes.iter().map(|size| "x".repeat(*size)).collect();
            assert_eq!(kept_at_the_end(&texts), kept, "{sizes:?}");
        };
        check(&[], 0);
        check(&[1], 1);
        check(&[KEPT_BYTES_MAX + 1], 1);
        check(&[1, KEPT_BYTES_MAX], 1);
        check(&[1, 1, KEPT_BYTES_MAX - 1], 2);
        check(&[1, KEPT_BYTES_MAX, 1], 1);
    }
}
