//! A program behind the screen: it carries commands out, late or not at all, and tells what comes of
//! it. Its disk is what a killed program would find again.

use std::collections::{BTreeMap, VecDeque};

use super::world::{Session, asking, ended, questioning, running};
use crate::app::command::{Command, Draft, DraftOf, Unsent};
use crate::app::notice::{Notice, Refused, UnsentMessage};
use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::question::{ASK_HUMAN, Answer};
use crate::domain::turn::event::{Decision, ModelCallFailed, ResultSource, TurnFact};
use crate::domain::turn::status::TurnStatus;
use crate::tui::editor::{Editor, Shape};

pub(super) struct App {
    pub(super) sessions: Vec<Session>,
    pub(super) drafts: BTreeMap<DraftOf, Draft>,
    pub(super) history: Vec<String>,
    pub(super) sent: Vec<String>,
    /// What waits to be delivered.
    pub(super) unsent: BTreeMap<SessionId, Vec<UnsentMessage>>,
    made: usize,
    pub(super) queue: VecDeque<Command>,
}

/// Whether a command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Willing,
    Refusing,
}

const FORM: &str =
    r#"{"questions":[{"id":"a","text":"?","options":["x","y"]},{"id":"b","text":"?"}]}"#;

impl App {
    /// One session of each kind.
    pub(super) fn new() -> Self {
        let sessions = vec![ended("s1"), running("s2"), asking("s3", 2), questioning("s4", FORM)];
        let (drafts, history, sent) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (unsent, queue) = (BTreeMap::new(), VecDeque::new());
        Self { sessions, drafts, history, sent, unsent, made: 0, queue }
    }

    /// All texts that a killed program would find again.
    pub(super) fn disk(&self) -> String {
        let drafts = self.drafts.values();
        let drafts = drafts.map(|draft| Editor::with_draft(Shape::Page, draft).text());
        let texts = drafts.chain(self.history.iter().cloned()).chain(self.sent.iter().cloned());
        let waits = self.unsent.values().flatten().map(|message| message.text.clone());
        texts.chain(waits).collect()
    }

    /// Carries the oldest command out, or refuses it if it can be refused.
    pub(super) fn serve(&mut self, mood: Mood) -> Vec<Notice> {
        let Some(command) = self.queue.pop_front() else { return Vec::new() };
        let refused = |what| vec![Notice::Refused { what, why: "refused".into() }];
        match command {
            Command::SaveDraft { of, draft } => {
                if draft.text.is_empty() {
                    self.drafts.remove(&of);
                } else {
                    self.drafts.insert(of, draft);
                }
                Vec::new()
            }
            Command::AppendDraft { of, typed } => {
                let kept = self.drafts.remove(&of).unwrap_or_default();
                self.drafts.insert(of, kept.followed_by(&typed));
                Vec::new()
            }
            Command::LoadDraft(of) => {
                let draft = self.drafts.get(&of).cloned().unwrap_or_default();
                vec![Notice::Draft { of, draft }]
            }
            Command::Remember(text) => {
                self.history.push(text);
                Vec::new()
            }
            Command::Open(id) => {
                let opened = self.find(&id).map(|session| session.opened()).unwrap_or_default();
                opened.into_iter().chain([self.waiting_in(&id)]).collect()
            }
            Command::Unsent(unsent) => self.serve_unsent(unsent, mood),
            Command::Send(send) if mood == Mood::Refusing => refused(Refused::Send(send.from)),
            Command::Send(send) => self.send(&send.from, &send.message.plain_text()),
            Command::Decide(decide) if mood == Mood::Refusing => {
                refused(Refused::Respond(decide.turn))
            }
            Command::Answer { turn, .. } if mood == Mood::Refusing => {
                refused(Refused::Respond(turn))
            }
            Command::Decide(decide) => {
                self.sent.extend(decide.reason);
                self.answer(&decide.call, Some(decide.decision))
            }
            Command::Answer { call, answer, .. } => {
                if let Answer::Answered(answers) = answer {
                    for (_, texts) in answers {
                        self.sent.extend(texts);
                    }
                }
                self.answer(&call, None)
            }
            Command::Stop(turn) => {
                let session = self
                    .sessions
                    .iter_mut()
                    .find(|s| s.turns.last().is_some_and(|last| last.id == turn));
                session.map(cancel).unwrap_or_default()
            }
            command => self.serve_session(command, mood),
        }
    }

