//! What every command begins with: the configuration, the log, the runtime for tasks, the program.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tracing_appender::non_blocking::WorkerGuard;

use crate::app::log::{self, Redactions};
use crate::app::notice::Notice;
use crate::app::{Access, App, StartError, Startup, WorkPlace};
use crate::cli::args::Common;
use crate::cli::report::{Exit, Problem};
use crate::config::environment::{Environment, Flags};
use crate::config::layer::{self, Loaded};
use crate::store::format::FormatError;

/// How fast the guide speaks, in milliseconds a word, for tests of the whole program.
const GUIDE_PACE_VARIABLE: &str = "TURNSTILE_GUIDE_PACE_MS";

/// The configuration, and where the program was started.
pub(super) struct Setting {
    pub(super) loaded: Loaded,
    pub(super) environment: Environment,
    redactions: Redactions,
}

impl Setting {
    /// Reads the configuration.
    pub(super) fn read(common: &Common) -> Result<Self, Problem> {
        let (environment, flags) = (Environment::of_process(), flags(common));
        let loaded = layer::load(&environment, &flags);
        let loaded = loaded.map_err(|error| Problem::of(Exit::Usage, &error))?;
        Ok(Self { loaded, environment, redactions: Redactions::default() })
    }

    /// Where things live, without a configuration: for whoever says what is wrong with that.
    pub(super) fn places(common: &Common) -> Result<Self, Problem> {
        let environment = Environment::of_process();
        let loaded = Loaded::places(&environment, &flags(common));
        let loaded = loaded.map_err(|error| Problem::of(Exit::Usage, &error))?;
        Ok(Self { loaded, environment, redactions: Redactions::default() })
    }

    /// Takes the work directory.
    pub(super) fn take(&self, access: Access) -> Result<WorkPlace, Problem> {
        WorkPlace::take(&self.loaded, access).map_err(|error| problem(&error))
    }

    /// Begins the program's log; without one, if it cannot be written.
    pub(super) fn log(&self, place: &WorkPlace) -> Option<WorkerGuard> {
        let options = log::Options {
            folder: self.loaded.paths.logs(),
            level: self.loaded.config.log.level,
            keep_days: self.loaded.config.log.keep_days.get(),
        };
        let log = log::open(&options, place.clock(), self.redactions.clone()).ok()?;
        tracing::dispatcher::set_global_default(log.dispatch).ok()?;
        Some(log.guard)
    }

    /// Starts the program.
    pub(super) fn start(
        self,
        place: WorkPlace,
    ) -> Result<(App, mpsc::Receiver<Notice>), StartError> {
        let slower = self.environment.variable(GUIDE_PACE_VARIABLE);
        let slower = slower.and_then(|text| text.to_str()?.parse().ok());
        App::start(Startup {
            loaded: self.loaded,
            environment: self.environment,
            place,
            redactions: self.redactions,
            guide_pace: slower.map(Duration::from_millis),
        })
    }
}

fn flags(common: &Common) -> Flags {
    Flags {
        work_dir: common.work_dir.clone(),
        config: common.config.clone(),
        model: common.model.clone(),
    }
}

/// The threads that tasks run on: one for the screen and one for everything else do for a program
/// that mostly waits.
pub(super) fn threads() -> Result<Runtime, Problem> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(2).thread_name("turnstile").enable_all().build();
    built.map_err(|error| Problem::of(Exit::Failed, &error))
}

/// A refused start, with the code that says whose fault it is.
pub(super) fn problem(error: &StartError) -> Problem {
    let exit = match error {
        StartError::WorkDir(_)
        | StartError::Lock(_)
        | StartError::Format(FormatError::Io(_) | FormatError::Unknown { .. }) => Exit::Disk,
        StartError::Format(FormatError::Other { .. } | FormatError::Network { .. })
        | StartError::Agent { .. }
        | StartError::Model { .. }
        | StartError::Rules(_)
        | StartError::Tools(_) => Exit::Usage,
    };
    Problem::of(exit, error)
}
