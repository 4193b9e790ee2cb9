//! `turnstile storage`: looking after what is stored.

mod convert;
mod salvage;
mod stats;
mod verify;

use crate::app::convert::{Damaged, Missing};
use crate::app::{Access, App, StartError, WorkPlace};
use crate::cli::args::{Common, Storage};
use crate::cli::report::{Exit, Form, Problem};
use crate::cli::start::{Setting, problem, threads};
use crate::store::format::{Format, FormatError};

/// Does what is asked with what is stored.
pub(super) fn storage(common: &Common, storage: &Storage) -> Result<Exit, Problem> {
    let mut setting = Setting::read(common)?;
    let configured = WorkPlace::format(&setting.loaded);
    adopt(&mut setting)?;
    let format = WorkPlace::format(&setting.loaded);
    match storage {
        Storage::Verify { json } => {
            looking(setting, async |app| verify::verify(app, Form::of(*json)).await)
        }
        Storage::Stats { json } => {
            looking(setting, async |app| stats::stats(app, format, Form::of(*json)).await)
        }
        Storage::Salvage { ids, to } => {
            looking(setting, async |app| salvage::salvage(app, ids, to).await)
        }
        Storage::Convert { confirm: true, destroy_missing, .. } => {
            let missing = if *destroy_missing { Missing::Destroyed } else { Missing::Refused };
            convert::confirm(&setting, missing)
        }
        Storage::Convert { undo: true, .. } => convert::undo(&setting, configured),
        Storage::Convert { to, leave_damaged, .. } => {
            let to = to.as_deref().and_then(Format::named).unwrap_or_default();
            let damaged = if *leave_damaged { Damaged::Left } else { Damaged::Refused };
            convert::convert(&setting, convert::Forms { configured, to }, damaged)
        }
    }
}

/// Looks at what is there, whatever is configured.
fn adopt(setting: &mut Setting) -> Result<(), Problem> {
    match WorkPlace::adopt_format(&mut setting.loaded) {
        Ok(()) | Err(StartError::Format(FormatError::Other { .. })) => Ok(()),
        Err(error) => Err(problem(&error)),
    }
}

/// Runs something that changes nothing.
fn looking(
    setting: Setting,
    look: impl AsyncFnOnce(&App) -> Result<Exit, Problem>,
) -> Result<Exit, Problem> {
    let work_dir = &setting.loaded.paths.work_dir.path;
    if !work_dir.is_dir() {
        let why = format!("there is no folder {} yet, and so nothing stored", work_dir.display());
        return Err(Problem::new(Exit::Done, why));
    }
    let place = setting.take(Access::ReadOnly)?;
    threads()?.block_on(async {
        let (app, _notices) = setting.start(place).map_err(|error| problem(&error))?;
        let done = look(&app).await;
        let left = app.shut_down().await.map_err(|error| Problem::of(Exit::Disk, &error));
        done.and_then(|exit| left.map(|()| exit))
    })
}
