//! Code coloured by role: syntect finds the scopes, and the scopes become roles.
//!
//! Works line by line with a state that can be kept, so that a block that is still being written
//! costs what is new in it.

use std::sync::OnceLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::Role;

/// Longer lines are left plain: they are data or minified, and patterns may go back and forth in them.
const LINE_BYTES_MAX: usize = 2 * 1024;
/// What follows this much of a block is left plain: highlighting costs about 0.7 ms per KiB, and a
/// whole message is laid out between two frames.
const BLOCK_BYTES_MAX: usize = 32 * 1024;

/// Knows the languages. Made once and shared; loads them when the first code is drawn.
#[derive(Default)]
pub struct Highlighter {
    loaded: OnceLock<Loaded>,
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

struct Loaded {
    syntaxes: SyntaxSet,
    /// The first that a scope begins with counts.
    roles: Vec<(Scope, Role)>,
}

/// Where the highlighting of a block stands after some of its lines.
#[derive(Clone, Debug)]
pub(super) struct CodeState {
    parse: ParseState,
    scopes: ScopeStack,
    bytes: usize,
}

impl Highlighter {
    /// A highlighter that has loaded nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a block in the language that the info string of its fence names; nothing if it is
    /// unknown.
    pub(super) fn begin(&self, info: &str) -> Option<CodeState> {
        let name = language(info);
        if name.is_empty() {
            return None;
        }
        let syntax = self.loaded().find(name)?;
        Some(CodeState { parse: ParseState::new(syntax), scopes: ScopeStack::new(), bytes: 0 })
    }

    /// The roles of one line, with or without its line end: each with the byte at which it ends.
    pub(super) fn line(&self, state: &mut CodeState, line: &str) -> Vec<(usize, Role)> {
        let plain = vec![(line.len(), Role::Code)];
        state.bytes = state.bytes.saturating_add(line.len());
        if line.len() > LINE_BYTES_MAX || state.bytes > BLOCK_BYTES_MAX {
            return plain;
        }
        let loaded = self.loaded();
        let Ok(ops) = state.parse.parse_line(line, &loaded.syntaxes) else { return plain };
        let mut runs: Vec<(usize, Role)> = Vec::new();
        let mut role = loaded.role(&state.scopes);
        for (at, op) in ops {
            push_run(&mut runs, at, role);
            if state.scopes.apply(&op).is_err() {
                break;
            }
            role = loaded.role(&state.scopes);
        }
        push_run(&mut runs, line.len(), role);
        runs
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.get_or_init(Loaded::new)
    }
}

/// The language that the info string of a fence names: its first word, less what tools put around it.
pub(super) fn language(info: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | ':' | ';');
    info.trim_start_matches(['{', '.', ' ']).split(is_end).next().unwrap_or_default()
}

fn push_run(runs: &mut Vec<(usize, Role)>, end: usize, role: Role) {
    match runs.last_mut() {
        Some((last_end, _)) if *last_end >= end => {}
        Some((last_end, last)) if *last == role => *last_end = end,
        None if end == 0 => {}
        _ => runs.push((end, role)),
    }
}

impl Loaded {
    fn new() -> Self {
        let roles = SCOPES.iter().filter_map(|&(name, role)| Some((Scope::new(name).ok()?, role)));
        Self { syntaxes: two_face::syntax::extra_newlines(), roles: roles.collect() }
    }

    fn find(&self, name: &str) -> Option<&SyntaxReference> {
        let name = match name.to_ascii_lowercase().as_str() {
            "shell" | "console" | "terminal" | "shellsession" => "sh",
            "jsonc" | "json5" => "json",
            "golang" => "go",
            "text" | "plain" | "plaintext" | "txt" => return None,
            _ => name,
        };
        self.syntaxes.find_syntax_by_token(name)
    }

    /// The role of the innermost scope that has one.
    fn role(&self, scopes: &ScopeStack) -> Role {
        let role_of = |scope: &Scope| {
            self.roles.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|&(_, role)| role)
        };
        scopes.scopes.iter().rev().find_map(role_of).unwrap_or(Role::Code)
    }
}

