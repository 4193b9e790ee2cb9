//! Waiting messages in files. Each is one file until it is claimed; a claim is written before the file
//! of the message goes, so that after a crash it is in one of the two, or in both and counts as
//! claimed (`design/mailbox.md`, merge and drain).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::base::clock::Clock;
use crate::base::id::{EventId, SessionId};
use crate::base::tasks::Tasks;
use crate::mailbox::folder::{self, Folder, ITEM_BYTES_MAX, Locked};
use crate::mailbox::item::{self, Claim, Event, Found};
use crate::sessions::waiting::{Item, Rejected, Undelivered, Waiting, WaitingError};
use crate::store::blocking::InOrder;
use crate::store::disk::{self, Disk};
use crate::store::error::IoFailure;
use crate::store::log::Removed;
use crate::store::seam::SyncMode;
use crate::store::work_dir::WorkDir;

/// How often a folder that another program changes is asked for; each change takes an instant.
const LOCK_TRIES_MAX: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The folder of a session's runtime state, where its removed log is kept.
const ASIDE: &str = "runtime-state";

/// The inboxes of a work directory.
#[derive(Clone)]
pub struct Inbox {
    work_dir: WorkDir,
    sync: SyncMode,
    clock: Arc<dyn Clock>,
    work: InOrder,
}

/// What a change of a folder came to.
enum Changed<T> {
    Done(Result<T, WaitingError>),
    /// Another program holds it.
    Busy(PathBuf),
}

impl Inbox {
    /// The inboxes in `work_dir`.
    #[must_use]
    pub fn new(
        disk: Arc<dyn Disk>,
        work_dir: WorkDir,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
        sync: SyncMode,
    ) -> Self {
        Self { work_dir, sync, clock, work: InOrder::new(disk, tasks) }
    }

    fn root(&self, session: &SessionId) -> PathBuf {
        self.work_dir.runtime_state().join(folder::name_of(session))
    }

