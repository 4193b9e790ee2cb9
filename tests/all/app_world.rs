//! The program without a screen, for tests: a person with folders of their own, and what the program
//! tells them.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use turnstile::app::command::{Command, Draft, DraftOf, Send, SendSettings};
use turnstile::app::log::Redactions;
use turnstile::app::notice::{Notice, Refused};
use turnstile::app::{Access, App, StartError, Startup, WorkPlace};
use turnstile::base::id::{SessionId, TurnId};
use turnstile::config::environment::{Environment, Flags, Platform};
use turnstile::config::layer::{self, Loaded};
use turnstile::domain::message::UserMessage;
use turnstile::domain::turn::live::News;
use turnstile::testing::folder;
use turnstile::testing::model_server::ModelServer;

/// The guide answers, and no server on this machine is asked.
pub(crate) const GUIDE: &str = "[models]\ndefault = \"guide/guide\"\n";

/// A person, and all that is theirs.
pub(crate) struct Person {
    folder: tempfile::TempDir,
}

/// The program while it runs.
pub(crate) struct Running {
    pub(crate) app: App,
    notices: mpsc::Receiver<Notice>,
}

impl Person {
    /// Somebody with this configuration.
    pub(crate) fn new(config: &str) -> Self {
        let person = Self { folder: tempfile::tempdir().expect("a folder") };
        person.configure(config);
        person
    }

    /// Somebody whose model is on this server.
    pub(crate) fn with_model(server: &ModelServer) -> Self {
        Self::new(&with_model(server))
    }

    /// Changes the configuration. The disk is never waited for: no test loses its power.
    pub(crate) fn configure(&self, config: &str) {
        self.configure_storage(config, "");
    }

    /// As [`configure`](Self::configure), with more of how sessions are kept.
    pub(crate) fn configure_storage(&self, config: &str, storage: &str) {
        let config = format!("{config}[storage]\nsync = \"never\"\n{storage}\n");
        fs::create_dir_all(self.path("config/turnstile")).expect("a folder");
        fs::write(self.path("config/turnstile/config.toml"), config).expect("a file");
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Where sessions and drafts are.
    pub(crate) fn work_dir(&self) -> PathBuf {
        self.path("data/turnstile")
    }

    fn environment(&self) -> Environment {
        let platform = Platform {
            home: self.path(""),
            config: self.path("config"),
            data: self.path("data"),
            cache: self.path("cache"),
        };
        let (platform, folder) = (Some(platform), Some(self.path("")));
        Environment { platform, folder, variables: BTreeMap::default() }
    }

    fn loaded(&self) -> Loaded {
        layer::load(&self.environment(), &Flags::default()).expect("a configuration")
    }

    /// Takes the work directory.
    pub(crate) fn take(&self, access: Access) -> Result<WorkPlace, StartError> {
        WorkPlace::take(&self.loaded(), access)
    }

    /// Builds the program, which does nothing by itself yet.
    pub(crate) fn assemble(&self, access: Access) -> Running {
        let startup = Startup {
            loaded: self.loaded(),
            environment: self.environment(),
            place: self.take(access).expect("the folder is free"),
            redactions: Redactions::default(),
            guide_pace: Some(Duration::ZERO),
        };
        let (app, notices) = App::start(startup).expect("the program starts");
        Running { app, notices }
    }

    /// Starts the program.
    pub(crate) fn start(&self) -> Running {
        let running = self.assemble(Access::Full);
        running.app.begin();
        running
    }

    /// Everything in the work directory, files with their bytes, but for who holds it.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = folder::tree(&self.work_dir());
        found.remove(&self.work_dir().join("turnstile.lock"));
        found
    }

    /// The files of drafts.
    pub(crate) fn draft_files(&self) -> usize {
        let names = fs::read_dir(self.work_dir().join("var/composer")).expect("there");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("draft-")).count()
    }
}

/// The configuration of somebody whose model is on this server.
pub(crate) fn with_model(server: &ModelServer) -> String {
    format!(
        "[models]\ndefault = \"lab/tiny\"\n[providers.lab]\nkind = \"openai-compatible\"\n\
         base_url = \"{}\"\n",
        server.base_url()
    )
}

/// One process: it is killed when `work` is over.
pub(crate) fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

impl Running {
    pub(crate) fn perform(&self, command: Command) {
        self.app.perform(command);
    }

    /// The next thing that is told.
    pub(crate) async fn next(&mut self) -> Notice {
        self.notices.recv().await.expect("the program runs")
    }

    /// Waits for something that is told; what comes before it is left out.
    pub(crate) async fn until<T>(&mut self, mut pick: impl FnMut(&Notice) -> Option<T>) -> T {
        loop {
            let notice = self.next().await;
            if let Some(picked) = pick(&notice) {
                return picked;
            }
        }
    }

    /// What has been told by now.
    pub(crate) fn told(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }

    /// Sends a message, and waits until it is sent.
    pub(crate) async fn send(&mut self, from: DraftOf, text: &str) -> (SessionId, TurnId) {
        self.perform(send(from.clone(), text));
        self.until(|notice| match notice {
            Notice::Sent { from: sent, session, turn } if *sent == from => {
                Some((session.clone(), turn.clone()))
            }
            _ => None,
        })
        .await
    }

    /// Sends a message, and waits until its turn rests.
    pub(crate) async fn run(&mut self, from: DraftOf, text: &str) -> (SessionId, TurnId) {
        let (session, turn) = self.send(from, text).await;
        self.rested(&turn).await;
        (session, turn)
    }

    /// Waits until no advance of the turn is live.
    pub(crate) async fn rested(&self, turn: &TurnId) {
        while self.app.graph().sessions.is_running(turn) {
            tokio::task::yield_now().await;
        }
    }

    /// What is told until the turn rests.
    pub(crate) async fn until_rested(&mut self, turn: &TurnId) -> Vec<Notice> {
        let mut told = Vec::new();
        loop {
            let notice = self.next().await;
            let rests = matches!(&notice, Notice::Live(event)
                if event.turn == *turn && event.news == News::Rested);
            told.push(notice);
            if rests {
                return told;
            }
        }
    }

    /// Waits until something is refused.
    pub(crate) async fn refused(&mut self) -> (Refused, String) {
        self.until(|notice| match notice {
            Notice::Refused { what, why } => Some((what.clone(), why.clone())),
            _ => None,
        })
        .await
    }

    /// Waits until the list is complete.
    pub(crate) async fn listed(&mut self) {
        self.until(|notice| matches!(notice, Notice::ScanEnded { .. }).then_some(())).await;
    }

    /// The draft that is kept.
    pub(crate) async fn draft(&mut self, of: DraftOf) -> Draft {
        self.perform(Command::LoadDraft(of.clone()));
        self.until(|notice| match notice {
            Notice::Draft { of: whose, draft } if *whose == of => Some(draft.clone()),
            _ => None,
        })
        .await
    }

    /// Ends the program as it should end.
    pub(crate) async fn leave(self) {
        self.app.shut_down().await.expect("all is safe");
    }
}

/// The command that sends a message.
pub(crate) fn send(from: DraftOf, text: &str) -> Command {
    let (message, settings) = (Arc::new(UserMessage::text(text)), SendSettings::default());
    Command::Send(Send { from, message, settings })
}

/// A draft of one text.
pub(crate) fn draft(text: &str) -> Draft {
    Draft { text: text.to_owned(), caret: text.len(), pastes: Vec::new() }
}

/// Whether there is a file with this name below a folder.
pub(crate) fn has_file(folder: &Path, name: &str) -> bool {
    folder.join(name).is_file()
}
