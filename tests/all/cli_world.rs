//! The built program as a person runs it, with a home of their own.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use turnstile::testing::folder::files;

/// A person who has just got a computer.
pub(crate) struct Cli {
    folder: tempfile::TempDir,
}

/// How a command ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Cli {
    pub(crate) fn new() -> Self {
        let cli = Self { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(cli.path("project")).expect("a folder");
        cli
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn work_dir(&self) -> PathBuf {
        self.path("data/turnstile")
    }

    /// How many logs of this kind (`sessions`, `turns`) there are.
    pub(crate) fn logs(&self, kind: &str) -> usize {
        files(&self.work_dir().join("storage").join(kind)).len()
    }

    /// How many files of deleted sessions there are.
    pub(crate) fn deleted(&self) -> usize {
        files(&self.work_dir().join("var/deleted")).len()
    }

    /// Writes the configuration, and gives its path.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let file = self.path("config/turnstile/config.toml");
        fs::create_dir_all(self.path("config/turnstile")).expect("a folder");
        fs::write(&file, text).expect("a file");
        file
    }

    /// The program with these arguments. The guide answers, and at once.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnstile"));
        let of = |name: &str| self.path(name);
        command
            .args(arguments)
            .current_dir(of("project"))
            .env_clear()
            .env("HOME", of("home"))
            .env("XDG_CONFIG_HOME", of("config"))
            .env("XDG_DATA_HOME", of("data"))
            .env("XDG_STATE_HOME", of("state"))
            .env("XDG_CACHE_HOME", of("cache"))
            .env("TURNSTILE_MODEL", "guide/guide")
            .env("TURNSTILE_GUIDE_PACE_MS", "0")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().expect("the program starts"))
    }

    /// Runs the program with this on its standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // It may refuse before it has read everything.
        stdin.write_all(input).ok();
        drop(stdin);
        Ran::of(&child.wait_with_output().expect("it ends"))
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("it was not killed");
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// It ended with this code and said all of this on standard error, in one paragraph that begins
    /// with the program's name; nothing else was said.
    pub(crate) fn check_refused(&self, code: i32, said: &[&str]) {
        let Self { code: found, out, err } = self;
        assert_eq!((*found, out.as_str()), (code, ""), "{err}");
        assert!(err.starts_with("turnstile: "), "{err}");
        for said in said {
            assert!(err.contains(said), "{said:?} is not said: {err}");
        }
    }

    /// The arguments were refused, and this one is named.
    pub(crate) fn check_usage(&self, argument: &str) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{}", self.err);
        assert!(self.err.contains(argument), "{argument:?} is not named: {}", self.err);
    }

    /// It did what was asked, and has nothing to complain of.
    pub(crate) fn check_done(&self) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
    }

    /// The lines of standard output, each a JSON document.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).expect("a line is JSON");
        self.out.lines().map(parse).collect()
    }
}

/// The path as a person reads it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