    /// As [`serve`](Self::serve), what is done with whole sessions.
    fn serve_session(&mut self, command: Command, mood: Mood) -> Vec<Notice> {
        let refused = |what| vec![Notice::Refused { what, why: "refused".into() }];
        match command {
            Command::Delete(ids) => {
                self.sessions.retain(|session| !ids.contains(&session.id));
                let gone = ids.iter().cloned();
                let gone = gone.map(|session| Notice::IndexChanged { session, entry: None });
                gone.chain([Notice::Deleted(ids.clone())]).collect()
            }
            Command::Fork { session, .. } if mood == Mood::Refusing => {
                refused(Refused::Session(session))
            }
            Command::Fork { session: of, at, draft } => self.fork(&of, at.as_ref(), draft),
            Command::Resume(id) | Command::CloseInterrupted(id) if mood == Mood::Refusing => {
                refused(Refused::Resume(id))
            }
            Command::Resume(id) => {
                self.find(&id).map(|s| vec![s.turn().started()]).unwrap_or_default()
            }
            Command::CloseInterrupted(id) => self.find(&id).map(cancel).unwrap_or_default(),
            Command::Archive { sessions, archived } => {
                vec![Notice::Archived { sessions, archived }]
            }
            // `serve` has taken these already.
            Command::SaveDraft { .. }
            | Command::AppendDraft { .. }
            | Command::LoadDraft(_)
            | Command::Remember(_)
            | Command::Open(_)
            | Command::Unsent(_)
            | Command::Send(_)
            | Command::Decide(_)
            | Command::Answer { .. }
            | Command::Stop(_)
            // These change nothing that is looked at.
            | Command::Close
            | Command::Purge(_)
            | Command::Compact(_)
            | Command::StopCompaction(_)
            | Command::Inspect(_)
            | Command::Rename { .. }
            | Command::Restore(_)
            | Command::Stalled(_)
            | Command::SaveListSettings(_) => Vec::new(),
        }
    }

    /// What happens by itself next in a session.
    pub(super) fn happen(&mut self, at: usize) -> Vec<Notice> {
        let count = self.sessions.len();
        let Some(session) = self.sessions.get_mut(at.checked_rem(count).unwrap_or(0)) else {
            return Vec::new();
        };
        match session.turns.last().map(|turn| turn.state().status()) {
            // What was forked before its first turn has none.
            None
            | Some(
                TurnStatus::Completed
                | TurnStatus::Failed
                | TurnStatus::Cancelled
                | TurnStatus::Suspended,
            ) => Vec::new(),
            Some(TurnStatus::Idle) => advance(session),
        }
    }

    fn find(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }

    fn send(&mut self, from: &DraftOf, text: &str) -> Vec<Notice> {
        self.sent.push(text.to_owned());
        self.drafts.remove(from);
        let id = match from {
            DraftOf::Session(id) => id.clone(),
            DraftOf::NewSession | DraftOf::Prompt(_) | DraftOf::Rewrite => {
                let id = format!("n{}", self.sessions.len());
                self.sessions.push(Session::new(&id));
                SessionId::from(id)
            }
        };
        let from = from.clone();
        let Some(session) = self.find(&id) else {
            return vec![Notice::Refused { what: Refused::Send(from), why: "gone".into() }];
        };
        let is_open = session.turns.last().is_some_and(|turn| turn.state().terminal.is_none());
        if is_open || self.unsent.get(&id).is_some_and(|waits| !waits.is_empty()) {
            self.sent.pop();
            return self.put(from, id, text);
        }
        let Some(session) = self.find(&id) else { return Vec::new() };
        let created = session.begin(text);
        let turn = session.turn();
        let (started, turn) = (turn.started(), turn.id.clone());
        vec![started, created, session.indexed(), Notice::Sent { from, session: id, turn }]
    }

    fn fork(&mut self, of: &SessionId, at: Option<&TurnId>, draft: Draft) -> Vec<Notice> {
        let mut fork = Session::new(&format!("f{}", self.sessions.len()));
        let Some(parent) = self.find(of) else { return Vec::new() };
        let place = parent.turns.iter().position(|turn| Some(&turn.id) == at);
        fork.turns = parent.turns[..place.map_or(0, |place| place + 1)].to_vec();
        let session = fork.id.clone();
        if !draft.text.is_empty() {
            self.drafts.insert(DraftOf::Session(session.clone()), draft);
        }
        let indexed = fork.indexed();
        self.sessions.push(fork);
        vec![indexed, Notice::Forked { of: of.clone(), session }]
    }

    fn put(&mut self, from: DraftOf, session: SessionId, text: &str) -> Vec<Notice> {
        self.made += 1;
        let id = EventId::from(format!("e{}", self.made));
        let message = UnsentMessage { id, text: text.to_owned(), held: false };
        self.unsent.entry(session.clone()).or_default().push(message);
        vec![self.waiting_in(&session), Notice::Queued { from, session }]
    }

    fn waiting_in(&self, session: &SessionId) -> Notice {
        let messages = self.unsent.get(session).cloned().unwrap_or_default();
        Notice::UnsentChanged { session: session.clone(), messages }
    }

