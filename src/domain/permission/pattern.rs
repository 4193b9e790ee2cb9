//! Which paths a rule is about: gitignore-style globs, and the places of this program that no glob
//! can name (`design/tools.md`, rules).

use std::collections::HashSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::base::id::TurnId;
use crate::domain::permission::plan::LocatedPath;

/// A text that is no pattern for paths.
#[derive(Debug, thiserror::Error)]
#[error("not a path pattern: {text:?}")]
pub struct PatternError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    #[source]
    pub source: globset::Error,
}

/// How far a pattern reaches. Whoever allows means no more than what is named; whoever asks or
/// denies means all of it, however it is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// The very path that a link leads to, letter for letter.
    Exact,
    /// Also what lies below, other cases of the letters (some file systems fold them), and the
    /// path as it was written, before links were followed.
    Wide,
}

/// What matching needs to know besides pattern and path.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The session's folder, absolute, links followed.
    pub folder: &'a str,
    /// The turns of this session, whose long output may be read again.
    pub own_turns: &'a HashSet<TurnId>,
}

/// The paths that a rule is about.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// What a glob matches.
    Glob(Box<PathGlob>),
    /// A folder, absolute and with links followed, and all that lies in it.
    Folder(PathBuf),
    /// This program's work directory, but not the output of the session's own turns.
    WorkDir(WorkDir),
    /// The output of the session's own turns, in the work directory.
    OwnOutput(WorkDir),
}

impl Pattern {
    /// Whether `path` is one of the paths.
    #[must_use]
    pub fn matches(&self, path: &LocatedPath, place: Place<'_>, breadth: Breadth) -> bool {
        let resolved = Path::new(&path.resolved);
        match self {
            Self::Glob(glob) => glob.matches(path, place.folder, breadth),
            Self::Folder(folder) => below(resolved, folder, breadth).is_some(),
            Self::WorkDir(dir) => {
                below(resolved, &dir.0, breadth).is_some()
                    && !dir.is_own_output(resolved, place.own_turns)
            }
            Self::OwnOutput(dir) => dir.is_own_output(resolved, place.own_turns),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glob(glob) => f.write_str(&glob.text),
            Self::Folder(folder) | Self::WorkDir(WorkDir(folder)) => {
                write!(f, "{}", folder.display())
            }
            Self::OwnOutput(dir) => write!(f, "{}/<own turn>", dir.outputs().display()),
        }
    }
}

/// A glob over paths: anchored at the session's folder, at the root if it begins with `/`, at the
/// home folder if it begins with `~/`. `*`, `?` and `[…]` stay within a name, `**` crosses names.
#[derive(Clone, Debug)]
pub struct PathGlob {
    text: String,
    anchor: Anchor,
    exact: GlobMatcher,
    any_case: GlobMatcher,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Anchor {
    Session,
    Root,
    Home(PathBuf),
}

impl PathGlob {
    /// The glob of a rule's text. Without a `home`, a `~` is a name like any other.
    ///
    /// # Errors
    /// [`PatternError`] when it is no glob.
    pub fn new(text: &str, home: Option<&Path>) -> Result<Self, PatternError> {
        let (anchor, pattern) = match text.strip_prefix("~/").zip(home) {
            Some((rest, home)) => (Anchor::Home(home.to_owned()), rest),
            None if text.starts_with('/') => (Anchor::Root, text),
            None => (Anchor::Session, text),
        };
        let matcher = |any_case| {
            GlobBuilder::new(pattern.trim_end_matches('/'))
                .literal_separator(true)
                .backslash_escape(true)
                .case_insensitive(any_case)
                .build()
                .map(|glob| glob.compile_matcher())
                .map_err(|source| PatternError { text: text.to_owned(), source })
        };
        let (exact, any_case) = (matcher(false)?, matcher(true)?);
        Ok(Self { text: text.to_owned(), anchor, exact, any_case })
    }

    fn matches(&self, path: &LocatedPath, folder: &str, breadth: Breadth) -> bool {
        let resolved = Path::new(&path.resolved);
        let relative = |path| match &self.anchor {
            Anchor::Session => below(path, Path::new(folder), breadth),
            Anchor::Root => Some(path),
            Anchor::Home(home) => below(path, home, breadth),
        };
        match breadth {
            Breadth::Exact => relative(resolved).is_some_and(|path| self.exact.is_match(path)),
            Breadth::Wide => {
                let written = as_written(&path.path, folder);
                let covers = |path: &Path| path.ancestors().any(|it| self.any_case.is_match(it));
                [resolved, &written].into_iter().filter_map(relative).any(covers)
            }
        }
    }
}

/// The path from `folder` on, if it lies there.
fn below<'a>(path: &'a Path, folder: &Path, breadth: Breadth) -> Option<&'a Path> {
    let mut rest = path.components();
    for name in folder.components() {
        let (name, found) = (name.as_os_str(), rest.next()?.as_os_str());
        let same = match breadth {
            Breadth::Exact => name == found,
            Breadth::Wide => name.eq_ignore_ascii_case(found),
        };
        if !same {
            return None;
        }
    }
    Some(rest.as_path())
}

/// The path that a person would say the text names: from the folder, `.` and `..` taken out, links
/// not followed.
fn as_written(text: &str, folder: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in Path::new(folder).join(text).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => path.push(part),
        }
    }
    path
}

/// The work directory of this program, absolute, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkDir(pub PathBuf);

impl WorkDir {
    fn outputs(&self) -> PathBuf {
        self.0.join("var/output")
    }

