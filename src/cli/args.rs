//! The arguments of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::store::format::Format;

/// Chat with AI agents in the terminal. Nothing typed, said or decided is ever lost.
#[derive(Debug, Parser)]
#[command(name = "turnstile", version, about, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do; the terminal, if nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// For all commands.
    #[command(flatten)]
    pub common: Common,
    /// For the terminal.
    #[command(flatten)]
    pub chat: Chat,
}

impl Arguments {
    /// The arguments of a command line, which begins with the name of the program.
    ///
    /// # Errors
    /// What clap says, help and version too; also when an option of the terminal stands before a
    /// command, which would not obey it.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let arguments = Self::try_parse_from(line)?;
        match (&arguments.command, arguments.chat.given()) {
            (Some(_), Some(option)) => {
                let text = format!("{option} is for the terminal; no command takes it\n");
                Err(Self::command().error(ErrorKind::ArgumentConflict, text))
            }
            (Some(_) | None, _) => Ok(arguments),
        }
    }
}

/// Options of all commands.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// The folder that holds sessions, drafts and logs [default: the
    /// platform's data folder, or what the variable `TURNSTILE_HOME` names]
    #[arg(long, value_name = "DIR", global = true)]
    pub work_dir: Option<PathBuf>,
    /// The configuration file [default: config.toml in the platform's configuration folder, or
    /// what the variable `TURNSTILE_CONFIG` names]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// The model to use: an alias, or provider/model
    #[arg(long, short, value_name = "MODEL", global = true)]
    pub model: Option<String>,
}

/// Options of the terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Chat {
    /// Open the session that was used last
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    pub continue_latest: bool,
    /// Open this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only look: write nothing, and start although another turnstile holds the folder
    #[arg(long)]
    pub read_only: bool,
}

