//! `turnstile doctor`: what was found, and what to do about what is missing.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use crate::app::{Access, App, StartError, WorkPlace};
use crate::base::sanitize;
use crate::cli::args::Common;
use crate::cli::chat;
use crate::cli::report::{Exit, Problem, print};
use crate::cli::start::{Setting, threads};
use crate::config::environment::Environment;
use crate::config::layer::Loaded;
use crate::config::path::Located;
use crate::store::conversion::{Conversion, Stage};
use crate::store::disk::{Disk as _, RealDisk};
use crate::store::file_system::FileSystem;
use crate::store::format::FormatError;
use crate::store::lock;
use crate::store::work_dir::WorkDir;

/// How long a configured server may take to name its models.
const SERVER_WAIT: Duration = Duration::from_secs(3);

/// Variables in which hosted services' keys usually stand.
const KEY_VARIABLES: [&str; 6] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
];

/// With less a turn of a few tools does not fit.
const ROOM_MIN_BYTES: u64 = 256 * 1024;

/// How many of one kind of trouble are named; the rest are counted.
const NAMED_MAX: usize = 8;

/// Whether the program starts with the configuration.
#[derive(Clone, Copy)]
enum Configuration {
    Usable,
    Unusable,
}

/// What was found so far and has not been printed.
struct Findings {
    text: String,
    exit: Exit,
}

impl Findings {
    fn heading(&mut self, what: &str) {
        writeln!(self.text, "{what}").ok();
    }

    fn line(&mut self, what: &str, found: &str) {
        let (what, found) = (sanitize::for_line(what), sanitize::for_line(found));
        writeln!(self.text, "  {what:<14} {found}").ok();
    }

    /// Something that is wrong, line by line.
    fn wrong(&mut self, what: &str, why: &str) {
        self.exit = Exit::Failed;
        for (at, why) in why.lines().enumerate() {
            let what = if at == 0 { what } else { "" };
            let (what, why) = (sanitize::for_line(what), sanitize::for_line(why));
            writeln!(self.text, "! {what:<14} {why}").ok();
        }
    }

    /// As [`line`](Self::line) or [`wrong`](Self::wrong), by whether it is.
    fn say<E: std::error::Error>(&mut self, what: &str, found: Result<String, E>) {
        match found {
            Ok(found) => self.line(what, &found),
            Err(error) => self.wrong(what, &error.to_string()),
        }
    }

    /// Prints what was found so far: what comes next may take its time.
    fn flush(&mut self) -> Result<(), Problem> {
        print(&std::mem::take(&mut self.text))
    }
}

/// Looks around and says what was found. What is wrong ends nothing: the rest is looked at too.
pub(super) fn doctor(common: &Common) -> Result<Exit, Problem> {
    let (mut setting, broken) = match Setting::read(common) {
        Ok(setting) => (setting, None),
        Err(problem) => (Setting::places(common)?, Some(problem)),
    };
    let mut findings = Findings { text: String::new(), exit: Exit::Done };
    findings.heading(&format!("turnstile {}", env!("CARGO_PKG_VERSION")));
    let configuration =
        if broken.is_some() { Configuration::Unusable } else { Configuration::Usable };
    let has_folder = places(&mut findings, &setting.loaded, configuration);
    match broken.or_else(|| chat::keymap(&setting.loaded.config).err()) {
        Some(problem) => findings.wrong("cannot be used", problem.text()),
        None => configured(&mut findings, &setting.loaded),
    }
    if let Err(error @ StartError::Format(FormatError::Other { .. })) =
        WorkPlace::adopt_format(&mut setting.loaded)
    {
        match configuration {
            Configuration::Usable => findings.wrong("storage", &error.to_string()),
            // What it would say cannot be read.
            Configuration::Unusable => {}
        }
    }
    conversion(&mut findings, &setting.loaded);
    findings.line("logs", &setting.loaded.paths.logs().display().to_string());
    terminal(&mut findings, &setting.environment);
    let keys = set_keys(&setting.environment);
    let providers: Vec<_> =
        setting.loaded.config.providers.keys().map(|id| id.as_str().to_owned()).collect();
    findings.flush()?;
    threads()?.block_on(async {
        let place = WorkPlace::take(&setting.loaded, Access::ReadOnly);
        match place.and_then(|place| setting.start(place)) {
            Ok((app, _notices)) => {
                if has_folder {
                    storage(&mut findings, &app).await;
                    findings.flush()?;
                }
                findings.heading("\nModels");
                answerer(&mut findings, &app, configuration).await?;
                models(&mut findings, &app, &providers, configuration).await?;
                for key in keys {
                    findings.line(
                        key,
                        "is set; name its service in [providers.<name>] with key = { env = \"…\" }",
                    );
                }
                Ok(())
            }
            Err(error) => {
                findings.wrong("start", &error.to_string());
                Ok(())
            }
        }
    })?;
    findings.flush()?;
    Ok(findings.exit)
}

