//! Where a provider's key comes from, and fetching it. A key never stands in the configuration
//! itself, and no error holds one.

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use tokio::io::AsyncReadExt as _;

use crate::base::secret::Secret;
use crate::config::environment::Environment;
use crate::config::value::{self, Malformed, VariableName};

/// How long a key command may take: enough to type a passphrase into whatever it opens.
pub const KEY_COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// What a key command may print: more than any key with its notes.
const KEY_COMMAND_BYTES_MAX: u64 = 64 * 1024;

/// Where a key comes from: `{ env = "NAME" }` or `{ command = ["program", "argument"] }`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum KeySource {
    /// An environment variable holds it.
    Env(VariableName),
    /// A command prints it, on the first line.
    Command(CommandLine),
}

/// A program and its arguments; no shell reads them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>")]
pub struct CommandLine {
    program: String,
    arguments: Vec<String>,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The variable is not set, or empty.
    #[error(
        "the environment variable {0} is not set; set it, or name another in the configuration"
    )]
    Unset(VariableName),
    /// The variable holds no UTF-8.
    #[error("the environment variable {0} holds something that is no text")]
    VariableNotText(VariableName),
    /// The command could not be started.
    #[error("the key command {program:?} cannot be started; is it installed and in the PATH?")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// What the command printed could not be read.
    #[error("what the key command {program:?} prints cannot be read")]
    Read {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The command ended badly.
    #[error("the key command {program:?} ended with {status}; run it in a terminal to see why")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The command did not end within [`KEY_COMMAND_TIMEOUT`].
    #[error(
        "the key command {program:?} did not end within {} s and was stopped; run it in a terminal \
         to see what it waits for",
        KEY_COMMAND_TIMEOUT.as_secs()
    )]
    TimedOut {
        /// The program.
        program: String,
    },
    /// The first line of what the command printed is no key.
    #[error("the key command {program:?} {what}; its first line must be the key")]
    NoKey {
        /// The program.
        program: String,
        /// What it did instead.
        what: &'static str,
    },
}

impl KeySource {
    /// Fetches the key: looks into the environment, or runs the command in it. Dropping the future
    /// ends the command.
    ///
    /// # Errors
    ///
    /// [`KeyError`]; no variant holds anything that the command printed or the variable holds.
    pub async fn fetch(&self, environment: &Environment) -> Result<Secret, KeyError> {
        match self {
            Self::Env(name) => variable(name, environment),
            Self::Command(command) => command.run(environment).await,
        }
    }
}

/// The source without the arguments of a command, which may say more than they should.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable {name}"),
            Self::Command(command) => write!(f, "the command {:?}", command.program),
        }
    }
}

fn variable(name: &VariableName, environment: &Environment) -> Result<Secret, KeyError> {
    let value = environment.variable(name.as_str()).ok_or_else(|| KeyError::Unset(name.clone()))?;
    let text = value.to_str().ok_or_else(|| KeyError::VariableNotText(name.clone()))?;
    let secret = Secret::new(text);
    if secret.expose().is_empty() { Err(KeyError::Unset(name.clone())) } else { Ok(secret) }
}

impl CommandLine {
    async fn run(&self, environment: &Environment) -> Result<Secret, KeyError> {
        let program = || self.program.clone();
        let mut child = self
            .start(environment)
            .map_err(|source| KeyError::Start { program: program(), source })?;
        let reading = read_and_wait(child.as_mut());
        let Ok(ended) = tokio::time::timeout(KEY_COMMAND_TIMEOUT, reading).await else {
            let stopped = Box::into_pin(child.kill()).await;
            return Err(match stopped {
                Ok(()) => KeyError::TimedOut { program: program() },
                Err(source) => KeyError::Read { program: program(), source },
            });
        };
        let (printed, status) =
            ended.map_err(|source| KeyError::Read { program: program(), source })?;
        if !status.success() {
            return Err(KeyError::Failed { program: program(), status });
        }
        first_line(&printed).map_err(|what| KeyError::NoKey { program: program(), what })
    }

    /// Starts the program in a process group of its own, so that it can be ended with whatever it
    /// starts, and cannot read from the terminal that the screen is drawn on.
    fn start(&self, environment: &Environment) -> io::Result<Box<dyn ChildWrapper>> {
        let mut command = CommandWrap::with_new(&self.program, |command| {
            command
                .args(&self.arguments)
                .env_clear()
                .envs(&environment.variables)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
        });
        command.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn()
    }
}

async fn read_and_wait(child: &mut dyn ChildWrapper) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout().take() {
        stdout.take(KEY_COMMAND_BYTES_MAX).read_to_end(&mut printed).await?;
    }
    Ok((printed, child.wait().await?))
}

