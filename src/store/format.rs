//! In which form the logs of a work directory are kept (`storage.format`): one for all of them. A small
//! file says which; where it is missing, the logs themselves do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::atomic;
use crate::store::disk::{self, Disk, EntryKind};
use crate::store::error::IoFailure;
use crate::store::file_system::FileSystem;
use crate::store::jsonl::Encoding;
use crate::store::log::{LogId, LogKind};
use crate::store::seam::SyncMode;
use crate::store::work_dir::WorkDir;

/// More than any name of a form.
const MARK_BYTES_MAX: u64 = 64;
/// Folders between a folder of logs and the logs: year, month, day.
const LEVELS: usize = 3;

/// A form in which logs can be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A file of lines for each log.
    #[default]
    Jsonl,
    /// A file of compressed frames for each log.
    JsonlZst,
    /// One database for all logs.
    Sqlite,
}

/// Why the logs of a work directory cannot be had in the form that was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FormatError {
    /// They are kept in another one.
    #[error(
        "the sessions in {} are kept as {found:?} (see {}), but storage.format asks for \
         {asked:?}; {}",
        root.display(), evidence.display(), remedy(*found, *asked),
        found = found.name(), asked = asked.name()
    )]
    Other {
        /// The work directory.
        root: PathBuf,
        /// How they are kept.
        found: Format,
        /// One of them.
        evidence: PathBuf,
        /// What was asked for.
        asked: Format,
    },
    /// A newer program may have written it.
    #[error(
        "{} says that the sessions there are kept as {said:?}, which this turnstile does not know; \
         use the one that made them",
        path.display()
    )]
    Unknown {
        /// The file that says so.
        path: PathBuf,
        /// What it says.
        said: String,
    },
    /// A database would begin where locks do not hold.
    #[error(
        "{} is on a file system of a server ({name}), where a database would be damaged; set \
         storage.format = \"jsonl\" in the configuration, or choose a folder of this machine with \
         --work-dir or TURNSTILE_HOME",
        root.display()
    )]
    Network {
        /// The work directory.
        root: PathBuf,
        /// What the file system is called.
        name: &'static str,
    },
    /// It cannot be found out.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// What to do where logs are kept in another form than was asked for.
fn remedy(found: Format, asked: Format) -> String {
    format!(
        "set storage.format = {:?} in the configuration, or bring them into the other form with \
         `turnstile storage convert --to {asked}`",
        found.name()
    )
}

impl Format {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Jsonl, Self::JsonlZst, Self::Sqlite];

    /// The name by which it is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => Encoding::Lines.name(),
            Self::JsonlZst => Encoding::Frames.name(),
            Self::Sqlite => "sqlite",
        }
    }

    /// How the names of its files end; none where all logs are in one.
    #[must_use]
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Jsonl => Some(Encoding::Lines.suffix()),
            Self::JsonlZst => Some(Encoding::Frames.suffix()),
            Self::Sqlite => None,
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a work directory says of its logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// In the form that was asked for, and the file says so.
    Said,
    /// Nothing speaks against that form, and no file for another.
    Unsaid,
    /// The file says another one, of which there are no logs.
    Otherwise(Format),
}

/// Who says in which form logs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// The holder of the instance lock. What others have said may be changed while there are no logs.
    Holder,
    /// Somebody beside whom others may be about to make their first log: what one of them said stays.
    Guest,
}

/// Checks that logs may be read in this form. Writes nothing.
///
/// # Errors
/// [`FormatError`].
pub fn check(disk: &dyn Disk, work_dir: &WorkDir, asked: Format) -> Result<(), FormatError> {
    kept(disk, work_dir, asked).map(drop)
}

/// Checks that logs may begin to be kept in this form in a work directory that is there.
///
/// # Errors
/// [`FormatError::Network`], and what the system says.
pub fn check_begin(disk: &dyn Disk, work_dir: &WorkDir, asked: Format) -> Result<(), FormatError> {
    let root = work_dir.root();
    match asked {
        Format::Jsonl | Format::JsonlZst => Ok(()),
        Format::Sqlite => match disk.file_system(root).map_err(IoFailure::of("look at", root))? {
            FileSystem::Local => Ok(()),
            FileSystem::Network(name) => Err(FormatError::Network { root: root.to_owned(), name }),
        },
    }
}