/// Says where everything is; whether the work directory is a folder.
fn places(findings: &mut Findings, loaded: &Loaded, configuration: Configuration) -> bool {
    findings.heading("\nPlaces");
    findings.line("work directory", &located(&loaded.paths.work_dir));
    let has_folder = work_dir(findings, loaded);
    let config = &loaded.paths.config_file;
    let there = match (config.path.exists(), configuration) {
        (true, _) => "",
        (false, Configuration::Usable) => "; not there, the defaults hold",
        // What cannot be used is told next, and no default helps then.
        (false, Configuration::Unusable) => "; not there",
    };
    findings.line("configuration", &format!("{}{there}", located(config)));
    has_folder
}

fn configured(findings: &mut Findings, loaded: &Loaded) {
    for (key, origin) in &loaded.origins {
        findings.line("", &format!("{key} from {origin}"));
    }
}

fn work_dir(findings: &mut Findings, loaded: &Loaded) -> bool {
    let dir = match WorkDir::new(loaded.paths.work_dir.path.clone()) {
        Ok(dir) => dir,
        Err(error) => {
            findings.wrong("", &error.to_string());
            return false;
        }
    };
    if !dir.root().is_dir() {
        if dir.root().symlink_metadata().is_ok() {
            let why = "there is no folder but something else; move it away, or choose another \
                       with --work-dir or TURNSTILE_HOME";
            findings.wrong("", why);
        } else {
            findings.line("", "not there yet; it is made at the first start");
        }
        return false;
    }
    let held = lock::holder(&RealDisk, &dir).map(|holder| {
        holder.map_or_else(|| "nobody holds it".to_owned(), |it| format!("in use by {it}"))
    });
    findings.say("", held);
    match FileSystem::room(dir.root()) {
        Ok(room) if room < ROOM_MIN_BYTES => {
            let text = format!("the disk is full: {room} bytes are left; make room");
            findings.wrong("", &text);
        }
        Ok(_) => {}
        Err(error) => {
            let text = format!(
                "it cannot be written: {error}; make it writable, choose another with --work-dir or \
                 TURNSTILE_HOME, or look with --read-only"
            );
            findings.wrong("", &text);
        }
    }
    if let Ok(found @ FileSystem::Network(_)) = RealDisk.file_system(dir.root()) {
        let text = format!(
            "it is on a file system {found}: use it from one machine at a time, and not with \
             storage.format = \"sqlite\""
        );
        findings.line("", &text);
    }
    true
}

/// Says that everything is being brought into another form, or was.
fn conversion(findings: &mut Findings, loaded: &Loaded) {
    let Ok(dir) = WorkDir::new(loaded.paths.work_dir.path.clone()) else { return };
    let note = match Conversion::read(&RealDisk, &dir) {
        Ok(Some(note)) => note,
        Ok(None) => return,
        Err(error) => return findings.wrong("conversion", &error.to_string()),
    };
    let Some(kept) = note.kept(WorkPlace::format(loaded)) else {
        let Conversion { from, to, .. } = note;
        let text = format!(
            "from {from} to {to} is not finished; `turnstile storage convert --to {to}` goes on, \
             `--to {from}` drops it"
        );
        return findings.line("conversion", &text);
    };
    if note.stage == Stage::Going {
        let text = format!(
            "a part of the other form ({kept}) has been let go; `turnstile storage convert --confirm` lets \
             the rest go"
        );
        return findings.line("conversion", &text);
    }
    let left = match note.left_in(kept).len() {
        0 => String::new(),
        left => format!(", among it {left} damaged ones that are nowhere else"),
    };
    let text = format!(
        "the other form ({kept}) is kept{left}; `turnstile storage convert --confirm` lets it go, \
         `--undo` uses it again"
    );
    findings.line("conversion", &text);
}

