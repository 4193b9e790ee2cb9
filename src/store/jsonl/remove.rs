//! Taking logs out and putting them back. Each removal is a folder of its own in `var/deleted`: the
//! log, what stood beside it, and a note that says whose they are.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::store::atomic;
use crate::store::destroy;
use crate::store::disk::{self, EntryKind, Stat};
use crate::store::error::{IoFailure, Place, StoreError};
use crate::store::jsonl::encoding::Encoding;
use crate::store::jsonl::files::Files;
use crate::store::jsonl::list::names;
use crate::store::jsonl::publish::put_back;
use crate::store::jsonl::read::{self, Extent};
use crate::store::log::{Inspection, LogId, LogKind, Removed};

const NOTE: &str = "removed.json";
/// More than any note.
const NOTE_BYTES_MAX: u64 = 4 * 1024;
/// How long what tells removals of one log apart is, in hexadecimal digits.
const KEY_END_DIGITS: usize = 16;
const NS_IN_MS: u64 = 1_000_000;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    kind: LogKind,
    id: String,
    removed_at: Timestamp,
}

/// Takes a log out, with its companions, or changes nothing.
pub(super) fn remove(files: &Files, log: &LogId) -> Result<Removed, StoreError> {
    files.check_lock()?;
    let path = files.file(log);
    files.disk.stat(&path).map_err(files.failed(log, "look at"))?;
    let kind = log.kind().as_str();
    let key = format!("{kind}-{}-{:016x}", log.id(), files.entropy.bits());
    let removed = Removed { log: log.clone(), at: files.clock.now(), key };
    let folder = folder_of(files, &removed);
    let moved = write_note(files, &removed).and_then(|()| {
        let mut moves = vec![(path.clone(), folder.join(path.file_name().unwrap_or_default()))];
        moves.extend(companions(files, log, &files.work_dir.dated(log), &folder)?);
        move_all(files, &moves)
    });
    if let Err(error) = moved {
        clean_up(files, &folder);
        return Err(error.into());
    }
    Ok(removed)
}

/// What can be restored, oldest removal first.
pub(super) fn removed(files: &Files) -> Result<Vec<Removed>, StoreError> {
    let all = found(files)?.into_iter().map(|found| found.removed);
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
    Ok(all)
}

/// The removals whose notes cannot be read.
pub(super) fn unreadable(files: &Files) -> Result<Vec<StoreError>, StoreError> {
    Ok(found(files)?.into_iter().filter_map(|found| found.note.err()).map(StoreError::Io).collect())
}

/// A removal that can be restored, and whether its note says so.
struct Found {
    removed: Removed,
    note: Result<(), IoFailure>,
}

/// All removals. A folder without its log is what a crash left, or somebody else's, and so is one with
/// another name and no note; so is one whose log is back in its place.
fn found(files: &Files) -> Result<Vec<Found>, StoreError> {
    let deleted = files.work_dir.deleted();
    let mut all = Vec::new();
    for name in names(files, &deleted, EntryKind::Folder)? {
        let Some(found) = found_in(files, &deleted.join(&name), &name)? else { continue };
        let path = log_in(files, &found.removed);
        if files.disk.stat(&path).is_ok() && !is_back(files, &found.removed.log, &path)? {
            all.push(found);
        }
    }
    Ok(all)
}

/// The removal that a folder says to be, by its note, or by its name if that cannot be read. Then it
/// counts as made when the folder last changed, which is no earlier than it was.
fn found_in(files: &Files, folder: &Path, name: &OsStr) -> Result<Option<Found>, StoreError> {
    let key = name.to_string_lossy().into_owned();
    let why = match read_note(files, folder) {
        Ok((log, at)) => {
            return Ok(Some(Found { removed: Removed { log, at, key }, note: Ok(()) }));
        }
        Err(why) => why,
    };
    let (Some(log), Some(stat)) = (log_of(name), look_at(files, folder)?) else { return Ok(None) };
    let changed_ms = stat.modified_ns / NS_IN_MS;
    let at = Timestamp::from_ms(i64::try_from(changed_ms).unwrap_or(i64::MAX));
    Ok(Some(Found { removed: Removed { log, at, key }, note: Err(why) }))
}

/// Whether a removal is still there.
pub(super) fn find(files: &Files, removed: &Removed) -> Result<(), StoreError> {
    let found = files.disk.stat(&log_in(files, removed));
    found.map(drop).map_err(files.failed(&removed.log, "look at"))
}

