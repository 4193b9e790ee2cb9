//! The crash buffer of a turn (`design/turn-runtime.md` section 12): the answer that is streaming,
//! kept beside the log until its call is settled there. It is no source of truth: what is missing,
//! torn, foreign or older means nothing.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::base::tasks::Tasks;
use crate::domain::turn::live::{Delta, DeltaKind, OpenCall};
use crate::store::blocking::InOrder;
use crate::store::disk::{self, Disk, Open};
use crate::store::error::{FileError, IoFailure};
use crate::store::log::LogId;
use crate::store::work_dir::WorkDir;

/// More than any answer. What is beyond it streams, but would not survive a crash.
pub(super) const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Where the text of open calls is kept. Its methods are for turns only.
#[async_trait]
pub trait LiveText: fmt::Debug + Send + Sync {
    /// Adds what has been streamed since the last time. It survives the death of the process, not a
    /// loss of power.
    ///
    /// # Errors
    /// [`FileError`]; the answer goes on without.
    async fn put(&self, turn: &LogId, deltas: &[Delta]) -> Result<(), FileError>;

    /// What is kept of the last call.
    ///
    /// # Errors
    /// [`FileError`].
    async fn read(&self, turn: &LogId) -> Result<Option<OpenCall>, FileError>;

    /// Drops all that is kept of a turn, once the settlement of its call is durable.
    ///
    /// # Errors
    /// [`FileError`].
    async fn drop_text(&self, turn: &LogId) -> Result<(), FileError>;
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    turn_id: String,
    model_call_index: u64,
    block: u32,
    kind: PieceKind,
    text: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PieceKind {
    Text,
    Reasoning,
}

impl Piece {
    fn of(turn: &LogId, delta: &Delta) -> Self {
        Self {
            turn_id: turn.id().to_owned(),
            model_call_index: delta.model_call_index,
            block: delta.block,
            kind: match delta.kind {
                DeltaKind::Text => PieceKind::Text,
                DeltaKind::Reasoning => PieceKind::Reasoning,
            },
            text: delta.text.clone(),
        }
    }

    fn into_delta(self, at: u64) -> Delta {
        Delta {
            model_call_index: self.model_call_index,
            kind: match self.kind {
                PieceKind::Text => DeltaKind::Text,
                PieceKind::Reasoning => DeltaKind::Reasoning,
            },
            block: self.block,
            at,
            text: self.text,
        }
    }
}

/// What was streamed, as lines.
pub(super) fn lines(turn: &LogId, deltas: &[Delta]) -> serde_json::Result<String> {
    let mut lines = String::new();
    for delta in deltas {
        lines.push_str(&serde_json::to_string(&Piece::of(turn, delta))?);
        lines.push('\n');
    }
    Ok(lines)
}

/// What lines that were put one after the other amount to; those that are torn or foreign mean
/// nothing.
pub(super) fn folded(turn: &LogId, lines: &[u8]) -> Option<OpenCall> {
    let mut open = None;
    for line in lines.split(|byte| *byte == b'\n') {
        match serde_json::from_slice::<Piece>(line) {
            Ok(piece) if piece.turn_id == turn.id() => grow(&mut open, piece),
            Ok(_) | Err(_) => {}
        }
    }
    open
}

/// Takes one more piece in. A piece of a later call drops what was there of an earlier one.
fn grow(open: &mut Option<OpenCall>, piece: Piece) {
    let index = piece.model_call_index;
    let call = match open {
        Some(call) if call.model_call_index >= index => call,
        Some(_) | None => open.insert(OpenCall::new(index)),
    };
    let delta = piece.into_delta(call.len);
    call.fold(&delta);
}

/// `<turnId>.live` beside the log of the turn.
#[derive(Clone)]
pub struct Files {
    work_dir: WorkDir,
    work: InOrder,
}

impl Files {
    /// The crash buffers in `work_dir`.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, work_dir: WorkDir, tasks: Tasks) -> Self {
        Self { work_dir, work: InOrder::new(disk, tasks) }
    }

    fn path(&self, turn: &LogId) -> PathBuf {
        self.work_dir.dated(turn).join(format!("{}.live", turn.id()))
    }
}

#[async_trait]
impl LiveText for Files {
    async fn put(&self, turn: &LogId, deltas: &[Delta]) -> Result<(), FileError> {
        let path = self.path(turn);
        // Begins with a line's end, in case a crash left the last line without one.
        let lines = lines(turn, deltas)
            .map(|lines| ["\n", &lines].concat())
            .map_err(|error| IoFailure::of("write", &path)(error.into()))?;
        self.work
            .run(move |disk| {
                let file = disk.open(&path, Open::OrNew).map_err(IoFailure::of("open", &path))?;
                let size = file.stat().map_err(IoFailure::of("look at", &path))?.size;
                if size + lines.len() as u64 > BYTES_MAX {
                    return Ok(());
                }
                disk::write(&*file, size, lines.as_bytes()).map_err(IoFailure::of("write", &path))
            })
            .await
    }