async fn storage(findings: &mut Findings, app: &App) {
    findings.heading("\nSessions");
    let health = match app.health().await {
        Ok(health) => health,
        Err(error) => return findings.wrong("", &error.to_string()),
    };
    findings.line("sessions", &health.sessions.to_string());
    // Only a look at every turn could say more, and takes as long as that takes.
    findings.line("", "`turnstile storage verify` reads all of them, and every turn");
    let damaged = health
        .damaged
        .iter()
        .filter_map(|entry| Some(format!("{}: {}", entry.session_id, entry.error.as_deref()?)));
    let damaged: Vec<_> = damaged.collect();
    list_wrong(findings, "damaged", &damaged);
    if !damaged.is_empty() {
        let text = "`turnstile storage salvage` writes what can still be read into new files, and changes \
                    nothing";
        findings.wrong("", text);
    }
    let misplaced = health.misplaced_turns.iter().map(ToString::to_string);
    list_wrong(findings, "misplaced", &misplaced.collect::<Vec<_>>());
    if let Some(last) = health.set_aside.last() {
        let count = health.set_aside.len();
        let text = format!(
            "{count} torn by a crash and set aside, at last {}; what is not missed can be deleted",
            last.display()
        );
        findings.line("line ends", &text);
    }
}

fn list_wrong(findings: &mut Findings, what: &str, all: &[String]) {
    if all.is_empty() {
        return;
    }
    findings.wrong(what, &all.len().to_string());
    for one in all.iter().take(NAMED_MAX) {
        findings.wrong("", one);
    }
    if let Some(more @ 1..) = all.len().checked_sub(NAMED_MAX) {
        findings.wrong("", &format!("and {more} more"));
    }
}

fn located(found: &Located) -> String {
    format!("{} ({})", found.path.display(), found.origin)
}

fn terminal(findings: &mut Findings, environment: &Environment) {
    findings.heading("\nTerminal");
    let yes = |it: bool| if it { "a terminal" } else { "no terminal" };
    findings.line("input", yes(std::io::stdin().is_terminal()));
    findings.line("output", yes(std::io::stdout().is_terminal()));
    for name in ["TERM", "COLORTERM", "TERM_PROGRAM", "NO_COLOR", "TMUX", "SSH_TTY"] {
        if let Some(value) = environment.variable(name) {
            findings.line(name, &value.to_string_lossy());
        }
    }
}

fn set_keys(environment: &Environment) -> Vec<&'static str> {
    KEY_VARIABLES.into_iter().filter(|name| environment.variable(name).is_some()).collect()
}

/// Which model answers when nothing else is said.
async fn answerer(
    findings: &mut Findings,
    app: &App,
    configuration: Configuration,
) -> Result<(), Problem> {
    match configuration {
        Configuration::Unusable => {
            findings.line("answers", "nothing, until the configuration is put right");
        }
        Configuration::Usable => {
            app.choose_model().await;
            let answers = app.require_answerer().map(|()| {
                let chosen = app.graph().default_model.get();
                format!("{} ({})", chosen.model, chosen.why)
            });
            findings.say("answers", answers);
        }
    }
    findings.flush()
}

/// Says which models there are. A configured provider that cannot be asked is something wrong; that no
/// server runs on this machine is not.
async fn models(
    findings: &mut Findings,
    app: &App,
    providers: &[String],
    configuration: Configuration,
) -> Result<(), Problem> {
    let graph = app.graph();
    let local = graph.models.local_servers(crate::models::registry::LOCAL_WAIT).await;
    for provider in providers {
        match graph.models.ask_for_models(provider, SERVER_WAIT).await {
            Ok(models) => {
                findings.line(provider, &format!("{} models: {}", models.len(), few(&models)));
            }
            Err(error) => {
                let said = error.to_string();
                // The row names it already.
                let row = format!("{provider}: ");
                findings.wrong(provider, said.strip_prefix(&row).unwrap_or(&said));
            }
        }
        findings.flush()?;
    }
    for server in local.iter().filter(|server| !providers.contains(&server.provider)) {
        let models = few(&server.models);
        findings.line(&server.provider, &format!("found on this machine: {models}"));
    }
    if local.is_empty() {
        findings.line(
            "this machine",
            "no server answers at the usual places of Ollama, llama.cpp, LM Studio and vLLM",
        );
    }
    match configuration {
        Configuration::Usable if providers.is_empty() && local.is_empty() => findings.line(
            "",
            "connect a model with a [providers.<name>] table; config.example.toml shows how",
        ),
        // What cannot be read may well connect one.
        Configuration::Usable | Configuration::Unusable => {}
    }
    Ok(())
}

/// The first few names of a list, with the number of the others.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<_> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
