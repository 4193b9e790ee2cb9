//! Whose database a file is, from its first bytes alone, before SQLite touches it.

use std::io;
use std::path::Path;

use crate::store::disk::{self, Disk, Open, Stat};
use crate::store::error::{IoFailure, StoreError, Unsupported};

/// `turn`, which no other program is known to use.
pub(super) const APPLICATION: u32 = u32::from_be_bytes(*b"turn");
/// The version of the tables.
pub(super) const VERSION: u32 = 1;

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: u64 = 100;
const VERSION_AT: usize = 60;
const APPLICATION_AT: usize = 68;

/// Which file it is, if it is a database of this program and version; `None` if there is no file.
/// Closing a file that this process has open as a database takes the locks away that keep other
/// processes off it, so this comes before that.
pub(super) fn check(disk: &dyn Disk, path: &Path) -> Result<Option<Stat>, StoreError> {
    let refused = |found| StoreError::Unsupported { path: path.to_path_buf(), found };
    let file = match disk.open(path, Open::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if disk::is_no_file(&error) => return Err(refused(Unsupported::NoDatabase)),
        opened => opened.map_err(IoFailure::of("open", path))?,
    };
    let stat = file.stat().map_err(IoFailure::of("look at", path))?;
    let header = disk::read(&*file, 0, HEADER_BYTES).map_err(IoFailure::of("read", path))?;
    match found(&header) {
        None => Ok(Some(stat)),
        Some(found) => Err(refused(found)),
    }
}

/// What is wrong with a header.
fn found(header: &[u8]) -> Option<Unsupported> {
    let number = |at: usize| {
        let bytes = header.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes))
    };
    let (Some(application), Some(version)) = (number(APPLICATION_AT), number(VERSION_AT)) else {
        return Some(Unsupported::NoDatabase);
    };
    if !header.starts_with(MAGIC) {
        Some(Unsupported::NoDatabase)
    } else if application != APPLICATION {
        Some(Unsupported::Foreign(application))
    } else if version != VERSION {
        Some(Unsupported::Version(version))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(application: u32, version: u32) -> Vec<u8> {
        let mut header = [MAGIC, &[0; 84]].concat();
        header[VERSION_AT..VERSION_AT + 4].copy_from_slice(&version.to_be_bytes());
        header[APPLICATION_AT..APPLICATION_AT + 4].copy_from_slice(&application.to_be_bytes());
        header
    }

    #[test]
    fn only_a_database_of_this_program_and_version_is_taken() {
        let ours = header(APPLICATION, VERSION);
        assert_eq!(found(&ours), None);
        assert_eq!(found(&header(APPLICATION, 2)), Some(Unsupported::Version(2)));
        assert_eq!(found(&header(7, VERSION)), Some(Unsupported::Foreign(7)));
        assert_eq!(found(&ours[..70]), Some(Unsupported::NoDatabase));
        assert_eq!(found(b""), Some(Unsupported::NoDatabase));
        assert_eq!(found(&[b"{", &ours[1..]].concat()), Some(Unsupported::NoDatabase));
    }
}
