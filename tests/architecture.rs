//! Keeps the floors and the sizes that the crate documentation promises, by reading the source.
#![expect(clippy::expect_used, clippy::panic, reason = "tests stop where they fail")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// Top-level modules by floor, lowest first. A module may use lower floors only; modules of one
/// floor are strangers.
const FLOORS: &[&[&str]] = &[
    &["base"],
    &["domain"],
    &["store", "models", "tools", "policy", "config"],
    &["runtime"],
    &["sessions"],
    &["agents"],
    &["mailbox"],
    &["app"],
    &["tui"],
    &["cli"],
];
/// Above all floors and used by none; tests only.
const TESTING: &str = "testing";

const FILE_LINES_MAX: usize = 400;
const ENUM_VARIANTS_MAX: usize = 25;
const ROOT_STATE_FIELDS_MAX: usize = 12;

/// Where files may be touched.
const FILE_ACCESS: &[&str] = &[
    "store",
    "tools",
    "config",
    "policy/sandbox",
    "models",
    "agents",
    "mailbox",
    "app/log",
    "cli",
    "tui/shell",
    TESTING,
];

/// What is allowed against the rules, and why: `(rule, file, reason)`. The list only shrinks; an
/// exception that nothing needs any more is an error too.
const EXCEPTIONS: &[(Rule, &str, &str)] = &[(
    Rule::FileSize,
    "src/domain/turn/event.rs",
    "one uniform table: the fields of every turn event",
)];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Floor,
    Purity,
    Purpose,
    FileSize,
    EnumSize,
    RootState,
    Select,
    FileAccess,
}

