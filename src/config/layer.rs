//! The layers of the configuration, each over the ones before: defaults, the person's file, the
//! environment, flags.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;

use crate::config::environment::{Environment, Flags};
use crate::config::file::{self, FileError, Parsed};
use crate::config::origin::Origin;
use crate::config::path::{Located, PathError, Paths};
use crate::config::schema::{Config, Level};

/// Sets `models.default`.
pub const MODEL_VARIABLE: &str = "TURNSTILE_MODEL";
/// Sets `models.default`.
pub const MODEL_FLAG: &str = "--model";
/// Sets `log.level`.
pub const LOG_VARIABLE: &str = "TURNSTILE_LOG";

/// The key of the model that answers when nothing else is said.
pub const MODEL_KEY: &str = "models.default";
/// The key of the agent that answers when nothing else is said.
pub const AGENT_KEY: &str = "agents.default";
const LEVEL_KEY: &str = "log.level";

/// The configuration and what it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// Where things live.
    pub paths: Paths,
    /// Where each value that is not a default was set, by its dotted key such as `ui.theme`.
    pub origins: BTreeMap<String, Origin>,
}

impl Loaded {
    /// The places alone, with every value as it comes: for whoever says what is wrong with the rest.
    ///
    /// # Errors
    /// [`PathError`] if it is not known where things live.
    pub fn places(environment: &Environment, flags: &Flags) -> Result<Self, PathError> {
        let paths = Paths::resolve(environment, flags)?;
        Ok(Self { config: Config::default(), paths, origins: BTreeMap::new() })
    }

