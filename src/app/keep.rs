//! What is kept for a person between runs: drafts, the history of what was typed, how the list is
//! sorted. One thing at a time, so that the last word counts.

mod history;
pub(super) mod overflow;
mod unsaved;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use crate::app::Access;
use crate::app::command::{Draft, DraftOf, ListSettings};
use crate::app::keep::history::History;
use crate::app::keep::unsaved::Unsaved;
use crate::app::notice::{Notice, Refused};
use crate::app::perform::refused;
use crate::base::error::with_causes;
use crate::base::id::SessionId;
use crate::store::error::FileError;
use crate::store::log::Removed;
use crate::store::scratch::{Scratch, ScratchError, ScratchName};

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
    /// Say when everything before is done, and how many drafts the disk has not taken then.
    Done(oneshot::Sender<usize>),
}

/// Keeps things.
pub(super) struct Keeper {
    scratch: Scratch,
    access: Access,
    notices: mpsc::Sender<Notice>,
    history: History,
    /// Whose draft is being sent, and has not been written over since.
    sending: HashSet<DraftOf>,
    /// The sessions that were deleted, and where what is still saved for them goes.
    gone: HashMap<SessionId, Option<Removed>>,
    /// The files that could not be read and are still in their place: nothing is written over them.
    unreadable: HashSet<ScratchName>,
    unsaved: Unsaved,
}

/// Why nothing can be made of a file.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    File(FileError),
    #[error("{name} is damaged")]
    Damaged {
        name: ScratchName,
        #[source]
        cause: serde_json::Error,
    },
}

impl Keeper {
    /// A keeper that has not read anything yet.
    pub(super) fn new(scratch: Scratch, access: Access, notices: mpsc::Sender<Notice>) -> Self {
        Self {
            scratch,
            access,
            notices,
            history: History::default(),
            sending: HashSet::new(),
            gone: HashMap::new(),
            unreadable: HashSet::new(),
            unsaved: Unsaved::new(),
        }
    }

