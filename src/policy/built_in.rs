//! The built-in layer of the rules (`design/tools.md`, the defaults of the tools): reading inside
//! the folder and asking a person are allowed, git's internals, this program's own folders and
//! well-known credential files are closed. What is not named here asks.

use std::path::PathBuf;

use crate::domain::permission::decide::Layer;
use crate::domain::permission::pattern::{PathGlob, Pattern, PatternError, WorkDir};
use crate::domain::permission::rule::{Head, Rule, Ruling};

/// The folders that the built-in rules speak of, absolute and with links followed: rules compare
/// them with resolved paths.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program's work directory.
    pub work_dir: PathBuf,
    /// The files and folders of the person's configuration of this program.
    pub configuration: Vec<PathBuf>,
    /// The person's home folder, if there is one.
    pub home: Option<PathBuf>,
}

/// The name of the layer, as it stands behind its rules.
pub const LAYER: &str = "built-in";

/// Tools that need no permission: they touch nothing.
const HARMLESS_TOOLS: [&str; 1] = ["ask_human"];

/// Files that may hold the secrets of a project: reading them asks although they lie inside.
const PROJECT_SECRETS: [&str; 2] = ["**/.env", "**/.env.*"];

/// Files in which widely used programs keep the credentials of the person.
const CREDENTIALS: [&str; 23] = [
    "~/.ssh",
    "~/.gnupg",
    "~/.aws/credentials",
    "~/.aws/sso/cache",
    "~/.azure",
    "~/.boto",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.config/gcloud",
    "~/.config/gh/hosts.yml",
    "~/.config/git/credentials",
    "~/.docker/config.json",
    "~/.git-credentials",
    "~/.kube/config",
    "~/.local/share/keyrings",
    "~/.my.cnf",
    "~/.netrc",
    "~/.npmrc",
    "~/.password-store",
    "~/.pgpass",
    "~/.pypirc",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.vault-token",
];

/// The layer for these folders.
///
/// # Errors
/// [`PatternError`] when one of the globs above is none.
pub fn layer(options: &Options) -> Result<Layer, PatternError> {
    let home = options.home.as_deref();
    let glob = |text: &str| PathGlob::new(text, home).map(Box::new).map(Pattern::Glob);
    let rule = |ruling, head, pattern| Rule { ruling, head, pattern: Some(pattern) };
    let work_dir = WorkDir(options.work_dir.clone());

    let mut rules = vec![
        rule(Ruling::Allow, Head::Read, glob("**")?),
        rule(Ruling::Allow, Head::Read, Pattern::OwnOutput(work_dir.clone())),
        rule(Ruling::Deny, Head::Read, Pattern::WorkDir(work_dir)),
        rule(Ruling::Deny, Head::Write, Pattern::Folder(options.work_dir.clone())),
        rule(Ruling::Deny, Head::Read, glob("/**/.git")?),
        rule(Ruling::Deny, Head::Write, glob("/**/.git")?),
    ];
    for place in &options.configuration {
        let place = Pattern::Folder(place.clone());
        rules.push(rule(Ruling::Deny, Head::Read, place.clone()));
        rules.push(rule(Ruling::Deny, Head::Write, place));
    }
    for tool_id in HARMLESS_TOOLS {
        let head = Head::Tool(tool_id.to_owned());
        rules.push(Rule { ruling: Ruling::Allow, head, pattern: None });
    }
    for text in PROJECT_SECRETS {
        rules.push(rule(Ruling::Ask, Head::Read, glob(text)?));
    }
    if home.is_some() {
        for text in CREDENTIALS {
            rules.push(rule(Ruling::Deny, Head::Read, glob(text)?));
        }
    }
    Ok(Layer { name: LAYER.to_owned(), rules })
}