    fn serve_unsent(&mut self, unsent: Unsent, mood: Mood) -> Vec<Notice> {
        match unsent {
            Unsent::Release(session) if mood == Mood::Refusing => {
                vec![Notice::Refused { what: Refused::Session(session), why: "refused".into() }]
            }
            Unsent::Release(session) => {
                let waits = self.unsent.remove(&session).unwrap_or_default();
                self.sent.extend(waits.into_iter().map(|message| message.text));
                vec![self.waiting_in(&session)]
            }
            Unsent::Edit { session, event, text } => {
                let waits = self.unsent.entry(session.clone()).or_default();
                if let Some(message) = waits.iter_mut().find(|message| message.id == event) {
                    message.text = text;
                }
                vec![self.waiting_in(&session)]
            }
            Unsent::TakeBack { session, event, draft } => {
                self.drafts.insert(DraftOf::Session(session.clone()), draft);
                let what = Refused::TakeBack { session: session.clone(), event: event.clone() };
                let waits = self.unsent.entry(session.clone()).or_default();
                let at = waits.iter().position(|message| message.id == event);
                let message = at.map(|at| waits.remove(at));
                let told = if message.is_some() && mood == Mood::Willing {
                    Notice::TakenBack { session: session.clone(), event }
                } else {
                    // It was claimed meanwhile.
                    self.sent.extend(message.map(|message| message.text));
                    Notice::Refused { what, why: "claimed".into() }
                };
                vec![self.waiting_in(&session), told]
            }
        }
    }

    fn answer(
        &mut self,
        call: &crate::base::id::ToolCallId,
        decision: Option<Decision>,
    ) -> Vec<Notice> {
        let waits = |session: &Session| {
            let turn = session.turns.last()?;
            turn.state().last_batch().iter().position(|found| found.id == *call)
        };
        for session in &mut self.sessions {
            let Some(at) = waits(session) else { continue };
            let turn = session.turn();
            let number = turn.state().tool_calls.len() - turn.state().last_batch().len() + at + 1;
            if turn.state().tool_calls.get(call).is_some_and(|found| found.result.is_some()) {
                return Vec::new();
            }
            return match decision {
                Some(decision) => {
                    let resolved = turn.resolves(number, decision);
                    vec![resolved, turn.finishes(number, ResultSource::Runtime), session.indexed()]
                }
                None => vec![turn.finishes(number, ResultSource::Async), session.indexed()],
            };
        }
        Vec::new()
    }
}

/// The next event of a turn that waits for nobody.
fn advance(session: &mut Session) -> Vec<Notice> {
    let turn = session.turn();
    let calls = turn.state().model_calls.len();
    let unasked = turn.state().last_batch().iter().position(|call| {
        call.permission.is_none() && call.result.is_none() && call.name != ASK_HUMAN
    });
    let unresolved = turn.state().unresolved().next().is_some();
    let known = turn.state().tool_calls.len() - turn.state().last_batch().len();
    if turn.state().open_call().is_some() {
        return match calls {
            1 => vec![turn.delta(0, "Let me"), turn.answers("Let me", &[("shell", "{}"); 2])],
            2 => vec![turn.answers("", &[(ASK_HUMAN, FORM)])],
            _ => {
                vec![turn.answers("Done.", &[]), turn.completes(), turn.rested(), session.indexed()]
            }
        };
    }
    if let Some(at) = unasked {
        let mut notices = vec![turn.requires(known + at + 1)];
        if turn.state().last_batch().iter().all(|call| call.permission.is_some()) {
            notices.extend([turn.suspends(), turn.rested(), session.indexed()]);
        }
        return notices;
    }
    if unresolved {
        let invoked = turn.invokes(known + 1, Execution::Async);
        return vec![invoked, turn.suspends(), turn.rested(), session.indexed()];
    }
    vec![turn.started(), turn.asks_model()]
}

fn cancel(session: &mut Session) -> Vec<Notice> {
    let turn = session.turn();
    let mut notices = Vec::new();
    if turn.state().terminal.is_some() {
        return notices;
    }
    if turn.state().open_call().is_some() {
        let model_call_index = turn.state().next_call_index() - 1;
        let failed = ModelCallFailed { model_call_index, error: "stopped".into() };
        notices.push(turn.tell(TurnFact::ModelCallFailed(failed)));
    }
    let known = turn.state().tool_calls.len() - turn.state().last_batch().len();
    let open = turn.state().last_batch().iter().zip(known + 1..);
    let open: Vec<usize> =
        open.filter(|(call, _)| call.result.is_none()).map(|(_, number)| number).collect();
    for number in open {
        notices.push(turn.finishes(number, ResultSource::Runtime));
    }
    notices.extend([turn.is_cancelled(), turn.rested(), session.indexed()]);
    notices
}