    /// Reads the folder of a session.
    async fn read<T: Send + 'static>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&Folder<'_>) -> Result<T, WaitingError> + Send + 'static,
    ) -> Result<T, WaitingError> {
        let (root, sync) = (self.root(session), self.sync);
        self.work.run(move |disk| Ok(read(&Folder { disk, root, sync }))).await?
    }

    /// Changes the folder of a session, under its lock.
    async fn change<T: Send + 'static>(
        &self,
        session: &SessionId,
        change: impl Fn(&Folder<'_>) -> Result<T, WaitingError> + Send + Sync + 'static,
    ) -> Result<T, WaitingError> {
        let change = Arc::new(change);
        let mut tries = 0;
        loop {
            let (change, root, sync) = (Arc::clone(&change), self.root(session), self.sync);
            let changed = self.work.run(move |disk| {
                let folder = Folder { disk, root, sync };
                Ok(match folder.lock()? {
                    Locked::Busy => Changed::Busy(folder.lock_file()),
                    _lock @ (Locked::Held { .. } | Locked::NoFolder) => {
                        Changed::Done(change(&folder))
                    }
                })
            });
            match changed.await? {
                Changed::Done(done) => return done,
                Changed::Busy(path) if tries >= LOCK_TRIES_MAX => {
                    return Err(WaitingError::Locked(path));
                }
                Changed::Busy(_) => tries += 1,
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }
}

#[async_trait]
impl Waiting for Inbox {
    async fn put(&self, session: &SessionId, item: &Item) -> Result<(), WaitingError> {
        let (event, bytes) = (item.id.clone(), item::encode(item));
        self.read(session, |folder| Ok(folder.make()?)).await?;
        self.change(session, move |folder| {
            let path = folder.pending(&event);
            match &bytes {
                Ok(bytes) => {
                    let put = folder.write(&path, fitting(bytes)?);
                    if put.is_err() {
                        // Whoever hears that it was not put puts it again.
                        drop(folder.remove(&path));
                    }
                    Ok(put?)
                }
                Err(error) => Err(unwritable(&path)(std::io::Error::other(error.to_string()))),
            }
        })
        .await
    }

    async fn look(&self, session: &SessionId) -> Result<Undelivered, WaitingError> {
        self.read(session, look).await
    }

    async fn edit(
        &self,
        session: &SessionId,
        event: &EventId,
        text: &str,
    ) -> Result<(), WaitingError> {
        let (event, text) = (event.clone(), text.to_owned());
        self.change(session, move |folder| {
            let (_, bytes) = waiting(folder, &event)?;
            let path = folder.pending(&event);
            let edited =
                item::with_text(&bytes, &text).map_err(|it| unwritable(&path)(it.into()))?;
            Ok(folder.write(&path, fitting(&edited)?)?)
        })
        .await
    }

    async fn take_back(&self, session: &SessionId, event: &EventId) -> Result<Item, WaitingError> {
        let event = event.clone();
        self.change(session, move |folder| {
            let (item, _) = waiting(folder, &event)?;
            folder.remove(&folder.pending(&event))?;
            Ok(item)
        })
        .await
    }

    async fn claim(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        let events = events.to_vec();
        self.change(session, move |folder| {
            events.iter().try_for_each(|event| {
                let (_, bytes) = waiting(folder, event)?;
                let path = folder.claim(event);
                let claim = Claim::of(bytes).map_err(|error| unwritable(&path)(error.into()))?;
                write_claim(folder, &path, &claim)?;
                Ok(folder.remove(&folder.pending(event))?)
            })
        })
        .await
    }

    async fn confirm(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        let events = events.to_vec();
        self.change(session, move |folder| {
            release(folder, &events, |event| {
                // A crash may have left it in both places; it must not come back.
                Ok(folder.remove_for_good(&folder.pending(&event.item.id))?)
            })
        })
        .await
    }

    async fn give_back(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        let events = events.to_vec();
        self.change(session, move |folder| {
            release(folder, &events, |event| {
                let path = folder.pending(&event.item.id);
                Ok(folder.write(&path, event.raw.get().as_bytes())?)
            })
        })
        .await
    }

    async fn tidy(&self, session: &SessionId) -> Result<Vec<Rejected>, WaitingError> {
        let now = self.clock.now();
        self.change(session, move |folder| {
            folder.sweep(now)?;
            Ok(reject_bad(folder)?)
        })
        .await
    }

    async fn among(&self, sessions: &[SessionId]) -> Result<Vec<SessionId>, WaitingError> {
        let (root, sessions) = (self.work_dir.runtime_state(), sessions.to_vec());
        let found = self.work.run(move |disk| {
            let folders: HashSet<_> = folder::all(disk, &root)?.into_iter().collect();
            if folders.is_empty() {
                return Ok(Vec::new());
            }
            let has_one = |session: &SessionId| folders.contains(&folder::name_of(session));
            Ok(sessions.into_iter().filter(has_one).collect())
        });
        Ok(found.await?)
    }

    async fn set_aside(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let aside = self.work_dir.removal(removed).join(ASIDE);
        // Another program may put something into a session that was deleted.
        let later = aside.join(format!("later-{}", self.clock.now().ms()));
        self.change(session, move |folder| {
            let to = if folder.is_there(&aside)? { &later } else { &aside };
            Ok(folder.move_all(&folder.root, to)?)
        })
        .await
    }

    async fn bring_back(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let aside = self.work_dir.removal(removed).join(ASIDE);
        self.change(session, move |folder| Ok(folder.move_all(&aside, &folder.root)?)).await
    }
}

fn look(folder: &Folder<'_>) -> Result<Undelivered, WaitingError> {
    let mut found = Undelivered::default();
    for event in folder.claim_events()? {
        match read_claim(folder, &event)? {
            Some(claimed) => found.claimed.extend(claimed.into_iter().map(|event| event.item)),
            None => found.misfits += 1,
        }
    }
    let claimed: HashSet<_> = found.claimed.iter().map(|item| item.id.clone()).collect();
    for event in folder.pending_events()? {
        if claimed.contains(&event) {
            continue;
        }
        match folder.read_pending(&event) {
            Ok(bytes) => match bytes.map(|bytes| item::decode(&event, &bytes)) {
                Some(Found::Message(item)) => found.waiting.push(*item),
                Some(Found::Bad(why)) => {
                    found.misfits += 1;
                    tracing::debug!(%event, why, "a file is no item");
                }
                Some(Found::Other) | None => {}
            },
            Err(error) => {
                // It holds up nothing behind it.
                found.misfits += usize::from(disk::is_no_file(&error.cause));
                tracing::warn!(%event, %error, "an item cannot be read");
            }
        }
    }
    Ok(found)
}

/// A message that waits, with its bytes.
fn waiting(folder: &Folder<'_>, event: &EventId) -> Result<(Item, Vec<u8>), WaitingError> {
    for claim in folder.claim_events()? {
        if claimed(folder, &claim)?.iter().any(|claimed| claimed.item.id == *event) {
            return Err(WaitingError::Claimed(event.clone()));
        }
    }
    let gone = || WaitingError::Gone(event.clone());
    // No path is made of what is no id.
    let known = Some(event).filter(|event| event.is_well_formed()).ok_or_else(gone)?;
    let bytes = folder.read_pending(known)?.ok_or_else(gone)?;
    match item::decode(event, &bytes) {
        Found::Message(item) => Ok((*item, bytes)),
        Found::Other | Found::Bad(_) => Err(gone()),
    }
}

/// What a claim holds, by its first event. What is no claim holds nothing.
fn claimed(folder: &Folder<'_>, first: &EventId) -> Result<Vec<Event>, WaitingError> {
    Ok(read_claim(folder, first)?.unwrap_or_default())
}

/// What a claim holds, by its first event; `None` if it is no claim, and is moved away when the folder
/// is tidied.
fn read_claim(folder: &Folder<'_>, first: &EventId) -> Result<Option<Vec<Event>>, WaitingError> {
    let bytes = match folder.read_claim(first) {
        Err(failure) if disk::is_no_file(&failure.cause) => return Ok(None),
        bytes => bytes?,
    };
    let decoded = bytes.map_or(Ok(Vec::new()), |bytes| Claim::decode(first, &bytes));
    Ok(decoded.inspect_err(|why| tracing::debug!(%first, why, "a file is no claim")).ok())
}

/// Moves out of the way what is no item and no claim. What the disk does not give today may be one.
fn reject_bad(folder: &Folder<'_>) -> Result<Vec<Rejected>, IoFailure> {
    let mut rejected = Vec::new();
    let mut moved = |why: String, path: Result<PathBuf, IoFailure>| match path {
        Ok(path) => rejected.push(Rejected { path, why }),
        Err(error) => tracing::warn!(why, %error, "what is no item stays"),
    };
    for event in folder.pending_events()? {
        let decode = |bytes: &[u8]| match item::decode(&event, bytes) {
            Found::Message(_) | Found::Other => None,
            Found::Bad(why) => Some(why),
        };
        if let Some(why) = fault(folder.read_pending(&event), decode) {
            let path = folder.reject_pending(&event, &why);
            moved(why, path);
        }
    }
    for event in folder.claim_events()? {
        let decode = |bytes: &[u8]| Claim::decode(&event, bytes).err();
        if let Some(why) = fault(folder.read_claim(&event), decode) {
            let path = folder.reject_claim(&event, &why);
            moved(why, path);
        }
    }
    Ok(rejected)
}

/// Why what was read is not what it was taken for, if that is known.
fn fault(
    read: Result<Option<Vec<u8>>, IoFailure>,
    decode: impl FnOnce(&[u8]) -> Option<String>,
) -> Option<String> {
    match read {
        Ok(bytes) => decode(&bytes?),
        Err(failure) if disk::is_no_file(&failure.cause) => Some(failure.cause.to_string()),
        Err(failure) => {
            tracing::warn!(error = %failure, "a file is left as it is");
            None
        }
    }
}

/// Takes messages out of their claims, each after `first` was done with it.
fn release(
    folder: &Folder<'_>,
    events: &[EventId],
    first: impl Fn(&Event) -> Result<(), WaitingError>,
) -> Result<(), WaitingError> {
    for claim in folder.claim_events()? {
        let all = claimed(folder, &claim)?.into_iter();
        let (ours, others): (Vec<_>, Vec<_>) = all.partition(|it| events.contains(&it.item.id));
        if ours.is_empty() {
            continue;
        }
        ours.iter().try_for_each(&first)?;
        let path = folder.claim(&claim);
        if others.is_empty() {
            folder.remove(&path)?;
        } else {
            write_claim(folder, &path, &others.into_iter().collect())?;
        }
    }
    Ok(())
}

fn write_claim(
    folder: &Folder<'_>,
    path: &std::path::Path,
    claim: &Claim,
) -> Result<(), WaitingError> {
    let bytes = serde_json::to_vec(claim).map_err(|error| unwritable(path)(error.into()))?;
    Ok(folder.write(path, &bytes)?)
}

fn fitting(bytes: &[u8]) -> Result<&[u8], WaitingError> {
    if bytes.len() > ITEM_BYTES_MAX {
        return Err(WaitingError::TooLong { bytes: bytes.len(), bytes_max: ITEM_BYTES_MAX });
    }
    Ok(bytes)
}

fn unwritable(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> WaitingError {
    let path = path.to_path_buf();
    move |error| IoFailure::of("write", &path)(error).into()
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("work_dir", &self.work_dir).finish_non_exhaustive()
    }
}
