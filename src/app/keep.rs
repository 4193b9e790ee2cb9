//! What is kept for a person between runs: drafts, the history of what was typed, how the list is
//! sorted. One thing at a time, so that the last word counts.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use crate::app::command::{Draft, DraftOf, ListSettings};
use crate::app::notice::{Notice, Refused};
use crate::app::perform::refused;
use crate::base::id::SessionId;
use crate::store::log::Removed;
use crate::store::scratch::{Scratch, ScratchName};

/// How many typed texts are kept.
const HISTORY_TEXTS_MAX: usize = 1_000;
/// How many bytes of typed texts are kept: older ones go first.
const HISTORY_BYTES_MAX: usize = 1024 * 1024;
/// How much waits to be kept; a person does not type faster than a disk.
pub(super) const KEEPING_WAITING_MAX: usize = 256;

/// Something to keep, or to give back.
#[derive(Debug)]
pub(super) enum Keep {
    Save {
        of: DraftOf,
        draft: Draft,
    },
    /// As `Save`, and say whether it went well before something depends on it.
    SaveFirst {
        of: DraftOf,
        draft: Draft,
        done: oneshot::Sender<bool>,
    },
    /// Typed before the draft was loaded: it comes behind that.
    Append {
        of: DraftOf,
        typed: Draft,
    },
    Load(DraftOf),
    /// The draft is on its way to be sent.
    Sending(DraftOf),
    /// It was sent: it goes, unless another one was saved since.
    Sent(DraftOf),
    /// The session was deleted, and these drafts go where it is kept; nowhere if it is destroyed.
    SetAside {
        session: SessionId,
        drafts: Vec<DraftOf>,
        place: Option<Removed>,
        done: oneshot::Sender<()>,
    },
    /// The session is about to be restored.
    BringBack {
        session: SessionId,
        place: Removed,
        done: oneshot::Sender<()>,
    },
    Remember(String),
    List(ListSettings),
    /// Say when everything before is done.
    Done(oneshot::Sender<()>),
}

/// Keeps things.
pub(super) struct Keeper {
    scratch: Scratch,
    notices: mpsc::Sender<Notice>,
    history: History,
    /// Whose draft is being sent, and has not been written over since.
    sending: HashSet<DraftOf>,
    /// The sessions that were deleted, and where what is still saved for them goes.
    gone: HashMap<SessionId, Option<Removed>>,
}

/// What was typed, the oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct History {
    texts: Vec<String>,
}

impl Keeper {
    /// A keeper that has not read anything yet.
    pub(super) fn new(scratch: Scratch, notices: mpsc::Sender<Notice>) -> Self {
        let (history, sending, gone) = (History::default(), HashSet::new(), HashMap::new());
        Self { scratch, notices, history, sending, gone }
    }

    /// Tells what was kept from the last run, then keeps until nobody asks any more.
    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Keep>) {
        self.history = self.read("history.json").await.unwrap_or_default();
        let list = self.read("list.json").await.unwrap_or_default();
        let history = self.history.texts.clone();
        self.tell(Notice::Remembered { history, list }).await;
        while let Some(keep) = asked.recv().await {
            self.keep(keep).await;
        }
    }

    async fn keep(&mut self, keep: Keep) {
        match keep {
            Keep::Save { of, draft } => {
                self.sending.remove(&of);
                self.save(&of, &draft).await;
            }
            Keep::SaveFirst { of, draft, done } => {
                self.sending.remove(&of);
                let is_kept = self.save(&of, &draft).await;
                // Nobody waiting for it is no error.
                done.send(is_kept).ok();
            }
            Keep::Append { of, typed } => {
                self.sending.remove(&of);
                let draft: Draft = self.read(&draft_name(&of)).await.unwrap_or_default();
                self.save(&of, &draft.followed_by(&typed)).await;
            }
            Keep::Load(of) => {
                let draft = self.read(&draft_name(&of)).await.unwrap_or_default();
                self.tell(Notice::Draft { of, draft }).await;
            }
            Keep::Sending(of) => drop(self.sending.insert(of)),
            Keep::Sent(of) => {
                if self.sending.remove(&of) {
                    self.forget(&draft_name(&of)).await;
                }
            }
            Keep::SetAside { session, drafts, place, done } => {
                self.set_aside(&drafts, place.as_ref()).await;
                self.gone.insert(session, place);
                said(done);
            }
            Keep::BringBack { session, place, done } => {
                self.gone.remove(&session);
                self.told(self.scratch.bring_back(&place).await).await;
                said(done);
            }
            Keep::Remember(text) => {
                self.history.add(text);
                let history = std::mem::take(&mut self.history);
                self.write("history.json", &history).await;
                self.history = history;
            }
            Keep::List(settings) => drop(self.write("list.json", &settings).await),
            Keep::Done(done) => said(done),
        }
    }

    /// Saves a draft where it belongs; whether it is safe.
    async fn save(&self, of: &DraftOf, draft: &Draft) -> bool {
        let name = draft_name(of);
        let place = match of {
            DraftOf::Session(session) => self.gone.get(session),
            DraftOf::NewSession | DraftOf::Prompt(_) => None,
        };
        match place {
            None if *draft == Draft::default() => self.forget(&name).await,
            None => self.write(&name, draft).await,
            Some(Some(removed)) => {
                let (Some(name), Some(text)) = (scratch_name(&name), json(draft)) else {
                    return false;
                };
                self.told(self.scratch.put_aside(removed, &name, &text).await).await
            }
            // Its session was destroyed.
            Some(None) => false,
        }
    }

    async fn set_aside(&self, drafts: &[DraftOf], place: Option<&Removed>) {
        let names: Vec<_> = drafts.iter().filter_map(|of| scratch_name(&draft_name(of))).collect();
        match place {
            Some(removed) => drop(self.told(self.scratch.set_aside(removed, &names).await).await),
            None => {
                for name in &names {
                    self.told(self.scratch.remove(name).await).await;
                }
            }
        }
    }

    async fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        let name = scratch_name(name)?;
        let text = match self.scratch.get(&name).await {
            Ok(text) => text?,
            Err(error) => {
                self.tell(refused(Refused::Keep, &error)).await;
                return None;
            }
        };
        let read = serde_json::from_str(&text);
        read.inspect_err(|error| tracing::warn!(?name, %error, "what was kept is unreadable")).ok()
    }

    async fn write<T: Serialize>(&self, name: &str, value: &T) -> bool {
        let (Some(name), Some(text)) = (scratch_name(name), json(value)) else { return false };
        self.told(self.scratch.put(&name, &text).await).await
    }

    async fn forget(&self, name: &str) -> bool {
        let Some(name) = scratch_name(name) else { return false };
        self.told(self.scratch.remove(&name).await).await
    }

    /// Tells what was not kept; whether it was.
    async fn told<E: std::error::Error>(&self, kept: Result<(), E>) -> bool {
        let Err(error) = kept else { return true };
        self.tell(refused(Refused::Keep, &error)).await;
        false
    }

    async fn tell(&self, notice: Notice) {
        // Nobody listening means that the program is ending.
        drop(self.notices.send(notice).await);
    }
}

