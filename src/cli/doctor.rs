//! `turnstile doctor`: what was found, and what to do about what is missing.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use crate::app::{Access, App, WorkPlace};
use crate::base::sanitize;
use crate::cli::args::Common;
use crate::cli::report::{Exit, Problem, print};
use crate::cli::start::{Setting, threads};
use crate::config::environment::Environment;
use crate::config::layer::Loaded;
use crate::config::path::Located;
use crate::store::disk::RealDisk;
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

/// Looks around and says what was found.
pub(super) fn doctor(common: &Common) -> Result<Exit, Problem> {
    let setting = Setting::read(common)?;
    let mut text = String::new();
    heading(&mut text, &format!("turnstile {}", env!("CARGO_PKG_VERSION")));
    places(&mut text, &setting.loaded);
    terminal(&mut text, &setting.environment);
    let keys = set_keys(&setting.environment);
    let providers: Vec<_> =
        setting.loaded.config.providers.keys().map(|id| id.as_str().to_owned()).collect();
    heading(&mut text, "\nModels");
    flush(&mut text)?;
    threads()?.block_on(async {
        let place = WorkPlace::take(&setting.loaded, Access::ReadOnly);
        match place.and_then(|place| setting.start(place)) {
            Ok((app, _notices)) => models(&mut text, &app, &providers, &keys).await,
            Err(error) => {
                line(&mut text, "answers", &error.to_string());
                Ok(())
            }
        }
    })?;
    flush(&mut text)?;
    Ok(Exit::Done)
}

/// Prints what was found so far: what comes next may take its time.
fn flush(text: &mut String) -> Result<(), Problem> {
    print(&std::mem::take(text))
}

fn heading(text: &mut String, what: &str) {
    writeln!(text, "{what}").ok();
}

fn line(text: &mut String, what: &str, found: &str) {
    let (what, found) = (sanitize::for_line(what), sanitize::for_line(found));
    writeln!(text, "  {what:<14} {found}").ok();
}

fn places(text: &mut String, loaded: &Loaded) {
    heading(text, "\nPlaces");
    line(text, "work directory", &located(&loaded.paths.work_dir));
    line(text, "", &lock_state(loaded));
    let config = &loaded.paths.config_file;
    let there = if config.path.is_file() { "" } else { "; not there, the defaults hold" };
    line(text, "configuration", &format!("{}{there}", located(config)));
    for (key, origin) in &loaded.origins {
        line(text, "", &format!("{key} from {origin}"));
    }
    line(text, "logs", &loaded.paths.logs().display().to_string());
}

fn located(found: &Located) -> String {
    format!("{} ({})", found.path.display(), found.origin)
}

fn lock_state(loaded: &Loaded) -> String {
    let dir = match WorkDir::new(loaded.paths.work_dir.path.clone()) {
        Ok(dir) => dir,
        Err(error) => return error.to_string(),
    };
    if !dir.root().is_dir() {
        return "not there yet; it is made at the first start".to_owned();
    }
    match lock::holder(&RealDisk, &dir) {
        Ok(None) => "nobody holds it".to_owned(),
        Ok(Some(holder)) => format!("in use by {holder}"),
        Err(error) => error.to_string(),
    }
}

fn terminal(text: &mut String, environment: &Environment) {
    heading(text, "\nTerminal");
    let yes = |it: bool| if it { "a terminal" } else { "no terminal" };
    line(text, "input", yes(std::io::stdin().is_terminal()));
    line(text, "output", yes(std::io::stdout().is_terminal()));
    for name in ["TERM", "COLORTERM", "TERM_PROGRAM", "NO_COLOR", "TMUX", "SSH_TTY"] {
        if let Some(value) = environment.variable(name) {
            line(text, name, &value.to_string_lossy());
        }
    }
}

fn set_keys(environment: &Environment) -> Vec<&'static str> {
    KEY_VARIABLES.into_iter().filter(|name| environment.variable(name).is_some()).collect()
}

async fn models(
    text: &mut String,
    app: &App,
    providers: &[String],
    keys: &[&str],
) -> Result<(), Problem> {
    let graph = app.graph();
    let local = graph.models.local_servers(crate::models::registry::LOCAL_WAIT).await;
    app.choose_model().await;
    let answers = match app.require_answerer() {
        Ok(()) => {
            let chosen = graph.default_model.get();
            format!("{} ({})", chosen.model, chosen.why)
        }
        Err(error) => error.to_string(),
    };
    line(text, "answers", &answers);
    flush(text)?;
    for provider in providers {
        let said = match graph.models.ask_for_models(provider, SERVER_WAIT).await {
            Ok(models) => format!("{} models: {}", models.len(), few(&models)),
            Err(error) => error.to_string(),
        };
        line(text, provider, &said);
        flush(text)?;
    }
    for server in local.iter().filter(|server| !providers.contains(&server.provider)) {
        let models = few(&server.models);
        line(text, &server.provider, &format!("found on this machine: {models}"));
    }
    if local.is_empty() {
        line(
            text,
            "this machine",
            "no server answers at the usual places of Ollama, llama.cpp, LM Studio and vLLM",
        );
    }
    for key in keys {
        line(
            text,
            key,
            "is set; name its service in [providers.<name>] with key = { env = \"…\" }",
        );
    }
    if providers.is_empty() && local.is_empty() {
        line(
            text,
            "",
            "connect a model with a [providers.<name>] table; config.example.toml shows how",
        );
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
