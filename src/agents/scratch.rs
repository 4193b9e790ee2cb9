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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_folder_is_the_owner_s_alone_and_what_is_in_it_stays() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("scratch").join("session");
        prepare(&folder).expect("made");
        let mode = fs::metadata(&folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let welcome = folder.join(guide::WELCOME_FILE);
        assert_eq!(fs::read_to_string(&welcome).expect("there"), guide::WELCOME_TEXT);
        fs::write(&welcome, "changed").expect("written");
        prepare(&folder).expect("made again");
        assert_eq!(fs::read_to_string(&welcome).expect("there"), "changed");
    }
}