impl Chat {
    /// An option that was given.
    fn given(&self) -> Option<&'static str> {
        let Self { continue_latest, session, read_only } = self;
        let given = [
            (*continue_latest, "--continue"),
            (session.is_some(), "--session"),
            (*read_only, "--read-only"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}

/// What to do besides the terminal.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one prompt without a session and print the answer
    ///
    /// Tools that need a permission are denied, since nobody is asked.
    ///
    /// Exit codes: 0 answered, 1 the turn failed, 2 bad arguments or configuration, 3 trouble with
    /// the disk, 4 the answer was cut off (length limit, content filter), 130 interrupted.
    ///
    /// What had come of an answer is printed in any case; why it is not whole is said on standard
    /// error.
    Run(Run),
    /// List, show, name, fork, put away or remove sessions
    ///
    /// Exit codes: 0 done, 1 it cannot be done (no such session, or not as it stands), 2 bad
    /// arguments or configuration, 3 trouble with the disk, or another turnstile holds the folder.
    ///
    /// Of several sessions each is tried; the highest code of them is the code of all.
    #[command(subcommand)]
    Sessions(Sessions),
    /// Look after what is stored: read all of it, bring it into another form, save what a damage left
    ///
    /// These commands look at the form in which the sessions are kept, whatever is configured.
    #[command(subcommand)]
    Storage(Storage),
    /// Say what was found: folders, configuration, sessions, models, terminal
    ///
    /// What is wrong is marked with `!`, and a remedy is named.
    ///
    /// Exit codes: 0 nothing is wrong, 1 something is, 2 bad arguments.
    Doctor,
    /// Repair a terminal that a killed program left in a bad state
    ResetTerminal,
}

/// One prompt without a session.
#[derive(Debug, Args)]
pub struct Run {
    /// What to say; `-` reads it from standard input
    #[arg(value_name = "PROMPT")]
    pub prompt: String,
    /// Print every event of the turn as a line of JSON, instead of the answer
    #[arg(long)]
    pub json: bool,
    /// How many model calls the turn may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_model_calls: Option<u64>,
    /// The folder in which tools run [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List sessions, the latest first
    List {
        /// Those that were put away, too
        #[arg(long)]
        all: bool,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
        /// List those that were removed and can still be restored
        #[arg(long, conflicts_with = "all")]
        deleted: bool,
    },
    /// Print a session
    Show {
        /// The session
        id: String,
        /// Print its events and those of its turns as lines of JSON
        #[arg(long)]
        json: bool,
    },
    /// Name a session
    Rename {
        /// The session
        id: String,
        /// Its name; white space around it is left out
        title: String,
    },
    /// Put sessions away: they are kept, and not listed
    Archive {
        /// The sessions
        #[arg(required = true)]
        ids: Vec<String>,
        /// Take them out again
        #[arg(long)]
        undo: bool,
    },
    /// Begin a session with the turns of another one, and print its id
    Fork {
        /// The session
        id: String,
        /// The last turn that the new session is to have [default: the latest]
        #[arg(long, value_name = "TURN")]
        at: Option<String>,
    },
    /// Remove sessions; they can be restored for some days (`delete.keep_days`)
    Rm {
        /// The sessions
        #[arg(required = true)]
        ids: Vec<String>,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Bring removed sessions back, with what was half typed in them
    Restore {
        /// The sessions; `sessions list --deleted` names them
        #[arg(required = true)]
        ids: Vec<String>,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Say what can be destroyed: sessions that were deleted longer ago than they are kept, and the
    /// logs of turns that no session needs
    ///
    /// Exit codes: 0 done, 1 it cannot be told which turns are needed, 2 bad arguments, 3 trouble
    /// with the disk, or another turnstile holds the folder.
    Gc {
        /// Destroy it
        #[arg(long)]
        yes: bool,
        /// Print a line of JSON for each
        #[arg(long)]
        json: bool,
    },
}

/// How to look after what is stored.
#[derive(Debug, Subcommand)]
pub enum Storage {
    /// Read every session and every turn strictly, with their checksums where there are some, and
    /// follow what refers to what
    ///
    /// Changes nothing. Exit codes: 0 all is well, 1 something is wrong and named, 2 bad arguments or
    /// configuration, 3 trouble with the disk.
    Verify {
        /// Print a line of JSON for each fault, and one that sums up
        #[arg(long)]
        json: bool,
    },
    /// Bring everything into another form, and prove that it is the same
    ///
    /// The old form is kept beside the new one until `--confirm`. Breaking it off is harmless: until
    /// all is copied and compared the old form stays in use, and the same command goes on from there.
    /// Afterwards set `storage.format` in the configuration.
    ///
    /// Exit codes: 0 done, 1 some sessions or turns are damaged and nothing else was changed (or, with
    /// `--leave-damaged`, were left), 2 bad arguments or configuration, 3 trouble with the disk, or
    /// another turnstile holds the folder.
    Convert {
        /// The new form
        #[arg(long, value_name = "FORMAT", value_parser = form_names(),
              required_unless_present_any = ["confirm", "undo"])]
        to: Option<String>,
        /// Leave what is damaged in the old form only, where this command never destroys it
        #[arg(long)]
        leave_damaged: bool,
        /// Let the old form of the last conversion go, if all of it is in the new one
        #[arg(long, conflicts_with_all = ["to", "leave_damaged"])]
        confirm: bool,
        /// With `--confirm`: also what is not in the new form any more, because it was destroyed since
        #[arg(long, requires = "confirm")]
        destroy_missing: bool,
        /// Use the old form of the last conversion again, as it was then; the new one is kept
        #[arg(long, conflicts_with_all = ["to", "leave_damaged", "confirm"])]
        undo: bool,
    },
    /// Write what can still be read of damaged sessions and turns into new files of lines
    ///
    /// The damaged ones stay as they are, and no file is replaced. The files are named after the kind
    /// and the id, those of deleted ones `deleted-…` with the time of their deletion. Of a database that
    /// is damaged as a whole a new one is made, `turnstile.db`, which takes room for it and for a copy.
    /// Exit codes: 0 nothing is lost, 1 something is (or there is nothing of that id), 2 bad arguments
    /// or configuration, 3 trouble with the disk.
    Salvage {
        /// Sessions or turns [default: all that are damaged]
        ids: Vec<String>,
        /// The folder that the new files go to; made if it is not there
        #[arg(long, value_name = "DIR", default_value = ".")]
        to: PathBuf,
    },
    /// Say how much there is, how much room it takes, and what takes most
    Stats {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The names of all forms, as the configuration has them.
fn form_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<Arguments, ErrorKind> {
        Arguments::read(line.iter().map(OsString::from)).map_err(|error| error.kind())
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn common_options_stand_before_and_after_the_command() {
        for line in [
            ["turnstile", "--work-dir", "/w", "sessions", "list"],
            ["turnstile", "sessions", "list", "--work-dir", "/w"],
        ] {
            let arguments = read(&line).expect("valid");
            assert_eq!(arguments.common.work_dir, Some(PathBuf::from("/w")));
        }
    }

    #[test]
    fn options_of_the_terminal_go_with_no_command() {
        for line in [
            &["turnstile", "--read-only", "run", "hi"][..],
            &["turnstile", "-c", "sessions", "list"],
            &["turnstile", "--session", "x", "doctor"],
        ] {
            assert_eq!(read(line).err(), Some(ErrorKind::ArgumentConflict), "{line:?}");
        }
        assert!(read(&["turnstile", "-c", "--read-only"]).is_ok());
    }
}