fn first_line(printed: &[u8]) -> Result<Secret, &'static str> {
    let line = printed.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = str::from_utf8(line).map_err(|_| "prints something that is no text")?;
    let secret = Secret::new(text);
    if secret.expose().is_empty() { Err("prints nothing") } else { Ok(secret) }
}

impl TryFrom<Vec<String>> for CommandLine {
    type Error = Malformed;

    fn try_from(words: Vec<String>) -> Result<Self, Malformed> {
        let mut words = words.into_iter();
        match words.next() {
            Some(program) if !program.is_empty() => {
                Ok(Self { program, arguments: words.collect() })
            }
            _ => Err(Malformed::new("a command, such as [\"pass\", \"show\", \"name\"]")),
        }
    }
}

/// Both forms in one, since they exclude each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forms {
    env: Option<VariableName>,
    #[serde(default, deserialize_with = "command_line")]
    command: Option<CommandLine>,
}

fn command_line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<CommandLine>, D::Error> {
    value::unquoted(from, "a list such as [\"program\", \"argument\"]").map(Some)
}

impl<'de> Deserialize<'de> for KeySource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "{ env = \"NAME\" } or { command = [\"program\", \"argument\"] }; a key itself \
                        never stands in this file";
        match value::unquoted(deserializer, expected)? {
            Forms { env: Some(name), command: None } => Ok(Self::Env(name)),
            Forms { env: None, command: Some(command) } => Ok(Self::Command(command)),
            Forms { .. } => Err(de::Error::custom(format_args!("expected {expected}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment { variables, ..Environment::default() }
    }

    fn env(name: &str) -> KeySource {
        KeySource::Env(name.to_owned().try_into().expect("a name"))
    }

    fn shell(script: &str) -> KeySource {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        KeySource::Command(words.try_into().expect("a command"))
    }

    /// The key, or what is told.
    async fn fetched(source: &KeySource, variables: &[(&str, &str)]) -> Result<String, String> {
        let fetched = source.fetch(&environment(variables)).await;
        fetched.map(|secret| secret.expose().to_owned()).map_err(|why| why.to_string())
    }

    async fn check_refused(source: &KeySource, variables: &[(&str, &str)], told: &str) {
        assert_eq!(fetched(source, variables).await, Err(told.to_owned()));
    }

    #[tokio::test]
    async fn a_key_comes_from_a_variable() {
        let key = fetched(&env("LAB_KEY"), &[("LAB_KEY", " sk-123\n")]).await;
        assert_eq!(key.as_deref(), Ok("sk-123"));
        for variables in [&[][..], &[("LAB_KEY", "")], &[("LAB_KEY", " ")]] {
            check_refused(
                &env("LAB_KEY"),
                variables,
                "the environment variable LAB_KEY is not set; set it, or name another in the \
                 configuration",
            )
            .await;
        }
    }

    #[tokio::test]
    async fn a_key_comes_from_the_first_line_of_a_command_that_sees_the_environment() {
        let source = shell("echo sk-$WHO; echo user: ada; echo noise >&2");
        assert_eq!(fetched(&source, &[("WHO", "123")]).await.as_deref(), Ok("sk-123"));
    }

    #[tokio::test]
    async fn a_command_that_gives_no_key_is_told_without_what_it_printed() {
        check_refused(
            &shell("echo sk-123; echo sk-123 >&2; exit 3"),
            &[],
            "the key command \"/bin/sh\" ended with exit status: 3; run it in a terminal to see why",
        )
        .await;
        check_refused(
            &shell("echo; echo sk-123"),
            &[],
            "the key command \"/bin/sh\" prints nothing; its first line must be the key",
        )
        .await;
        check_refused(
            &shell("printf 'sk-123\\377'"),
            &[],
            "the key command \"/bin/sh\" prints something that is no text; its first line must be \
             the key",
        )
        .await;
        let words = vec!["/nowhere/pass".to_owned(), "sk-123".to_owned()];
        check_refused(
            &KeySource::Command(words.try_into().expect("a command")),
            &[],
            "the key command \"/nowhere/pass\" cannot be started; is it installed and in the PATH?",
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_does_not_end_is_stopped_with_what_it_started() {
        check_refused(
            &shell("sleep 1000 & sleep 1000"),
            &[("PATH", "/usr/bin:/bin")],
            "the key command \"/bin/sh\" did not end within 60 s and was stopped; run it in a \
             terminal to see what it waits for",
        )
        .await;
    }

    #[test]
    fn a_source_is_shown_without_arguments() {
        let words = vec!["pass".to_owned(), "sk-123".to_owned()];
        let command = KeySource::Command(words.try_into().expect("a command"));
        assert_eq!(command.to_string(), "the command \"pass\"");
        assert_eq!(env("LAB_KEY").to_string(), "the environment variable LAB_KEY");
    }
}
