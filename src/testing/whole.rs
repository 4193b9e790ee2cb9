//! The whole program without a screen, in folders of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::app::log::Redactions;
use crate::app::notice::Notice;
use crate::app::{Access, App, Startup, WorkPlace};
use crate::config::environment::{Environment, Flags, Platform};
use crate::config::layer;
use crate::store::format::Format;

/// The configuration of a program that asks nobody.
pub const GUIDE: &str = "[models]\ndefault = \"guide\"\n";

/// The same, for a work directory whose logs are kept in this form.
#[must_use]
pub fn kept(format: Format) -> String {
    format!("{GUIDE}[storage]\nformat = \"{format}\"\n")
}

/// Starts the program in `folder`, configured by `config`, which should name a model; its work
/// directory is [`work_dir`]. It does nothing by itself before [`App::begin`].
///
/// # Panics
/// When the configuration cannot be used.
#[expect(clippy::unused_async, reason = "the tasks of the program begin within a runtime")]
pub async fn start(folder: &Path, config: &str) -> (App, mpsc::Receiver<Notice>) {
    let config_file = folder.join("config.toml");
    std::fs::write(&config_file, config).expect("a file in the test's own folder");
    let environment = Environment {
        variables: [].into(),
        platform: Some(Platform {
            home: folder.join("home"),
            config: folder.join("config"),
            data: folder.join("data"),
            cache: folder.join("cache"),
        }),
        folder: Some(folder.to_path_buf()),
    };
    let flags =
        Flags { work_dir: Some(work_dir(folder)), config: Some(config_file), ..Flags::default() };
    let loaded = layer::load(&environment, &flags).expect("the test's configuration is valid");
    let place = WorkPlace::take(&loaded, Access::Full).expect("the folder is the test's own");
    let started = App::start(Startup {
        loaded,
        environment,
        place,
        redactions: Redactions::default(),
        guide_pace: Some(Duration::ZERO),
    });
    started.expect("the test's configuration can be used")
}

/// The work directory of the program in `folder`.
#[must_use]
pub fn work_dir(folder: &Path) -> PathBuf {
    folder.join("work")
}