/// Scopes as the grammars name them, the special before the general.
const SCOPES: &[(&str, Role)] = &[
    ("comment", Role::CodeComment),
    ("punctuation.definition.comment", Role::CodeComment),
    ("constant.character.escape", Role::CodeNumber),
    ("string", Role::CodeString),
    ("constant", Role::CodeNumber),
    ("storage.type.numeric", Role::CodeNumber),
    ("keyword.operator", Role::Code),
    ("keyword", Role::CodeKeyword),
    ("storage", Role::CodeKeyword),
    ("variable.language", Role::CodeKeyword),
    ("entity.name.function", Role::CodeFunction),
    ("entity.name.macro", Role::CodeFunction),
    ("support.function", Role::CodeFunction),
    ("support.macro", Role::CodeFunction),
    ("variable.function", Role::CodeFunction),
    ("entity.name.tag", Role::CodeKeyword),
    ("entity.other.attribute-name", Role::CodeType),
    ("entity.other.inherited-class", Role::CodeType),
    ("entity.name.section", Role::CodeKeyword),
    ("entity.name", Role::CodeType),
    ("support.type", Role::CodeType),
    ("support.class", Role::CodeType),
    ("support.constant", Role::CodeNumber),
    ("markup.inserted", Role::DiffAdded),
    ("markup.deleted", Role::DiffRemoved),
    ("meta.diff.range", Role::DiffHunk),
    ("meta.diff.header", Role::DiffHunk),
    ("markup.heading", Role::CodeKeyword),
    ("markup.raw", Role::CodeString),
    ("meta.interpolation", Role::Code),
    ("source", Role::Code),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(info: &str, code: &str, runs: &[(&str, Role)]) {
        let highlighter = Highlighter::new();
        let mut state = highlighter.begin(info).expect("a known language");
        let mut found = Vec::new();
        for line in code.split_inclusive('\n') {
            let mut start = 0;
            for (end, role) in highlighter.line(&mut state, line) {
                let piece = line.get(start..end).unwrap();
                if !piece.trim().is_empty() && role != Role::Code {
                    found.push((piece, role));
                }
                start = end;
            }
            assert_eq!(start, line.len());
        }
        assert_eq!(found, runs);
    }

    #[test]
    fn code_gets_the_roles_of_its_parts() {
        check(
            "rust,ignore",
            "fn main() { /* a\nb */ let x: u8 = 1; f(\"s\") }\n",
            &[
                ("fn", Role::CodeKeyword),
                ("main", Role::CodeFunction),
                ("/* a\n", Role::CodeComment),
                ("b */", Role::CodeComment),
                ("let", Role::CodeKeyword),
                ("u8", Role::CodeKeyword),
                ("1", Role::CodeNumber),
                ("f", Role::CodeFunction),
                ("\"s\"", Role::CodeString),
            ],
        );
    }

    #[test]
    fn a_language_is_the_first_word_of_the_info_string() {
        for (info, name) in [
            ("rust", "rust"),
            ("rust,no_run", "rust"),
            ("{.python .numbered}", "python"),
            ("js title=\"a b\"", "js"),
            ("", ""),
            ("src/main.rs:12", "src/main.rs"),
        ] {
            assert_eq!(language(info), name, "{info}");
        }
        assert!(Highlighter::new().begin("no such language").is_none());
    }

    #[test]
    fn long_lines_and_the_end_of_long_blocks_stay_plain() {
        let highlighter = Highlighter::new();
        let mut state = highlighter.begin("rust").unwrap();
        let long = format!("let x = \"{}\";\n", "a".repeat(LINE_BYTES_MAX));
        assert_eq!(highlighter.line(&mut state, &long), [(long.len(), Role::Code)]);
        assert!(highlighter.line(&mut state, "let x;\n").len() > 1);
        state.bytes = BLOCK_BYTES_MAX;
        assert_eq!(highlighter.line(&mut state, "let x;\n"), [(7, Role::Code)]);
    }
}