    /// Where the value of a key, such as `ui.theme`, was set.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Whether the model was named for this start, and not once for all in a file.
    #[must_use]
    pub fn model_is_for_this_start(&self) -> bool {
        matches!(self.origin(MODEL_KEY), Origin::Flag(_) | Origin::Variable(_))
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not known where things live.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The person's file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A variable holds no UTF-8.
    #[error("{0} holds something that is no text; set it again, or unset it")]
    NotText(&'static str),
    /// A level that does not exist.
    #[error("{origin}: {why}")]
    Level {
        /// Who named it.
        origin: Origin,
        /// Which levels there are.
        why: serde::de::value::Error,
    },
}

/// Reads the configuration.
///
/// # Errors
///
/// [`ConfigError`]. That there is no file is an error only if somebody named it.
pub fn load(environment: &Environment, flags: &Flags) -> Result<Loaded, ConfigError> {
    let paths = Paths::resolve(environment, flags)?;
    let Parsed { mut config, set } = person(&paths.config_file)?;
    let places = set.into_iter().map(|(key, place)| (key, Origin::File(place)));
    let mut origins: BTreeMap<_, _> = places.collect();

    let by_flag = flags.model.as_deref().map(|name| (name, MODEL_FLAG));
    let model = closest(environment, by_flag, MODEL_VARIABLE)?;
    if let Some((name, origin)) = model {
        config.models.default = Some(name.to_owned());
        origins.insert(MODEL_KEY.to_owned(), origin);
    }
    let level = closest(environment, None, LOG_VARIABLE)?;
    if let Some((name, origin)) = level {
        config.log.level = Level::deserialize(name.into_deserializer())
            .map_err(|why| ConfigError::Level { origin: origin.clone(), why })?;
        origins.insert(LEVEL_KEY.to_owned(), origin);
    }
    Ok(Loaded { config, paths, origins })
}

fn person(file: &Located) -> Result<Parsed, FileError> {
    match (file::read(&file.path), &file.origin) {
        (Err(FileError::Missing(_)), Origin::Default) => {
            Ok(Parsed { config: Config::default(), set: Vec::new() })
        }
        (read, _) => read,
    }
}

/// What a flag says, else what a variable says.
fn closest<'a>(
    environment: &'a Environment,
    by_flag: Option<(&'a str, &'static str)>,
    variable: &'static str,
) -> Result<Option<(&'a str, Origin)>, ConfigError> {
    if let Some((text, flag)) = by_flag {
        return Ok(Some((text, Origin::Flag(flag))));
    }
    let Some(value) = environment.variable(variable) else { return Ok(None) };
    let text = value.to_str().ok_or(ConfigError::NotText(variable))?;
    Ok(Some((text, Origin::Variable(variable))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::Platform;
    use crate::config::origin::Place;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::PathBuf;

    const FILE: &str = "[log]\nlevel = \"warn\"\n[models]\ndefault = \"work\"\n\
                        aliases.work = \"lab/large\"\n";

    /// A home with, perhaps, a configuration in it.
    struct Home {
        folder: tempfile::TempDir,
        environment: Environment,
    }

    fn home(file: Option<&str>) -> Home {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let platform = Platform {
            home: path(""),
            config: path("config"),
            data: path("data"),
            cache: path("cache"),
        };
        if let Some(text) = file {
            std::fs::create_dir_all(path("config/turnstile")).expect("a folder");
            std::fs::write(path("config/turnstile/config.toml"), text).expect("a file");
        }
        let environment = Environment { platform: Some(platform), ..Environment::default() };
        Home { folder, environment }
    }

    impl Home {
        fn file(&self) -> PathBuf {
            self.folder.path().join("config/turnstile/config.toml")
        }

        fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
            self.environment.variables.insert(name.into(), value.into());
            self
        }

        fn load(&self, flags: &Flags) -> Loaded {
            load(&self.environment, flags).expect("a configuration")
        }

        fn refused(&self, flags: &Flags) -> String {
            let why = load(&self.environment, flags).expect_err("no configuration").to_string();
            why.replace(&self.folder.path().display().to_string(), "")
        }
    }

    fn flags(model: &str) -> Flags {
        Flags { model: Some(model.to_owned()), ..Flags::default() }
    }

    /// What the two values with layers are, and who set them.
    fn layered(loaded: &Loaded) -> [(String, String); 2] {
        let origin = |key| loaded.origin(key).to_string();
        let model = loaded.config.models.default.clone().unwrap_or_default();
        let level = format!("{:?}", loaded.config.log.level);
        [(model, origin(MODEL_KEY)), (level, origin(LEVEL_KEY))]
    }

    fn check_layered(loaded: &Loaded, expected: [(&str, &str); 2]) {
        assert_eq!(layered(loaded), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn without_a_file_everything_is_as_it_comes() {
        let home = home(None);
        let loaded = home.load(&Flags::default());
        assert_eq!((loaded.config, loaded.origins), (Config::default(), BTreeMap::new()));
        assert_eq!(loaded.paths.config_file.path, home.file());
    }

    #[test]
    fn each_layer_beats_the_ones_before() {
        let home = home(Some(FILE));
        let place = |line| Place { file: home.file(), line, column: 1 }.to_string();
        let (model, level) = (place(4), place(2));
        check_layered(&home.load(&Flags::default()), [("work", &model), ("Warn", &level)]);

        let home = home.with(MODEL_VARIABLE, "lab/small").with(LOG_VARIABLE, "debug");
        check_layered(
            &home.load(&Flags::default()),
            [("lab/small", MODEL_VARIABLE), ("Debug", LOG_VARIABLE)],
        );
        check_layered(&home.load(&flags("work")), [("work", MODEL_FLAG), ("Debug", LOG_VARIABLE)]);
    }

    #[test]
    fn what_a_layer_may_not_say_is_told_with_the_layer() {
        let home = home(Some(FILE));
        let any = &Flags::default();
        let home = home.with(LOG_VARIABLE, "loud");
        assert_eq!(
            home.refused(any),
            "TURNSTILE_LOG: unknown variant `loud`, expected one of `error`, `warn`, `info`, \
             `debug`, `trace`"
        );
        let home = home.with(MODEL_VARIABLE, OsString::from_vec(vec![0xff]));
        assert_eq!(
            home.refused(any),
            "TURNSTILE_MODEL holds something that is no text; set it again, or unset it"
        );
    }

    #[test]
    fn a_file_that_somebody_named_must_be_there() {
        let home = home(Some(FILE)).with("TURNSTILE_CONFIG", "/nowhere/config.toml");
        assert_eq!(
            home.refused(&Flags::default()),
            "there is no configuration file /nowhere/config.toml; create it, or name another"
        );
    }

    #[test]
    fn an_environment_does_not_print_what_it_holds() {
        let home = home(None).with("LAB_API_KEY", "sk-123");
        let printed = format!("{:?}", home.environment);
        assert!(printed.contains("LAB_API_KEY") && !printed.contains("sk-123"), "{printed}");
    }
}