    /// Tells what was kept from the last run, then keeps until nobody asks any more.
    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Keep>) {
        self.history = self.read("history.json").await.unwrap_or_default();
        let list = self.read("list.json").await.unwrap_or_default();
        let history = self.history.texts.clone();
        self.tell(Notice::Remembered { history, list }).await;
        loop {
            tokio::select! {
                biased;
                // Both are safe to drop: the queue and the pause keep their state.
                keep = asked.recv() => match keep {
                    Some(keep) => self.keep(keep).await,
                    None => return,
                },
                () = self.unsaved.due() => self.try_again().await,
            }
        }
    }

    async fn keep(&mut self, keep: Keep) {
        match keep {
            Keep::Save { of, draft } => {
                self.sending.remove(&of);
                self.save(of, draft).await;
            }
            Keep::SaveFirst { of, draft, done } => {
                self.sending.remove(&of);
                let is_kept = self.save(of, draft).await;
                // Nobody waiting for it is no error.
                done.send(is_kept).ok();
            }
            Keep::Append { of, typed } => {
                self.sending.remove(&of);
                let draft = self.draft(&of).await;
                self.save(of, draft.followed_by(&typed)).await;
            }
            Keep::Load(of) => {
                let draft = self.draft(&of).await;
                self.tell(Notice::Draft { of, draft }).await;
            }
            Keep::Sending(of) => drop(self.sending.insert(of)),
            Keep::Sent(of) => {
                if self.sending.remove(&of) {
                    self.save(of, Draft::default()).await;
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
                let written = self.write("history.json", json(&self.history)).await;
                self.told(written).await;
            }
            Keep::List(settings) => {
                let written = self.write("list.json", json(&settings)).await;
                self.told(written).await;
            }
            Keep::Done(done) => {
                self.try_again().await;
                // Nobody waiting for it is no error.
                done.send(self.unsaved.len()).ok();
            }
        }
    }

    /// What was in a composer when it was last saved, or was to be.
    async fn draft(&mut self, of: &DraftOf) -> Draft {
        match self.unsaved.draft(of) {
            Some(draft) => draft.clone(),
            None => self.read(&draft_name(of)).await.unwrap_or_default(),
        }
    }

    /// Saves a draft, or says why not and tries again later; whether it is safe.
    async fn save(&mut self, of: DraftOf, draft: Draft) -> bool {
        self.unsaved.take(&of);
        let Err(error) = self.put(&of, &draft).await else { return true };
        self.tell(refused(Refused::Keep, &error)).await;
        if matches!(error, ScratchError::File(_)) {
            self.unsaved.put(of, draft);
        }
        false
    }

    async fn try_again(&mut self) {
        for (of, draft) in self.unsaved.take_all() {
            if let Err(error) = self.put(&of, &draft).await {
                tracing::debug!(%error, "a draft is still not saved");
                self.unsaved.put(of, draft);
            }
        }
    }

    async fn put(&mut self, of: &DraftOf, draft: &Draft) -> Result<(), ScratchError> {
        let name = draft_name(of);
        let place = match of {
            DraftOf::Session(session) => self.gone.get(session),
            DraftOf::NewSession | DraftOf::Prompt(_) | DraftOf::Rewrite => None,
        };
        match place {
            None if *draft == Draft::default() => self.forget(&name).await,
            None => self.write(&name, json(draft)).await,
            Some(Some(removed)) => {
                let (Some(name), Some(text)) = (scratch_name(&name), json(draft)) else {
                    return Ok(());
                };
                self.scratch.put_aside(removed, &name, &text).await
            }
            // Its session was destroyed.
            Some(None) => Ok(()),
        }
    }

    async fn set_aside(&mut self, drafts: &[DraftOf], place: Option<&Removed>) {
        // What the disk did not take before gets its last chance where it would be.
        for of in drafts {
            if let Some(draft) = self.unsaved.take(of) {
                let kept = self.put(of, &draft).await;
                self.told(kept).await;
            }
        }
        let names: Vec<_> = drafts.iter().filter_map(|of| scratch_name(&draft_name(of))).collect();
        match place {
            Some(removed) => self.told(self.scratch.set_aside(removed, &names).await).await,
            None => {
                for name in &names {
                    self.told(self.scratch.remove(name).await).await;
                }
            }
        }
    }

    async fn read<T: for<'de> Deserialize<'de>>(&mut self, name: &str) -> Option<T> {
        let name = scratch_name(name)?;
        let error = match self.scratch.get(&name).await {
            Ok(text) => match serde_json::from_str(&text?) {
                Ok(value) => return Some(value),
                Err(cause) => ReadError::Damaged { name: name.clone(), cause },
            },
            Err(error) => ReadError::File(error),
        };
        self.unreadable.insert(name.clone());
        let why = with_causes(&error);
        let why = match self.make_way(&name).await {
            Ok(Some(aside)) => format!("{why}; it was moved to {aside}, beside where it was"),
            Ok(None) => why,
            Err(error) => format!("{why}; nothing is written over it: {}", with_causes(&error)),
        };
        self.tell(Notice::Refused { what: Refused::Keep, why }).await;
        None
    }

    /// Moves a file away that could not be read, before something is written in its place; gives its
    /// new name, if there was one to move.
    async fn make_way(&mut self, name: &ScratchName) -> Result<Option<String>, FileError> {
        if self.access != Access::Full || !self.unreadable.contains(name) {
            return Ok(None);
        }
        let aside = self.scratch.set_unreadable_aside(name).await?;
        self.unreadable.remove(name);
        Ok(aside)
    }

    async fn write(&mut self, name: &str, text: Option<String>) -> Result<(), ScratchError> {
        let (Some(name), Some(text)) = (scratch_name(name), text) else { return Ok(()) };
        self.make_way(&name).await?;
        self.scratch.put(&name, &text).await
    }

    async fn forget(&mut self, name: &str) -> Result<(), ScratchError> {
        let Some(name) = scratch_name(name) else { return Ok(()) };
        self.make_way(&name).await?;
        Ok(self.scratch.remove(&name).await?)
    }

    /// Tells what was not kept.
    async fn told<E: std::error::Error>(&self, kept: Result<(), E>) {
        if let Err(error) = kept {
            self.tell(refused(Refused::Keep, &error)).await;
        }
    }

    async fn tell(&self, notice: Notice) {
        // Nobody listening means that the program is ending.
        drop(self.notices.send(notice).await);
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
        DraftOf::Rewrite => "draft-rewrite.json".to_owned(),
        DraftOf::Session(session) => format!("draft-session-{}.json", hashed(session.as_str())),
        DraftOf::Prompt(call) => format!("draft-prompt-{}.json", hashed(call.as_str())),
    }
}

#[cfg(test)]
mod tests;
