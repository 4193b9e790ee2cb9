//! A copy of a damaged database, and its pages as they lie in the file: which of them hold the rows of a
//! table, and each of those read as if it were the whole table.
//!
//! What is known of the file here is what its description (`fileformat2.html` of SQLite) says of the first
//! page, of the map of pages that a database with `auto_vacuum` has, and of the first byte of a page.
//! Everything else is left to SQLite.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::store::disk::{self, Disk, DiskFile, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::sqlite::database::{open, still};
use crate::store::sqlite::failure;

/// What SQLite makes pages of, unless it is told otherwise.
const PAGE_BYTES: u64 = 4096;
/// The first page that is a part of the map; pages are counted from 1.
const FIRST_MAP: u32 = 2;
/// What the map says of a page: its kind, and the page that leads to it.
const ENTRY_BYTES: usize = 5;
/// How many pages one page of the map is about.
#[expect(clippy::cast_possible_truncation, reason = "it is 819")]
const ENTRIES: u32 = PAGE_BYTES as u32 / ENTRY_BYTES as u32;
/// The kind of a page below others in a table.
const BELOW: u8 = 5;
/// How a page begins that holds rows.
const HOLDS_ROWS: u8 = 13;
/// More pages than stand above one another in any table.
const DEPTH_MAX: usize = 20;
/// Where the first page says how many there are.
const COUNT_AT: usize = 28;
/// Where it says which pages hold nothing: none, for whoever only reads.
const FREE_AT: usize = 32;
const FREE_BYTES: usize = 8;

/// The tables of a database, each with the page at which it begins.
type Tables = Vec<(String, u32, String)>;

/// How much of a table could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// All of it.
    Whole,
    /// What comes before a damage.
    Broken,
}

/// What ends the reading of rows.
pub(super) enum Trouble {
    /// They cannot be read.
    Read(rusqlite::Error),
    /// They cannot be written to where they go.
    Write(rusqlite::Error),
}

/// Takes rows out of a database, as far as that goes.
pub(super) type Take<'a> = &'a mut dyn FnMut(&Connection) -> Result<(), Trouble>;

/// A copy of a database that can be opened, and the new one for what is in it.
pub(super) struct Copy<'a> {
    path: &'a Path,
    new: &'a Path,
    file: Box<dyn DiskFile>,
    roots: BTreeMap<String, u32>,
}

impl<'a> Copy<'a> {
    /// Makes a copy one that can be opened. If its first page is not what it should be, that of a new
    /// database goes in its place: the tables are made by the same statements in every one, so they begin
    /// at the same pages.
    pub(super) fn of(disk: &dyn Disk, path: &'a Path, new: &'a Path) -> Result<Self, StoreError> {
        let to_new = failure::told("open", new);
        let tables = still(new).and_then(|it| tables(&it)).map_err(to_new)?;
        let found = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|it| self::tables(&it));
        match found {
            Err(error) if failure::damage(&error).is_none() => {
                return Err(failure::told("open", path)(error));
            }
            Ok(found) if found == tables => {}
            Ok(_) | Err(_) => mend(disk, path, new)?,
        }
        let settled = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|it| {
            // From here on all that is known is in the file.
            it.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        match settled {
            // What is in the file already is what there is.
            Err(error) if failure::damage(&error).is_some() => {}
            settled => settled.map_err(failure::told("open", path))?,
        }
        let file = disk.open(path, Open::Write).map_err(IoFailure::of("open", path))?;
        let roots = tables.into_iter().map(|(name, root, _)| (name, root)).collect();
        Ok(Self { path, new, file, roots })
    }