/// How this process says in which form logs are kept.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// In this one.
    pub asked: Format,
    /// As whom.
    pub claimant: Claimant,
    /// Whether that is to be safe on the device.
    pub sync: SyncMode,
    /// Gives the temporary file its name.
    pub process: u32,
}

impl Claim {
    /// Checks that logs may be written in this form, and says so for everybody who comes later. Of a work
    /// directory that has been prepared; several processes may do this at once, and agree then.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn make(self, disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), FormatError> {
        let asked = self.asked;
        match (kept(disk, work_dir, asked)?, self.claimant) {
            (Kept::Said, _) => Ok(()),
            (Kept::Otherwise(_), Claimant::Holder) => {
                check_begin(disk, work_dir, asked)?;
                self.say(disk, work_dir)
            }
            (Kept::Otherwise(found), Claimant::Guest) => {
                Err(said_otherwise(work_dir, found, asked))
            }
            (Kept::Unsaid, _) => {
                check_begin(disk, work_dir, asked)?;
                self.say_first(disk, work_dir)
            }
        }
    }

    /// Says so where nobody has said anything. Of several who come at once the first is right.
    fn say_first(self, disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), FormatError> {
        let path = work_dir.format_file();
        let temporary = self.write(disk, &path)?;
        let said = match disk.link(&temporary, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match mark(disk, work_dir) {
                    Ok(Some(said)) if said == self.asked => Ok(()),
                    Ok(Some(said)) => Err(said_otherwise(work_dir, said, self.asked)),
                    // What a loss of power left says nothing.
                    Ok(None) => put(disk, &temporary, &path),
                    Err(error) => Err(error),
                }
            }
            Ok(()) => Ok(()),
            // Not every file system has links.
            Err(_) => put(disk, &temporary, &path),
        };
        // A rename has taken it away already.
        drop(disk.unlink(&temporary));
        said
    }

    /// Says that logs are in this form from now on, whatever was said before. Only the holder of the work
    /// directory may.
    ///
    /// # Errors
    /// [`FormatError::Io`].
    pub fn say(self, disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), FormatError> {
        let path = work_dir.format_file();
        let temporary = self.write(disk, &path)?;
        put(disk, &temporary, &path)
    }

    fn write(self, disk: &dyn Disk, path: &Path) -> Result<PathBuf, FormatError> {
        let temporary = path.with_file_name(format!(".format.{}.tmp", self.process));
        atomic::write(disk, &temporary, format!("{}\n", self.asked).as_bytes(), self.sync)
            .inspect_err(|_| drop(disk.unlink(&temporary)))?;
        Ok(temporary)
    }
}

/// Gives what was written the name that counts.
fn put(disk: &dyn Disk, temporary: &Path, path: &Path) -> Result<(), FormatError> {
    let put = disk.rename(temporary, path).map_err(IoFailure::of("replace", path));
    Ok(put.inspect_err(|_| drop(disk.unlink(temporary)))?)
}

/// The refusal of a form other than the one that somebody said, who may have no log yet.
fn said_otherwise(work_dir: &WorkDir, found: Format, asked: Format) -> FormatError {
    let (root, evidence) = (work_dir.root().to_path_buf(), work_dir.format_file());
    FormatError::Other { root, found, evidence, asked }
}

fn kept(disk: &dyn Disk, work_dir: &WorkDir, asked: Format) -> Result<Kept, FormatError> {
    let others = |format: &Format| *format != asked;
    let said = mark(disk, work_dir)?;
    let suspects: Vec<_> = match said {
        Some(said) if said == asked => return Ok(Kept::Said),
        Some(said) => vec![said],
        None if find(disk, work_dir, asked)?.is_some() => return Ok(Kept::Unsaid),
        None => Format::ALL.into_iter().filter(others).collect(),
    };
    for found in suspects {
        if let Some(evidence) = find(disk, work_dir, found)? {
            let root = work_dir.root().to_path_buf();
            return Err(FormatError::Other { root, found, evidence, asked });
        }
    }
    Ok(said.map_or(Kept::Unsaid, Kept::Otherwise))
}