    async fn read(&self, turn: &LogId) -> Result<Option<OpenCall>, FileError> {
        let (path, turn) = (self.path(turn), turn.clone());
        self.work
            .run(move |disk| {
                let bytes = disk::read_small(disk, &path, BYTES_MAX)
                    .map_err(IoFailure::of("read", &path))?
                    .unwrap_or_default();
                Ok(folded(&turn, &bytes))
            })
            .await
    }

    async fn drop_text(&self, turn: &LogId) -> Result<(), FileError> {
        let path = self.path(turn);
        self.work
            .run(move |disk| {
                disk::unlink_if_there(disk, &path).map_err(IoFailure::of("delete", &path))
            })
            .await
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("work_dir", &self.work_dir).finish_non_exhaustive()
    }
}

/// The crash buffer of runs that leave no files.
#[derive(Clone, Debug, Default)]
pub struct Map(Arc<Mutex<HashMap<LogId, Option<OpenCall>>>>);

impl Map {
    fn lock(&self) -> MutexGuard<'_, HashMap<LogId, Option<OpenCall>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LiveText for Map {
    async fn put(&self, turn: &LogId, deltas: &[Delta]) -> Result<(), FileError> {
        let mut map = self.lock();
        let open = map.entry(turn.clone()).or_default();
        for delta in deltas {
            grow(open, Piece::of(turn, delta));
        }
        Ok(())
    }

    async fn read(&self, turn: &LogId) -> Result<Option<OpenCall>, FileError> {
        Ok(self.lock().get(turn).cloned().flatten())
    }

    async fn drop_text(&self, turn: &LogId) -> Result<(), FileError> {
        self.lock().remove(turn);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::turn::live::OpenBlock;
    use crate::store::disk::RealDisk;
    use crate::store::log::LogKind;
    use std::fs;

    fn turn() -> LogId {
        LogId::new(LogKind::Turn, "2025-11-11T04-36-29Z-0001234-000").expect("valid")
    }

    fn delta(model_call_index: u64, block: u32, kind: DeltaKind, text: &str) -> Delta {
        Delta { model_call_index, kind, block, at: 0, text: text.to_owned() }
    }

    fn call(model_call_index: u64, blocks: &[(u32, DeltaKind, &str)]) -> OpenCall {
        let blocks: Vec<_> = blocks
            .iter()
            .map(|&(block, kind, text)| OpenBlock { block, kind, text: text.to_owned() })
            .collect();
        let len = blocks.iter().map(|block| block.text.len() as u64).sum();
        OpenCall { model_call_index, blocks, len }
    }

    fn files(folder: &tempfile::TempDir) -> Files {
        let work_dir = WorkDir::new(folder.path().to_path_buf()).expect("absolute");
        disk::make_folders(&RealDisk, &work_dir.dated(&turn())).expect("a folder");
        Files::new(Arc::new(RealDisk), work_dir, Tasks::new())
    }

    async fn check_kept_and_dropped(live: &dyn LiveText) {
        let turn = turn();
        assert_eq!(live.read(&turn).await.expect("readable"), None);
        live.put(&turn, &[delta(0, 0, DeltaKind::Reasoning, "old")]).await.expect("put");
        let first = [delta(1, 0, DeltaKind::Reasoning, "hm"), delta(1, 1, DeltaKind::Text, "An\n")];
        live.put(&turn, &first).await.expect("put");
        live.put(&turn, &[delta(1, 1, DeltaKind::Text, "swer")]).await.expect("put");
        live.put(&turn, &[delta(0, 2, DeltaKind::Text, "late")]).await.expect("put");
        let blocks = [(0, DeltaKind::Reasoning, "hm"), (1, DeltaKind::Text, "An\nswer")];
        assert_eq!(live.read(&turn).await.expect("readable"), Some(call(1, &blocks)));
        live.drop_text(&turn).await.expect("dropped");
        live.drop_text(&turn).await.expect("dropped again");
        assert_eq!(live.read(&turn).await.expect("readable"), None);
    }

    #[tokio::test]
    async fn the_text_of_the_last_call_is_kept_until_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        check_kept_and_dropped(&files(&folder)).await;
        check_kept_and_dropped(&Map::default()).await;
    }

    #[tokio::test]
    async fn a_buffer_cut_anywhere_or_of_another_turn_gives_what_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let (live, turn) = (files(&folder), turn());
        let deltas = ["a", "b\u{1F600}", "c"].map(|text| delta(0, 0, DeltaKind::Text, text));
        for piece in &deltas {
            live.put(&turn, std::slice::from_ref(piece)).await.expect("put");
        }
        let path = live.path(&turn);
        let whole = fs::read(&path).expect("there");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("cut");
            let read = live.read(&turn).await.expect("readable");
            let text = read.map_or(String::new(), |call| call.blocks[0].text.clone());
            assert!("ab\u{1F600}c".starts_with(&text), "cut at {cut}: {text:?}");
            live.put(&turn, &[delta(0, 0, DeltaKind::Text, "!")]).await.expect("put");
            let more = live.read(&turn).await.expect("readable").expect("there");
            assert_eq!(more.blocks[0].text, format!("{text}!"), "cut at {cut}");
        }
        let foreign = String::from_utf8_lossy(&whole).replace("0001234", "0009999");
        fs::write(&path, foreign).expect("written");
        assert_eq!(live.read(&turn).await.expect("readable"), None);
    }
}