#[test]
fn the_house_stands_as_its_plan_says() {
    let mut findings = BTreeSet::new();
    for file in sources() {
        findings.extend(file.findings());
    }
    let excepted = |rule: Rule, path: &str| {
        EXCEPTIONS.iter().any(|(excepted, file, _)| (*excepted, *file) == (rule, path))
    };
    let mut report = String::new();
    for (rule, path, what) in &findings {
        if !excepted(*rule, path) {
            writeln!(report, "{rule:?}: {path}: {what}").expect("a string can be written to");
        }
    }
    for (rule, path, reason) in EXCEPTIONS {
        assert!(!reason.is_empty(), "an exception needs a reason: {path}");
        if !findings.iter().any(|(found, file, _)| (found, file.as_str()) == (rule, *path)) {
            writeln!(report, "{rule:?}: {path}: an exception that nothing needs any more")
                .expect("a string can be written to");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_top_level_module_has_a_floor() {
    for file in sources().iter().filter(|file| file.is_production()) {
        let module = file.top_level_module();
        assert!(
            module == TESTING || floor_of(&module).is_some(),
            "{} belongs to no floor",
            file.path
        );
    }
}

type Finding = (Rule, String, String);

/// A file of the source, as tokens without comments and without its test module.
struct Source {
    path: String,
    text: String,
    tokens: Vec<TokenTree>,
    test_lines: usize,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    files.iter().map(|file| Source::read(root, file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("the source can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

impl Source {
    fn read(root: &Path, file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the source can be read");
        let path = file.strip_prefix(root).expect("below the root").display().to_string();
        let (production, test_lines) = without_test_modules(&text);
        let stream: TokenStream = production.parse().unwrap_or_else(|why| panic!("{path}: {why}"));
        let tokens = stream.into_iter().collect();
        Self { path, text, tokens, test_lines }
    }

    /// Tests that are too many to stand below what they test have files of their own.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    fn is_production(&self) -> bool {
        let root = ["src/lib.rs", "src/main.rs"].contains(&self.path.as_str());
        self.path.starts_with("src/") && !root && !self.is_test()
    }

    fn top_level_module(&self) -> String {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        inside.split('/').next().unwrap_or("").trim_end_matches(".rs").to_owned()
    }

    fn findings(&self) -> Vec<Finding> {
        let mut found = self.purpose();
        found.extend(self.selects(&self.tokens));
        if self.is_production() {
            found.extend(self.floors());
            found.extend(self.purity());
            found.extend(self.file_size());
            found.extend(self.enums(&self.tokens));
            found.extend(self.root_state());
            found.extend(self.file_access());
        }
        found
    }

    fn finding(&self, rule: Rule, what: String) -> Finding {
        (rule, self.path.clone(), what)
    }

    fn purpose(&self) -> Vec<Finding> {
        let stated = self.text.lines().next().is_some_and(|line| line.starts_with("//! "));
        if stated {
            Vec::new()
        } else {
            vec![self.finding(Rule::Purpose, "no purpose line".into())]
        }
    }

    fn floors(&self) -> Vec<Finding> {
        let own = self.top_level_module();
        if own == TESTING {
            return Vec::new();
        }
        let used = crate_paths(&self.tokens);
        let wrong = used.iter().filter(|module| {
            **module == TESTING
                || (**module != own
                    && floor_of(module) >= floor_of(&own)
                    && floor_of(module).is_some())
        });
        wrong.map(|module| self.finding(Rule::Floor, format!("uses crate::{module}"))).collect()
    }

    /// The domain and the pure half of the terminal know no task, no file, no clock, no terminal.
    fn purity(&self) -> Vec<Finding> {
        let shell = self.path.starts_with("src/tui/shell") || self.path == "src/tui.rs";
        let pure = match self.top_level_module().as_str() {
            "domain" => true,
            "tui" => !shell,
            _ => false,
        };
        if !pure {
            return Vec::new();
        }
        let words = ["tokio", "tokio_util", "crossterm", "Instant", "SystemTime", "rustix"];
        let mut found: Vec<_> = flat(&self.tokens)
            .into_iter()
            .filter(|token| words.contains(&token.as_str()))
            .map(|token| self.finding(Rule::Purity, format!("names {token}")))
            .collect();
        if names_path(&self.tokens, "std", "fs") {
            found.push(self.finding(Rule::Purity, "names std::fs".into()));
        }
        found
    }

    fn file_size(&self) -> Vec<Finding> {
        let lines = self.text.lines().count() - self.test_lines;
        if lines <= FILE_LINES_MAX {
            return Vec::new();
        }
        vec![self.finding(Rule::FileSize, format!("{lines} lines without tests"))]
    }

    fn enums(&self, tokens: &[TokenTree]) -> Vec<Finding> {
        let mut found = Vec::new();
        for (name, body) in items(tokens, "enum") {
            let variants = top_level_parts(&body);
            if variants > ENUM_VARIANTS_MAX {
                found.push(self.finding(Rule::EnumSize, format!("{name} has {variants} variants")));
            }
        }
        for group in groups(tokens) {
            found.extend(self.enums(&group));
        }
        found
    }

    fn root_state(&self) -> Vec<Finding> {
        if self.path != "src/tui/state.rs" {
            return Vec::new();
        }
        let state = items(&self.tokens, "struct").into_iter().find(|(name, _)| name == "State");
        let (_, body) = state.expect("src/tui/state.rs holds the root state");
        let fields = top_level_parts(&body);
        if fields <= ROOT_STATE_FIELDS_MAX {
            return Vec::new();
        }
        vec![self.finding(Rule::RootState, format!("{fields} fields"))]
    }

    fn selects(&self, tokens: &[TokenTree]) -> Vec<Finding> {
        let mut found = Vec::new();
        for window in tokens.windows(3) {
            let [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(body)] = window
            else {
                continue;
            };
            let first = body.stream().into_iter().next().map(|token| token.to_string());
            if name == "select" && bang.as_char() == '!' && first.as_deref() != Some("biased") {
                found.push(self.finding(Rule::Select, "a select! that is not biased".into()));
            }
        }
        for group in groups(tokens) {
            found.extend(self.selects(&group));
        }
        found
    }

    fn file_access(&self) -> Vec<Finding> {
        let inside = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let allowed =
            |module: &&str| *inside == **module || inside.starts_with(&format!("{module}/"));
        let touches =
            names_path(&self.tokens, "std", "fs") || names_path(&self.tokens, "tokio", "fs");
        if !touches || FILE_ACCESS.iter().any(allowed) {
            return Vec::new();
        }
        vec![self.finding(Rule::FileAccess, "touches files".into())]
    }
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The text without its test modules, and how many lines those took. The formatter puts the end of a
/// top-level module at the start of a line.
fn without_test_modules(text: &str) -> (String, usize) {
    let (mut kept, mut lines, mut rest) = (String::new(), 0, text);
    while let Some(at) = TEST_MODULES.iter().filter_map(|opening| rest.find(opening)).min() {
        let (before, module) = rest.split_at(at);
        let end = module.find("\n}\n").map_or(module.len(), |end| end + 3);
        let (module, after) = module.split_at(end);
        kept.push_str(before);
        lines += module.lines().count();
        rest = after;
    }
    kept.push_str(rest);
    (kept, lines)
}

/// How a test module begins.
const TEST_MODULES: &[&str] =
    &["#[cfg(test)]\nmod ", "#[cfg(any(test, feature = \"testing\"))]\nmod "];

fn groups(tokens: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let inner = tokens.iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream().into_iter().collect()),
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    });
    inner.collect()
}

fn flat(tokens: &[TokenTree]) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                words.extend(flat(&inner));
            }
            TokenTree::Ident(ident) => words.push(ident.to_string()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    words
}

/// The top-level modules that stand behind `crate::`, also in groups of a `use`.
fn crate_paths(tokens: &[TokenTree]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let inner: Vec<_> = group.stream().into_iter().collect();
            found.extend(crate_paths(&inner));
        }
        if matches!(token, TokenTree::Ident(ident) if ident == "crate") {
            match after_path_separator(tokens, at + 1) {
                Some(TokenTree::Ident(module)) => drop(found.insert(module.to_string())),
                Some(TokenTree::Group(group)) => found.extend(leading_names(group)),
                _ => {}
            }
        }
    }
    found
}

fn leading_names(group: &Group) -> Vec<String> {
    let mut names = Vec::new();
    let mut leading = true;
    for token in group.stream() {
        match token {
            TokenTree::Ident(ident) if leading => {
                names.push(ident.to_string());
                leading = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => leading = true,
            _ => {}
        }
    }
    names
}

fn after_path_separator(tokens: &[TokenTree], at: usize) -> Option<&TokenTree> {
    match (tokens.get(at), tokens.get(at + 1)) {
        (Some(TokenTree::Punct(first)), Some(TokenTree::Punct(second)))
            if first.as_char() == ':'
                && first.spacing() == Spacing::Joint
                && second.as_char() == ':' =>
        {
            tokens.get(at + 2)
        }
        _ => None,
    }
}

fn names_path(tokens: &[TokenTree], first: &str, second: &str) -> bool {
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Group(group) => {
            let inner: Vec<_> = group.stream().into_iter().collect();
            names_path(&inner, first, second)
        }
        TokenTree::Ident(ident) if ident == first => match after_path_separator(tokens, at + 1) {
            Some(TokenTree::Ident(next)) => next == second,
            Some(TokenTree::Group(group)) => leading_names(group).iter().any(|name| name == second),
            _ => false,
        },
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// The items of one kind that stand directly among `tokens`, with their bodies.
fn items(tokens: &[TokenTree], kind: &str) -> Vec<(String, Vec<TokenTree>)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_kind = matches!(token, TokenTree::Ident(ident) if ident == kind);
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1).filter(|_| is_kind) else { continue };
        let body = tokens.iter().skip(at + 2).find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
            _ => None,
        });
        if let Some(body) = body {
            found.push((name.to_string(), body.stream().into_iter().collect()));
        }
    }
    found
}

/// How many parts the top-level commas make; commas between angle brackets do not count.
fn top_level_parts(tokens: &[TokenTree]) -> usize {
    let (mut parts, mut depth, mut open) = (0, 0_i32, false);
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' => depth -= 1,
            TokenTree::Punct(punct) if punct.as_char() == ',' && depth == 0 => {
                parts += usize::from(open);
                open = false;
                continue;
            }
            _ => {}
        }
        open = true;
    }
    parts + usize::from(open)
}