impl History {
    /// Adds a text. One that would push all others out is not kept.
    fn add(&mut self, text: String) {
        if text.len() > HISTORY_BYTES_MAX {
            return;
        }
        self.texts.retain(|known| *known != text);
        self.texts.push(text);
        let mut bytes = 0;
        let fits = |text: &&String| {
            bytes += text.len();
            bytes <= HISTORY_BYTES_MAX
        };
        let kept = self.texts.iter().rev().take(HISTORY_TEXTS_MAX).take_while(fits).count();
        self.texts.drain(..self.texts.len() - kept);
    }
}

fn scratch_name(name: &str) -> Option<ScratchName> {
    name.parse().ok()
}

fn json<T: Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn said(done: oneshot::Sender<()>) {
    // Nobody waiting for it is no error.
    done.send(()).ok();
}

/// The file of a draft. Ids of foreign logs can be anything, so they are hashed.
fn draft_name(of: &DraftOf) -> String {
    let hashed = |id: &str| {
        use std::fmt::Write as _;
        let mut hex = String::new();
        for byte in Sha256::digest(id.as_bytes()).iter().take(16) {
            // A string takes everything.
            write!(hex, "{byte:02x}").ok();
        }
        hex
    };
    match of {
        DraftOf::NewSession => "draft-new.json".to_owned(),
        DraftOf::Session(session) => format!("draft-session-{}.json", hashed(session.as_str())),
        DraftOf::Prompt(call) => format!("draft-prompt-{}.json", hashed(call.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_each_text_once_and_the_newest() {
        let mut history = History::default();
        for text in ["a", "b", "a"] {
            history.add(text.to_owned());
        }
        assert_eq!(history.texts, ["b", "a"]);
        for number in 0..HISTORY_TEXTS_MAX {
            history.add(number.to_string());
        }
        assert_eq!(history.texts.len(), HISTORY_TEXTS_MAX);
        assert_eq!(history.texts.first().map(String::as_str), Some("0"));
        history.add("x".repeat(HISTORY_BYTES_MAX + 1));
        assert_eq!(history.texts.len(), HISTORY_TEXTS_MAX, "it pushes nothing out");
        history.add("x".repeat(HISTORY_BYTES_MAX));
        assert_eq!(history.texts.len(), 1);
    }

    #[test]
    fn every_composer_has_a_file_of_its_own() {
        use crate::base::id::{SessionId, ToolCallId};
        let names = [
            draft_name(&DraftOf::NewSession),
            draft_name(&DraftOf::Session(SessionId::from("a/../b"))),
            draft_name(&DraftOf::Prompt(ToolCallId::from("a/../b"))),
        ];
        for name in &names {
            assert!(name.parse::<ScratchName>().is_ok(), "{name}");
        }
        assert_ne!(names[1], names[2]);
    }
}