/// What the file says, if it is there and says anything.
fn mark(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Option<Format>, FormatError> {
    let path = work_dir.format_file();
    let bytes = match disk::read_small(disk, &path, MARK_BYTES_MAX) {
        Err(error) if is_not_there(&error) => None,
        bytes => bytes.map_err(IoFailure::of("read", &path))?,
    };
    let said = String::from_utf8_lossy(&bytes.unwrap_or_default()).trim().to_owned();
    if said.is_empty() {
        return Ok(None);
    }
    match Format::named(&said) {
        Some(format) => Ok(Some(format)),
        None => Err(FormatError::Unknown { path, said }),
    }
}

/// A log that is kept in this form, whatever is said; also one that was removed and can be restored.
///
/// # Errors
/// [`FormatError::Io`].
pub fn find(
    disk: &dyn Disk,
    work_dir: &WorkDir,
    format: Format,
) -> Result<Option<PathBuf>, FormatError> {
    let Some(suffix) = format.suffix() else { return database(disk, work_dir) };
    let places = [
        (work_dir.logs(LogKind::Session), LEVELS),
        (work_dir.logs(LogKind::Turn), LEVELS),
        (work_dir.deleted(), 1),
    ];
    for (folder, levels) in places {
        if let Some(found) = find_below(disk, &folder, levels, suffix)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The database, which is made with its first log.
fn database(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Option<PathBuf>, FormatError> {
    let path = work_dir.database();
    match disk.stat(&path) {
        Ok(_) => Ok(Some(path)),
        Err(error) if is_not_there(&error) => Ok(None),
        Err(error) => Err(IoFailure::of("look at", &path)(error).into()),
    }
}

/// The first log found so many levels below a folder, or less.
fn find_below(
    disk: &dyn Disk,
    folder: &Path,
    levels: usize,
    suffix: &str,
) -> Result<Option<PathBuf>, IoFailure> {
    let entries = match disk.entries(folder) {
        Err(error) if is_not_there(&error) => return Ok(None),
        entries => entries.map_err(IoFailure::of("list", folder))?,
    };
    let is_log = |name: &str| {
        let id = name.strip_suffix(suffix);
        id.is_some_and(|id| LogId::new(LogKind::Session, id).is_ok())
    };
    for entry in entries {
        let path = folder.join(&entry.name);
        let found = match entry.kind {
            EntryKind::Folder if levels > 0 => find_below(disk, &path, levels - 1, suffix)?,
            EntryKind::File if entry.name.to_str().is_some_and(is_log) => Some(path),
            EntryKind::Folder | EntryKind::File | EntryKind::Special => None,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Whether there is nothing; also where the work directory is no folder, which others tell.
fn is_not_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::store::jsonl::Options;
    use crate::store::seam::LogStore;
    use crate::store::sqlite;
    use crate::testing::disk::{Call, EPERM, Fault, Plan};
    use crate::testing::store::{Home, records, turn};
    use std::fs;

    fn store(home: &Home, format: Format) -> Arc<dyn LogStore> {
        let files = |encoding| Arc::new(home.store(Options { encoding, ..Options::default() }));
        match format {
            Format::Jsonl => files(Encoding::Lines),
            Format::JsonlZst => files(Encoding::Frames),
            Format::Sqlite => Arc::new(home.database(sqlite::Options::default())),
        }
    }

    fn claimed(home: &Home, asked: Format) -> Result<(), FormatError> {
        claimed_by(home, asked, Claimant::Holder)
    }

    fn claimed_by(home: &Home, asked: Format, claimant: Claimant) -> Result<(), FormatError> {
        let claim = Claim { asked, claimant, sync: SyncMode::Barrier, process: 7 };
        claim.make(&home.disk, &home.work_dir())
    }

    fn looked_at(home: &Home, asked: Format) -> Result<(), FormatError> {
        check(&home.disk, &home.work_dir(), asked)
    }

    fn marked(home: &Home) -> Option<String> {
        fs::read_to_string(home.work_dir().format_file()).ok()
    }

    /// A home with one log.
    async fn with_a_log(format: Format) -> Home {
        let home = Home::new();
        drop(store(&home, format).create(&turn(0), &records(0..1)).await.expect("created"));
        home
    }

    #[test]
    fn looking_leaves_no_mark_and_the_first_use_does() {
        let home = Home::new();
        looked_at(&home, Format::JsonlZst).expect("nothing is there");
        assert_eq!(marked(&home), None);
        claimed(&home, Format::JsonlZst).expect("nothing is there");
        assert_eq!(marked(&home).as_deref(), Some("jsonl-zst\n"));
        claimed(&home, Format::Jsonl).expect("there is no log yet that would be lost");
        assert_eq!(marked(&home).as_deref(), Some("jsonl\n"));
    }

    #[tokio::test]
    async fn another_form_is_refused_with_what_was_found_and_what_to_do() {
        for (found, asked) in [
            (Format::Jsonl, Format::JsonlZst),
            (Format::JsonlZst, Format::Sqlite),
            (Format::Sqlite, Format::Jsonl),
        ] {
            let home = with_a_log(found).await;
            let located = store(&home, found).locate(&turn(0));
            let log = located.map_or_else(|| home.work_dir().database(), |located| located.path);
            // With and without the mark.
            for _ in 0..2 {
                for refused in [claimed(&home, asked), looked_at(&home, asked)] {
                    let refused = refused.expect_err("another form").to_string();
                    let expected = format!(
                        "the sessions in {} are kept as \"{found}\" (see {}), but \
                         storage.format asks for \"{asked}\"; set storage.format = \"{found}\" in \
                         the configuration, or bring them into the other form with `turnstile \
                         storage convert --to {asked}`",
                        home.work_dir().root().display(),
                        log.display()
                    );
                    assert_eq!(refused, expected);
                }
                claimed(&home, found).expect("this is how they are kept");
                assert_eq!(marked(&home), Some(format!("{found}\n")));
            }
        }
    }

    #[test]
    fn a_database_is_not_begun_on_a_server() {
        let home = Home::new();
        home.disk.move_to_server("nfs");
        let refused = claimed(&home, Format::Sqlite).expect_err("locks may not hold there");
        let told = refused.to_string();
        for said in ["(nfs)", "storage.format = \"jsonl\"", "--work-dir"] {
            assert!(told.contains(said), "{said} is not said: {told}");
        }
        assert_eq!(marked(&home), None);
        claimed(&home, Format::JsonlZst).expect("files need no shared memory");
        claimed_by(&home, Format::Sqlite, Claimant::Holder).expect_err("nor in the place of files");
        assert_eq!(marked(&home).as_deref(), Some("jsonl-zst\n"));
        // One that is there can be read there, and brought into another form.
        let home = Home::new();
        claimed(&home, Format::Sqlite).expect("a disk of this machine");
        home.disk.move_to_server("nfs");
        claimed(&home, Format::Sqlite).expect("it was moved there");
    }

    #[test]
    fn of_many_that_come_at_once_none_is_in_the_others_way() {
        let home = Home::new();
        std::thread::scope(|scope| {
            for process in 0..8 {
                let (disk, work_dir) = (home.disk.clone(), home.work_dir());
                scope.spawn(move || {
                    let (asked, claimant) = (Format::JsonlZst, Claimant::Guest);
                    let claim = Claim { asked, claimant, sync: SyncMode::Barrier, process };
                    claim.make(&disk, &work_dir).expect("free");
                });
            }
        });
        assert_eq!(marked(&home).as_deref(), Some("jsonl-zst\n"));
        let left = fs::read_dir(home.work_dir().storage()).expect("there").count();
        assert_eq!(left, 3, "the mark and the folders of the logs");
    }

    #[test]
    fn what_another_process_has_said_is_changed_by_the_holder_of_the_lock_alone() {
        let home = Home::new();
        claimed_by(&home, Format::JsonlZst, Claimant::Guest).expect("nobody has said anything");
        // It may be about to make its first log.
        let refused = claimed_by(&home, Format::Jsonl, Claimant::Guest).expect_err("another form");
        let evidence = home.work_dir().format_file().display().to_string();
        let told = refused.to_string();
        assert!(told.contains(&format!("are kept as \"jsonl-zst\" (see {evidence})")), "{told}");
        let remedy = "set storage.format = \"jsonl-zst\" in the configuration, or ";
        assert!(told.contains(remedy), "{told}");
        assert_eq!(marked(&home).as_deref(), Some("jsonl-zst\n"));
        looked_at(&home, Format::Jsonl).expect("there is no log that could not be read");
        claimed_by(&home, Format::Jsonl, Claimant::Holder).expect("there is no log yet");
        assert_eq!(marked(&home).as_deref(), Some("jsonl\n"));
    }

    #[test]
    fn of_many_that_come_at_once_with_different_forms_those_of_one_are_right() {
        for _ in 0..20 {
            let home = Home::new();
            let claims = std::thread::scope(|scope| {
                let claims: Vec<_> = (0..6)
                    .map(|process| {
                        let (disk, work_dir) = (home.disk.clone(), home.work_dir());
                        let asked = Format::ALL[process as usize % 3];
                        let (claimant, sync) = (Claimant::Guest, SyncMode::Never);
                        let claim = Claim { asked, claimant, sync, process };
                        scope.spawn(move || (asked, claim.make(&disk, &work_dir).is_ok()))
                    })
                    .collect();
                claims.into_iter().map(|claim| claim.join().expect("no panic")).collect::<Vec<_>>()
            });
            let said = marked(&home).expect("somebody was first");
            let expected = claims.iter().map(|(asked, _)| format!("{asked}\n") == said);
            assert!(claims.iter().map(|claim| claim.1).eq(expected), "{said}: {claims:?}");
            let left = fs::read_dir(home.work_dir().storage()).expect("there").count();
            assert_eq!(left, 3, "the mark and the folders of the logs");
        }
    }

    #[test]
    fn where_there_are_no_links_the_form_is_said_all_the_same() {
        let home = Home::new();
        let refused = Fault::Error(EPERM);
        home.disk.fail(Plan { only: Some(Call::Link), from: 0, times: 1, fault: refused });
        claimed(&home, Format::Sqlite).expect("nothing is there");
        assert_eq!(marked(&home).as_deref(), Some("sqlite\n"));
    }

    #[tokio::test]
    async fn what_was_deleted_and_can_be_restored_counts() {
        let home = with_a_log(Format::JsonlZst).await;
        store(&home, Format::JsonlZst).remove(&turn(0)).await.expect("removed");
        let refused = looked_at(&home, Format::Jsonl);
        assert!(matches!(refused, Err(FormatError::Other { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_mark_that_is_empty_is_none_and_an_unknown_one_is_refused() {
        let home = with_a_log(Format::JsonlZst).await;
        fs::write(home.work_dir().format_file(), "").expect("a loss of power");
        claimed(&home, Format::JsonlZst).expect("the logs say so");
        assert_eq!(marked(&home).as_deref(), Some("jsonl-zst\n"));
        fs::write(home.work_dir().format_file(), "tablets\n").expect("a newer program");
        for asked in Format::ALL {
            let refused = claimed(&home, asked);
            let unknown =
                matches!(&refused, Err(FormatError::Unknown { said, .. }) if said == "tablets");
            assert!(unknown, "{refused:?}");
        }
        assert_eq!(marked(&home).as_deref(), Some("tablets\n"));
    }

    #[tokio::test]
    async fn beside_logs_of_the_form_that_is_asked_for_others_stand_in_nobody_s_way() {
        let home = with_a_log(Format::Jsonl).await;
        for other in [Format::JsonlZst, Format::Sqlite] {
            let other = store(&home, other);
            drop(other.create(&turn(1), &records(0..1)).await.expect("created"));
        }
        for asked in Format::ALL {
            looked_at(&home, asked).expect("there are some");
        }
    }
}