    /// The new database.
    pub(super) fn new_path(&self) -> &'a Path {
        self.new
    }

    /// Reads with SQLite.
    pub(super) fn read(&self, take: Take<'_>) -> Result<Pages, StoreError> {
        match still(self.path).map_err(Trouble::Read).and_then(|connection| take(&connection)) {
            Ok(()) => Ok(Pages::Whole),
            Err(Trouble::Read(error)) if failure::damage(&error).is_some() => Ok(Pages::Broken),
            Err(Trouble::Read(error)) => Err(failure::told("read", self.path)(error)),
            Err(Trouble::Write(error)) => Err(failure::told("fill", self.new)(error)),
        }
    }

    /// The pages below the root of a table that hold its rows.
    pub(super) fn leaves_of(&self, table: &str) -> Result<Vec<u32>, IoFailure> {
        let Some(root) = self.roots.get(table) else { return Ok(Vec::new()) };
        let size = self.file.stat().map_err(IoFailure::of("look at", self.path))?.size;
        let count = u32::try_from(size / PAGE_BYTES).unwrap_or(u32::MAX);
        let mut above = BTreeMap::new();
        for map in (FIRST_MAP..=count).step_by(ENTRIES as usize + 1) {
            let entries = self.page(map, PAGE_BYTES)?;
            for (page, entry) in (map + 1..=count).zip(entries.chunks_exact(ENTRY_BYTES)) {
                if let [BELOW, parent @ ..] = entry
                    && let Ok(parent) = parent.try_into()
                {
                    above.insert(page, u32::from_be_bytes(parent));
                }
            }
        }
        let is_below = |page: u32| {
            let up = |page: &u32| above.get(page).copied();
            std::iter::successors(Some(page), up).take(DEPTH_MAX).any(|page| page == *root)
        };
        let mut leaves = Vec::new();
        for page in above.keys().copied().filter(|page| is_below(*page)) {
            if self.page(page, 1)? == [HOLDS_ROWS] {
                leaves.push(page);
            }
        }
        Ok(leaves)
    }

    /// Reads one page of a table as if it were all of it. Where such a page stands does not matter, so for
    /// that long it stands at the root.
    pub(super) fn read_alone(
        &self,
        table: &str,
        page: u32,
        take: Take<'_>,
    ) -> Result<(), StoreError> {
        let Some(root) = self.roots.get(table).copied() else { return Ok(()) };
        let (before, alone) = (self.page(root, PAGE_BYTES)?, self.page(page, PAGE_BYTES)?);
        self.put(root, &alone)?;
        let read = self.read(take);
        self.put(root, &before)?;
        read.map(drop)
    }

    fn page(&self, page: u32, bytes: u64) -> Result<Vec<u8>, IoFailure> {
        let read = disk::read(&*self.file, at(page), bytes);
        read.map_err(IoFailure::of("read", self.path))
    }

    fn put(&self, page: u32, bytes: &[u8]) -> Result<(), IoFailure> {
        disk::write(&*self.file, at(page), bytes).map_err(IoFailure::of("write", self.path))
    }
}

/// Where a page begins.
fn at(page: u32) -> u64 {
    u64::from(page.saturating_sub(1)) * PAGE_BYTES
}

fn tables(connection: &Connection) -> rusqlite::Result<Tables> {
    let mut statement = connection
        .prepare("SELECT name, rootpage, coalesce(sql, '') FROM sqlite_schema ORDER BY rowid")?;
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    tables.collect()
}

/// Puts the first page of a new database in the place of that of a copy.
fn mend(disk: &dyn Disk, copy: &Path, new: &Path) -> Result<(), IoFailure> {
    let new_file = disk.open(new, Open::Read).map_err(IoFailure::of("open", new))?;
    let mut page = disk::read(&*new_file, 0, PAGE_BYTES).map_err(IoFailure::of("read", new))?;
    let file = disk.open(copy, Open::Write).map_err(IoFailure::of("open", copy))?;
    let size = file.stat().map_err(IoFailure::of("look at", copy))?.size;
    let count = u32::try_from(size / PAGE_BYTES).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(said) = page.get_mut(COUNT_AT..).and_then(|rest| rest.first_chunk_mut()) {
        *said = count;
    }
    if let Some(free) = page.get_mut(FREE_AT..FREE_AT + FREE_BYTES) {
        free.fill(0);
    }
    disk::write(&*file, 0, &page).map_err(IoFailure::of("write", copy))
}