/// Reads a removed log.
pub(super) fn inspect(files: &Files, removed: &Removed) -> Result<Inspection, StoreError> {
    let place = Place { log: removed.log.clone(), path: Some(log_in(files, removed)) };
    read::inspect(&place, &read::read_at(files, &place, Extent::Cold)?)
}

/// Takes a removal of another store over, whose log is to have these bytes. The note goes first: a
/// log without one is what a crash left, and so is a note without a log.
pub(super) fn take_over(files: &Files, removed: &Removed, bytes: &[u8]) -> Result<(), StoreError> {
    files.check_lock()?;
    let path = log_in(files, removed);
    if is_there(files, &path)? {
        let (log, path) = (removed.log.clone(), Some(path));
        return Err(StoreError::AlreadyExists(Place { log, path }));
    }
    write_note(files, removed)?;
    atomic::replace(&*files.disk, &path, bytes, files.sync_mode())?;
    Ok(files.sync_folder_of(&path)?)
}

/// Puts everything back under its old name; the log last, because it is what counts.
pub(super) fn restore(files: &Files, removed: &Removed) -> Result<(), StoreError> {
    files.check_lock()?;
    let (log, folder, from) = (&removed.log, folder_of(files, removed), log_in(files, removed));
    match files.disk.stat(&files.file(log)) {
        Ok(_) => return Err(StoreError::AlreadyExists(files.place(log))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(files.failed(log, "look at")(error)),
    }
    let dated = files.work_dir.dated(log);
    disk::make_folders(&*files.disk, &dated).map_err(IoFailure::of("make the folder", &dated))?;
    let moves = companions(files, log, &folder, &dated)?;
    move_all(files, &moves)?;
    if let Err(error) = put_back(files, &from, log) {
        undo(files, &moves);
        return Err(error);
    }
    clean_up(files, &folder);
    Ok(())
}

/// Destroys what was removed. Before the log goes what lies elsewhere: what a turn's tools had put out,
/// and what a crash has left beside the place of the log. Without the log nobody would find it again;
/// what is in the folder with it is found by [`finish`].
pub(super) fn destroy(files: &Files, removed: &Removed) -> Result<(), StoreError> {
    files.check_lock()?;
    let (log, path) = (&removed.log, log_in(files, removed));
    find(files, removed)?;
    destroy::output(&*files.disk, &files.work_dir, log)?;
    // A log that has come back under its id has companions of its own.
    if !is_there(files, &files.file(log))? {
        destroy_companions(files, log)?;
    }
    files.disk.unlink(&path).map_err(files.failed(log, "delete"))?;
    Ok(destroy::folder(&*files.disk, &folder_of(files, removed))?)
}

fn destroy_companions(files: &Files, log: &LogId) -> Result<(), IoFailure> {
    let dated = files.work_dir.dated(log);
    for name in
        names(files, &dated, EntryKind::File)?.iter().filter(|it| files.is_companion(log, it))
    {
        let path = dated.join(name);
        disk::unlink_if_there(&*files.disk, &path).map_err(IoFailure::of("delete", &path))?;
    }
    Ok(())
}

/// Destroys the folders of removals whose log is destroyed, or back in its place. What has another name
/// is somebody else's.
pub(super) fn finish(files: &Files) -> Result<(), StoreError> {
    files.check_lock()?;
    let deleted = files.work_dir.deleted();
    for name in names(files, &deleted, EntryKind::Folder)? {
        let Some(log) = log_of(&name) else { continue };
        let folder = deleted.join(&name);
        // In this order: one that is being taken out is in the second place once it left the first.
        let (before, after) = (files.file(&log), in_folder(files, &log, &folder));
        let is_gone = !is_there(files, &before)?
            && !is_there(files, &after)?
            && !holds_a_log(files, &log, &folder)?;
        if is_gone || is_back(files, &log, &after)? {
            destroy::folder(&*files.disk, &folder)?;
        }
    }
    Ok(())
}

/// The log that the folder of a removal is named after.
fn log_of(key: &OsStr) -> Option<LogId> {
    let (log, end) = key.to_str()?.rsplit_once('-')?;
    let is_end = end.len() == KEY_END_DIGITS && end.bytes().all(|it| it.is_ascii_hexdigit());
    let (kind, id) = log.split_once('-').filter(|_| is_end)?;
    let kinds = [LogKind::Session, LogKind::Turn];
    LogId::new(kinds.into_iter().find(|it| it.as_str() == kind)?, id).ok()
}

/// Whether the folder of a removal holds its log in whatever encoding: one that could not be brought into
/// another is nowhere else.
fn holds_a_log(files: &Files, log: &LogId, folder: &Path) -> Result<bool, IoFailure> {
    for encoding in [Encoding::Lines, Encoding::Frames] {
        let name = [log.id(), encoding.suffix()].concat();
        if is_there(files, &folder.join(name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the file of a removal is the log in its place, too: where nothing but links can be had, a
/// restoration that broke off leaves that.
fn is_back(files: &Files, log: &LogId, removed: &Path) -> Result<bool, IoFailure> {
    let Some(removed) = look_at(files, removed)? else { return Ok(false) };
    let here = look_at(files, &files.file(log))?;
    Ok(here.is_some_and(|here| (here.device, here.inode) == (removed.device, removed.inode)))
}

fn is_there(files: &Files, path: &Path) -> Result<bool, IoFailure> {
    Ok(look_at(files, path)?.is_some())
}

fn look_at(files: &Files, path: &Path) -> Result<Option<Stat>, IoFailure> {
    match files.disk.stat(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IoFailure::of("look at", path)(error)),
    }
}

fn folder_of(files: &Files, removed: &Removed) -> PathBuf {
    files.work_dir.removal(removed)
}

/// Where the log of a removal is kept.
pub(super) fn log_in(files: &Files, removed: &Removed) -> PathBuf {
    in_folder(files, &removed.log, &folder_of(files, removed))
}

fn in_folder(files: &Files, log: &LogId, folder: &Path) -> PathBuf {
    folder.join(files.file(log).file_name().unwrap_or_default())
}

fn write_note(files: &Files, removed: &Removed) -> Result<(), IoFailure> {
    let folder = folder_of(files, removed);
    disk::make_folders(&*files.disk, &folder).map_err(IoFailure::of("make the folder", &folder))?;
    let Removed { log, at, .. } = removed;
    let note = Note { kind: log.kind(), id: log.id().to_owned(), removed_at: *at };
    let path = folder.join(NOTE);
    let text =
        serde_json::to_vec(&note).map_err(|error| IoFailure::of("write", &path)(error.into()))?;
    atomic::replace(&*files.disk, &path, &text, files.sync_mode())?;
    files.sync_folder_of(&path)
}

/// Which log a removal took out, and when.
fn read_note(files: &Files, folder: &Path) -> Result<(LogId, Timestamp), IoFailure> {
    let path = folder.join(NOTE);
    let text = disk::read_small(&*files.disk, &path, NOTE_BYTES_MAX);
    let note = text.and_then(|text| {
        let note: Note = serde_json::from_slice(&text.ok_or(io::ErrorKind::NotFound)?)?;
        let log = LogId::new(note.kind, &note.id).map_err(io::Error::other)?;
        Ok((log, note.removed_at))
    });
    note.map_err(|error| {
        let why = format!(
            "{error}; it can be restored all the same, and counts as deleted when the folder last changed"
        );
        IoFailure::of("read", &path)(io::Error::new(error.kind(), why))
    })
}

type Moves = Vec<(PathBuf, PathBuf)>;

fn companions(files: &Files, log: &LogId, from: &Path, to: &Path) -> Result<Moves, IoFailure> {
    let mut names = names(files, from, EntryKind::File)?;
    names.retain(|name| files.is_companion(log, name));
    Ok(names.iter().map(|name| (from.join(name), to.join(name))).collect())
}

/// Renames all or none.
fn move_all(files: &Files, moves: &[(PathBuf, PathBuf)]) -> Result<(), IoFailure> {
    let mut result = Ok(());
    let mut done = 0;
    for (from, to) in moves {
        result = files.disk.rename(from, to).map_err(IoFailure::of("move", from));
        if result.is_err() {
            break;
        }
        done += 1;
    }
    let result = result.and_then(|()| {
        moves.first().map_or(Ok(()), |(from, to)| {
            files.sync_folder_of(to)?;
            files.sync_folder_of(from)
        })
    });
    if result.is_err() {
        undo(files, moves.get(..done).unwrap_or_default());
    }
    result
}

fn undo(files: &Files, moves: &[(PathBuf, PathBuf)]) {
    for (from, to) in moves.iter().rev() {
        if let Err(error) = files.disk.rename(to, from) {
            tracing::error!(%error, path = %to.display(), "a file could not be moved back");
        }
    }
}

/// Takes the note and the folder of a removal away, if nothing else is in it.
fn clean_up(files: &Files, folder: &Path) {
    let note = files.disk.unlink(&folder.join(NOTE));
    let gone = files.disk.remove_folder(folder);
    if note.is_err() || gone.is_err() {
        tracing::debug!(?note, ?gone, folder = %folder.display(), "a removal left something");
    }
}