    fn is_own_output(&self, path: &Path, own_turns: &HashSet<TurnId>) -> bool {
        let Some(inner) = below(path, &self.outputs(), Breadth::Exact) else {
            return false;
        };
        let turn = inner.components().next().and_then(|name| name.as_os_str().to_str());
        turn.is_some_and(|turn| own_turns.contains(turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "/home/ada/project";

    fn located(path: &str, resolved: &str) -> LocatedPath {
        LocatedPath { path: path.to_owned(), resolved: resolved.to_owned(), inside: false }
    }

    fn glob_pattern(glob: &str) -> Pattern {
        let glob = PathGlob::new(glob, Some(Path::new("/home/ada"))).unwrap();
        Pattern::Glob(Box::new(glob))
    }

    /// Which of the `paths` match, each written and resolved alike.
    fn check_glob(glob: &str, breadth: Breadth, matching: &[&str], others: &[&str]) {
        let pattern = glob_pattern(glob);
        let (own_turns, folder) = (HashSet::new(), FOLDER);
        for (paths, expected) in [(matching, true), (others, false)] {
            for path in paths {
                let place = Place { folder, own_turns: &own_turns };
                let matches = pattern.matches(&located(path, path), place, breadth);
                assert_eq!(matches, expected, "{glob} on {path}, {breadth:?}");
            }
        }
    }

    #[test]
    fn a_glob_is_anchored_at_the_folder_the_root_or_the_home() {
        check_glob(
            "src/**",
            Breadth::Exact,
            &["/home/ada/project/src/a.rs", "/home/ada/project/src/a/b.rs"],
            &["/home/ada/project/src", "/home/ada/project/a/src/b", "/src/a", "/home/ada/src/a"],
        );
        check_glob("**", Breadth::Exact, &[FOLDER, "/home/ada/project/a/b"], &["/home/ada", "/"]);
        check_glob("/etc/*", Breadth::Exact, &["/etc/passwd"], &["/etc/ssh/key", "/etc", FOLDER]);
        check_glob("~/.netrc", Breadth::Exact, &["/home/ada/.netrc"], &["/home/eve/.netrc"]);
    }

    #[test]
    fn what_asks_or_denies_reaches_below_and_past_the_case_of_letters() {
        let below = ["/home/ada/project/.git", "/home/ada/project/.GIT/config", "/x/.git/a/b"];
        check_glob("/**/.git", Breadth::Wide, &below, &["/home/ada/project/.gitignore", "/x/git"]);
        check_glob("/**/.git", Breadth::Exact, &["/x/.git"], &["/x/.git/config", "/x/.GIT"]);
        check_glob("secrets/", Breadth::Wide, &["/home/ada/project/secrets/a"], &["/secrets/a"]);
    }

    #[test]
    fn a_denied_name_is_denied_although_it_links_elsewhere() {
        let (own_turns, folder) = (HashSet::new(), FOLDER);
        let place = Place { folder, own_turns: &own_turns };
        let pattern = glob_pattern("**/.env");
        let link = located("a/../.env", "/home/ada/project/config/production");
        assert!(pattern.matches(&link, place, Breadth::Wide));
        assert!(!pattern.matches(&link, place, Breadth::Exact));
    }

    #[test]
    fn special_characters_of_the_home_stand_for_themselves() {
        let glob = PathGlob::new("~/x", Some(Path::new("/home/[a]*"))).unwrap();
        assert!(glob.matches(&located("", "/home/[a]*/x"), FOLDER, Breadth::Exact));
        assert!(!glob.matches(&located("", "/home/ab/x"), FOLDER, Breadth::Exact));
        assert!(PathGlob::new("a[", None).is_err());
    }

    #[test]
    fn a_folder_is_closed_whatever_the_case_of_its_letters() {
        let (own_turns, folder) = (HashSet::new(), FOLDER);
        let place = Place { folder, own_turns: &own_turns };
        let pattern = Pattern::Folder(PathBuf::from("/home/ada/.config/turnstile"));
        let check = |path: &str, expected| {
            let path = located(path, path);
            assert_eq!(pattern.matches(&path, place, Breadth::Wide), expected, "{path:?}");
        };
        check("/home/ada/.config/turnstile", true);
        check("/home/ada/.Config/turnstile/config.toml", true);
        check("/home/ada/.config/turnstile-other", false);
    }

    #[test]
    fn of_the_work_directory_only_the_output_of_own_turns_is_open() {
        let own_turns = HashSet::from([TurnId::from("t1")]);
        let place = Place { folder: FOLDER, own_turns: &own_turns };
        let dir = WorkDir(PathBuf::from("/data/turnstile"));
        let (closed, open) = (Pattern::WorkDir(dir.clone()), Pattern::OwnOutput(dir));
        let check = |path: &str, expected: (bool, bool)| {
            let path = located(path, path);
            let of = |pattern: &Pattern| pattern.matches(&path, place, Breadth::Wide);
            assert_eq!((of(&closed), of(&open)), expected, "{path:?}");
        };
        check("/data/turnstile/var/output/t1/call.txt", (false, true));
        check("/data/turnstile/var/output/t1", (false, true));
        check("/data/turnstile/var/output/t2/call.txt", (true, false));
        check("/data/turnstile/var/output", (true, false));
        check("/data/turnstile/storage/turns/t1", (true, false));
        check("/data/turnstile", (true, false));
        check("/data", (false, false));
    }
}
