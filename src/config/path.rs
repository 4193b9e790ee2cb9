//! Where things live: the work directory, the configuration, the cache.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::config::environment::{Environment, Flags, Platform};
use crate::config::origin::Origin;

/// Names the work directory.
pub const HOME_VARIABLE: &str = "TURNSTILE_HOME";
/// Names the work directory.
pub const WORK_DIR_FLAG: &str = "--work-dir";
/// Names the person's configuration file.
pub const CONFIG_VARIABLE: &str = "TURNSTILE_CONFIG";
/// Names the person's configuration file.
pub const CONFIG_FLAG: &str = "--config";

/// The name of the program in the folders of the platform.
const PROGRAM: &str = "turnstile";

/// Where things live. Nothing has been created, and nothing needs to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Sessions, turns and everything else that is the person's.
    pub work_dir: Located,
    /// The person's configuration; it need not lie in `config_dir`.
    pub config_file: Located,
    /// Where the platform keeps what configures this program.
    pub config_dir: PathBuf,
    /// What can be made again.
    pub cache_dir: PathBuf,
    /// The person's home folder.
    pub home: PathBuf,
}

/// A path and who named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The path; absolute.
    pub path: PathBuf,
    /// Who named it.
    pub origin: Origin,
}

/// Why it is not known where things live.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// There is no folder of the person.
    #[error("no home folder is known; set HOME to an absolute path")]
    NoHome,
    /// A variable holds a path that would mean another place in every folder.
    #[error("{variable} is the relative path {path:?}; set it to an absolute one")]
    Relative {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        path: PathBuf,
    },
    /// A flag without a path.
    #[error("{flag} is empty; give it a path, or leave it out")]
    Empty {
        /// The flag.
        flag: &'static str,
    },
    /// A flag with a relative path, but the current folder is gone.
    #[error(
        "{flag} is the relative path {path:?}, but the current folder cannot be read; \
         give an absolute path"
    )]
    NoFolder {
        /// The flag.
        flag: &'static str,
        /// Its path.
        path: PathBuf,
    },
}

impl Paths {
    /// Finds out where things live: what a flag says, else what a variable says, else the place
    /// that the platform has for such things.
    ///
    /// # Errors
    ///
    /// [`PathError`].
    pub fn resolve(environment: &Environment, flags: &Flags) -> Result<Self, PathError> {
        let Platform { home, config, data, cache } =
            environment.platform.as_ref().ok_or(PathError::NoHome)?;
        let work_dir = named(
            environment,
            (WORK_DIR_FLAG, flags.work_dir.as_deref()),
            (HOME_VARIABLE, environment.variable(HOME_VARIABLE)),
        )?;
        let config_file = named(
            environment,
            (CONFIG_FLAG, flags.config.as_deref()),
            (CONFIG_VARIABLE, environment.variable(CONFIG_VARIABLE)),
        )?;
        let config_dir = config.join(PROGRAM);
        let usual = |path: PathBuf| Located { path, origin: Origin::Default };
        Ok(Self {
            work_dir: work_dir.unwrap_or_else(|| usual(data.join(PROGRAM))),
            config_file: config_file.unwrap_or_else(|| usual(config_dir.join("config.toml"))),
            config_dir,
            cache_dir: cache.join(PROGRAM),
            home: home.clone(),
        })
    }

    /// Where sessions of the guide have the folders that they work in; outside the work directory.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.cache_dir.join("scratch")
    }

    /// The folder of the program's own log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.work_dir.path.join("logs")
    }
}

fn named(
    environment: &Environment,
    (flag, by_flag): (&'static str, Option<&Path>),
    (variable, by_variable): (&'static str, Option<&OsStr>),
) -> Result<Option<Located>, PathError> {
    if let Some(path) = by_flag {
        if path.as_os_str().is_empty() {
            return Err(PathError::Empty { flag });
        }
        let no_folder = || PathError::NoFolder { flag, path: path.to_owned() };
        let path = match &environment.folder {
            _ if path.is_absolute() => path.to_owned(),
            folder => folder.as_ref().ok_or_else(no_folder)?.join(path),
        };
        return Ok(Some(Located { path, origin: Origin::Flag(flag) }));
    }
    let Some(path) = by_variable.map(PathBuf::from) else { return Ok(None) };
    if path.is_relative() {
        return Err(PathError::Relative { variable, path });
    }
    Ok(Some(Located { path, origin: Origin::Variable(variable) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment {
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            platform: Some(Platform {
                home: "/home/ada".into(),
                config: "/home/ada/.config".into(),
                data: "/home/ada/.local/share".into(),
                cache: "/home/ada/.cache".into(),
            }),
            folder: Some("/project".into()),
        }
    }

    fn located(path: &str, origin: Origin) -> Located {
        Located { path: path.into(), origin }
    }

    fn flags(work_dir: Option<&str>, config: Option<&str>) -> Flags {
        Flags {
            work_dir: work_dir.map(PathBuf::from),
            config: config.map(PathBuf::from),
            ..Flags::default()
        }
    }

    #[test]
    fn without_a_word_things_live_where_the_platform_keeps_them() {
        let paths = Paths::resolve(&environment(&[("TURNSTILE_HOME", "")]), &Flags::default());
        assert_eq!(
            paths,
            Ok(Paths {
                work_dir: located("/home/ada/.local/share/turnstile", Origin::Default),
                config_file: located("/home/ada/.config/turnstile/config.toml", Origin::Default),
                config_dir: "/home/ada/.config/turnstile".into(),
                cache_dir: "/home/ada/.cache/turnstile".into(),
                home: "/home/ada".into(),
            })
        );
    }

    #[test]
    fn a_flag_beats_a_variable_and_a_variable_the_platform() {
        let environment = environment(&[
            ("TURNSTILE_HOME", "/work"),
            ("TURNSTILE_CONFIG", "/etc/turnstile.toml"),
        ]);
        let paths = Paths::resolve(&environment, &flags(Some("here"), None)).expect("paths");
        assert_eq!(paths.work_dir, located("/project/here", Origin::Flag("--work-dir")));
        assert_eq!(
            paths.config_file,
            located("/etc/turnstile.toml", Origin::Variable("TURNSTILE_CONFIG"))
        );
    }

    #[test]
    fn a_path_that_means_nothing_certain_is_refused() {
        let home = environment(&[]);
        let nowhere = Environment { folder: None, ..home.clone() };
        let homeless = Environment { platform: None, ..home.clone() };
        let refused = |environment: &Environment, flags: Flags| {
            Paths::resolve(environment, &flags).map_err(|why| why.to_string())
        };
        for (environment, flags, why) in [
            (&homeless, Flags::default(), "no home folder is known; set HOME to an absolute path"),
            (&home, flags(Some(""), None), "--work-dir is empty; give it a path, or leave it out"),
            (
                &nowhere,
                flags(None, Some("a.toml")),
                "--config is the relative path \"a.toml\", but the current folder cannot be read; \
                 give an absolute path",
            ),
            (
                &environment(&[("TURNSTILE_HOME", "data")]),
                Flags::default(),
                "TURNSTILE_HOME is the relative path \"data\"; set it to an absolute one",
            ),
        ] {
            assert_eq!(refused(environment, flags), Err(why.to_owned()));
        }
        assert!(Paths::resolve(&nowhere, &flags(Some("/work"), None)).is_ok());
    }
}
