//! Making the database: beside its place, whole or not at all, and put there unless somebody else has.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::OpenFlags;

use crate::store::disk::{self, Disk, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::parts::Parts;
use crate::store::sqlite::database::{beside, open};
use crate::store::sqlite::failure;
use crate::store::sqlite::header::{APPLICATION, VERSION};

const SCHEMA: &str = include_str!("schema.sql");
/// What SQLite puts beside a database while it works on it.
pub(in crate::store) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Between these stands what no other making has.
const TEMPORARY: [&str; 2] = [".turnstile.db.", ".tmp"];
/// A making that began longer ago than this will not go on: it takes less than a second.
const MAKING_MAX: Duration = Duration::from_hours(1);

/// Makes the database at `path`.
pub(super) fn make(parts: &Parts, path: &Path) -> Result<(), StoreError> {
    let (disk, folder) = (&*parts.disk, path.parent().unwrap_or(path));
    disk::make_folders(disk, folder).map_err(IoFailure::of("make the folder", folder))?;
    let temporary = temporary(parts, folder);
    let made = fill(parts, &temporary).and_then(|()| match publish(disk, &temporary, path) {
        // The one that is there will be looked at like any other.
        Err(error) if is_taken(&error.cause) => Ok(()),
        published => Ok(published?),
    });
    clear(disk, &temporary);
    made
}

/// A name in this folder that no other making has.
pub(super) fn temporary(parts: &Parts, folder: &Path) -> PathBuf {
    let [start, end] = TEMPORARY;
    folder.join(format!("{start}{:016x}{end}", parts.entropy.bits()))
}

/// Removes a database that is not needed any more, with what is beside it.
pub(super) fn clear(disk: &dyn Disk, path: &Path) {
    for left in BESIDE.map(|suffix| beside(path, suffix)).iter().map(PathBuf::as_path).chain([path])
    {
        if let Err(error) = disk::unlink_if_there(disk, left) {
            tracing::warn!(%error, path = %left.display(), "a temporary file is left");
        }
    }
}

/// Removes what makings left that a crash ended. Who does not hold the lock leaves that to those who do.
pub(super) fn clean_up(parts: &Parts, path: &Path) {
    if parts.lock.is_some() {
        clear_old(parts, path.parent().unwrap_or(path));
    }
}

/// Removes what a crash has left of makings in a folder.
pub(super) fn clear_old(parts: &Parts, folder: &Path) {
    let disk = &*parts.disk;
    let entries = disk.entries(folder).unwrap_or_default();
    for entry in entries.iter().filter(|entry| is_temporary(&entry.name)) {
        let left = folder.join(&entry.name);
        let removed = disk.stat(&left).and_then(|stat| {
            let made = Duration::from_nanos(stat.modified_ns);
            let now = Duration::from_millis(u64::try_from(parts.clock.now().ms()).unwrap_or(0));
            if now.saturating_sub(made) > MAKING_MAX { disk.unlink(&left) } else { Ok(()) }
        });
        if let Err(error) = removed {
            tracing::warn!(%error, path = %left.display(), "a temporary file is left");
        }
    }
}

fn is_temporary(name: &OsStr) -> bool {
    let [start, end] = TEMPORARY;
    let name = name.to_str().and_then(|name| name.strip_prefix(start));
    let Some((_, rest)) = name.and_then(|name| name.split_once(end)) else { return false };
    rest.is_empty() || BESIDE.contains(&rest)
}

/// Makes a database under a name that nobody has.
pub(super) fn fill(parts: &Parts, temporary: &Path) -> Result<(), StoreError> {
    let disk = &*parts.disk;
    // Private from its first byte on; what SQLite puts beside it gets the same mode.
    drop(disk.open(temporary, Open::New).map_err(IoFailure::of("create", temporary))?);
    let identity = parts.entropy.bits().cast_signed();
    let filled = open(temporary, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|mut connection| {
        // What is destroyed gives its room back to the system.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let transaction = connection.transaction()?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO store VALUES (0, ?)", [identity])?;
        transaction.commit()?;
        // On a file system without shared memory the journal stays another, which is told when
        // the database is opened.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.close().map_err(|(_, error)| error)
    });
    filled.map_err(failure::told("fill", temporary))?;
    let file = disk.open(temporary, Open::Write).map_err(IoFailure::of("open", temporary))?;
    Ok(file.sync().map_err(IoFailure::of("sync", temporary))?)
}

/// Gives the finished file its name, if nobody has it: by a rename that refuses to replace, else by a
/// hard link, else by looking first.
pub(super) fn publish(disk: &dyn Disk, temporary: &Path, path: &Path) -> Result<(), IoFailure> {
    let given = disk
        .rename_new(temporary, path)
        .or_else(|error| if is_taken(&error) { Err(error) } else { disk.link(temporary, path) })
        .or_else(|error| match disk.stat(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound && !is_taken(&error) => {
                disk.rename(temporary, path)
            }
            Ok(_) | Err(_) => Err(error),
        });
    given.map_err(IoFailure::of("publish", path))?;
    let folder = path.parent().unwrap_or(path);
    disk.sync_folder(folder).map_err(IoFailure::of("sync the folder", folder))
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}
