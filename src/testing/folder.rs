//! What lies below a folder, for tests that look at the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder; none if it is not there.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Everything below a folder: files with their bytes, folders without.
///
/// # Panics
/// When something cannot be read.
#[must_use]
pub fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let bytes = path.is_file().then(|| fs::read(&path).expect("a file"));
            if bytes.is_none() {
                folders.push(path.clone());
            }
            found.insert(path, bytes);
        }
    }
    found
}
