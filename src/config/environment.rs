//! What the program was started with: flags, variables, folders of the platform, current folder. The
//! process is asked once, here; everything else is given the answer.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use etcetera::BaseStrategy;

/// What the program was started in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The environment variables. Some hold secrets, so their values never print.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where this platform keeps things of the person; none if no home folder is known.
    pub platform: Option<Platform>,
    /// The current folder; none if it cannot be read any more.
    pub folder: Option<PathBuf>,
}

/// Where this platform keeps things of the person; all absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// All that is theirs.
    pub home: PathBuf,
    /// What they configure.
    pub config: PathBuf,
    /// What they make.
    pub data: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
}

/// What was said on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--work-dir`
    pub work_dir: Option<PathBuf>,
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--model`
    pub model: Option<String>,
}

impl Environment {
    /// The one of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            platform: Platform::of_process(),
            folder: std::env::current_dir().ok(),
        }
    }

    /// The value of a variable. An empty one counts as not set.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name)).map(OsString::as_os_str);
        value.filter(|value| !value.is_empty())
    }
}

impl Platform {
    fn of_process() -> Option<Self> {
        let strategy = etcetera::choose_base_strategy().ok()?;
        // A relative home would put everything below whatever folder the program is started in.
        strategy.home_dir().is_absolute().then(|| Self {
            home: strategy.home_dir().to_owned(),
            config: strategy.config_dir(),
            data: strategy.data_dir(),
            cache: strategy.cache_dir(),
        })
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("platform", &self.platform)
            .field("folder", &self.folder)
            .finish()
    }
}
