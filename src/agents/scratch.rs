//! The folder in which the guide shows how tools work: its own, with one small file to read.

use std::io;
use std::path::Path;

use crate::models::guide;

const WELCOME: &str = guide::WELCOME_TEXT;

/// Makes the folder, for its owner alone, with the file in it; leaves what is there.
///
/// # Errors
/// What the system says.
pub fn prepare(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let welcome = folder.join(guide::WELCOME_FILE);
    match std::fs::File::create_new(&welcome) {
        Ok(mut file) => io::Write::write_all(&mut file, WELCOME.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
