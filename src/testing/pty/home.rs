//! A home of its own for every test: nothing of the machine is seen, nothing of it is touched.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The folders of a person who has just got a computer. They go when this is dropped.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Home {
    /// An empty home.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let home = Self { folder };
        fs::create_dir_all(home.project()).expect("a folder in the test's own");
        home
    }

    /// All of it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the program keeps sessions and everything else.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        self.path("work")
    }

    /// Where the program is started.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The configuration file, which need not be there.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.path("config").join("turnstile").join("config.toml")
    }

    /// Writes the configuration file.
    pub fn configure(&self, text: &str) {
        let file = self.config_file();
        let folder = file.parent().unwrap_or(&file);
        fs::create_dir_all(folder).expect("a folder in the test's own");
        fs::write(&file, text).expect("a file in the test's own folder");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The whole environment of the program. The guide answers, and at once, since whatever model
    /// runs on the machine is no business of a test.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let path = |path: &Path| path.to_str().expect("temporary folders are text").to_owned();
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            of("HOME", &path(self.folder.path())),
            of("PWD", &path(&self.project())),
            of("PATH", "/usr/local/bin:/usr/bin:/bin"),
            of("XDG_CONFIG_HOME", &path(&self.path("config"))),
            of("XDG_DATA_HOME", &path(&self.path("data"))),
            of("XDG_STATE_HOME", &path(&self.path("state"))),
            of("XDG_CACHE_HOME", &path(&self.path("cache"))),
            of("TURNSTILE_HOME", &path(&self.work_dir())),
            of("TURNSTILE_MODEL", "guide"),
            of("TURNSTILE_GUIDE_PACE_MS", "0"),
            of("TERM", "xterm-256color"),
            of("LANG", "C.UTF-8"),
            of("TZ", "UTC"),
        ]
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}
