//! A command line for a person to decide on: a row for each part of a pipeline or list, every line end
//! of its own to be seen. How it is parted decides nothing; all of it is shown.

use crate::base::sanitize::Policy;
use crate::tui::line::{Fade, Line};
use crate::tui::rich::plain;
use crate::tui::theme::Ui;

/// Before the first row of a command, before the other parts, and before what did not fit in a row.
const SIGNS: [&str; 3] = ["$ ", "  ", "↳ "];
/// The columns of a sign.
const SIGN_COLS: u16 = 2;
/// What ends a part, the longer first.
const OPERATORS: [&str; 9] = [";;&", "&&", "||", "|&", ";;", ";&", "|", "&", ";"];

/// The rows of a command.
pub(super) fn rows(command: &str, width: u16) -> Vec<Line> {
    let [first, other, wrapped] = SIGNS;
    let cols = width.saturating_sub(SIGN_COLS).max(1);
    let mut lines = Vec::new();
    for (at, part) in parts(command).into_iter().enumerate() {
        let shown = part.strip_suffix('\n').map_or_else(|| part.to_owned(), |it| format!("{it}␊"));
        for (row, text) in plain::rows(&shown, cols, Policy::Approval).iter().enumerate() {
            let sign = match (at, row) {
                (0, 0) => first,
                (_, 0) => other,
                (_, _) => wrapped,
            };
            lines.push(Line::of(sign, Ui::Key).with_row(text, Fade::Front));
        }
    }
    lines
}

/// The command in parts that follow each other without a gap. Each ends behind an operator that
/// stands outside of quotes, comments and here-documents, or behind a line end.
fn parts(command: &str) -> Vec<&str> {
    let mut scan = Scan::default();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = command.get(at..).filter(|rest| !rest.is_empty()) {
        let before = command.get(..at).unwrap_or_default();
        let Step { len, ends } = scan.step(before, rest);
        at += len;
        if ends {
            parts.extend(command.get(start..at));
            start = at;
        }
    }
    parts.extend(command.get(start..).filter(|rest| !rest.is_empty() || parts.is_empty()));
    parts
}

/// Where in the language of the shell a place stands.
#[derive(Default)]
struct Scan {
    place: Place,
    /// Whether the text of a here-document begins with the next line.
    has_document: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Open,
    /// Between single quotes.
    Single,
    /// Between double quotes.
    Double,
    /// Behind `#`, up to the line end.
    Comment,
    /// In a here-document, whose end is not looked for.
    Document,
}

/// How many bytes belong together, and whether they end a part.
struct Step {
    len: usize,
    ends: bool,
}

impl Scan {
    fn step(&mut self, before: &str, rest: &str) -> Step {
        let Some(c) = rest.chars().next() else { return Step { len: 0, ends: false } };
        let one = Step { len: c.len_utf8(), ends: c == '\n' };
        match (self.place, c) {
            (_, '\n') => {
                self.place = match self.place {
                    Place::Comment | Place::Open if self.has_document => Place::Document,
                    Place::Comment => Place::Open,
                    place => place,
                };
                one
            }
            (Place::Open | Place::Double, '\\') => {
                let next = rest.chars().nth(1).filter(|next| *next != '\n');
                Step { len: 1 + next.map_or(0, char::len_utf8), ends: false }
            }
            (Place::Open, '\'') => self.go(Place::Single),
            (Place::Open, '"') => self.go(Place::Double),
            (Place::Open, '#') if begins_word(before) => self.go(Place::Comment),
            (Place::Single, '\'') | (Place::Double, '"') => self.go(Place::Open),
            (Place::Open, '<') => self.redirection(rest),
            (Place::Open, _) => operator(before, rest).unwrap_or(one),
            (Place::Single | Place::Double | Place::Comment | Place::Document, _) => one,
        }
    }

    fn go(&mut self, to: Place) -> Step {
        self.place = to;
        Step { len: 1, ends: false }
    }

    fn redirection(&mut self, rest: &str) -> Step {
        let len = rest.bytes().take_while(|byte| *byte == b'<').count();
        self.has_document |= len == 2;
        Step { len, ends: false }
    }
}

fn begins_word(before: &str) -> bool {
    before.ends_with(|c: char| c.is_whitespace() || ";|&()".contains(c)) || before.is_empty()
}

/// An operator that stands here, if one does: `>&`, `<&`, `>|` and `&>` are redirections.
fn operator(before: &str, rest: &str) -> Option<Step> {
    if before.ends_with(['>', '<']) || rest.starts_with("&>") {
        return None;
    }
    let found = OPERATORS.iter().find(|operator| rest.starts_with(**operator))?;
    let next = rest.get(found.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
    // A line end ends the part by itself.
    Some(Step { len: found.len(), ends: !next.is_empty() && !next.starts_with('\n') })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::sanitize::hostile;

    fn drawn(command: &str, width: u16) -> Vec<String> {
        let text = |line: &Line| line.spans().iter().map(|span| span.text.as_ref()).collect();
        rows(command, width).iter().map(text).collect()
    }

    #[test]
    fn each_part_of_a_pipeline_or_list_has_a_row() {
        assert_eq!(
            drawn("cd a && cat *.rs|sort -u 2>&1 || { rm -rf b; echo c & } >| d", 80),
            [
                "$ cd a &&",
                "   cat *.rs|",
                "  sort -u 2>&1 ||",
                "   { rm -rf b;",
                "   echo c &",
                "   } >| d",
            ]
        );
        assert_eq!(drawn("make &> log &", 80), ["$ make &> log &"]);
        assert_eq!(drawn("a |\n  b", 80), ["$ a |␊", "    b"]);
    }

    #[test]
    fn what_is_quoted_or_no_command_is_not_parted() {
        assert_eq!(
            drawn(r#"echo 'a; b' "c | \" d" e\;f # g; h"#, 80),
            [r#"$ echo 'a; b' "c | \" d" e\;f # g; h"#]
        );
        assert_eq!(
            drawn("cat <<E; ls\na; b\nE\n", 80),
            ["$ cat <<E;", "   ls␊", "  a; b␊", "  E␊"]
        );
        assert_eq!(drawn("cat <<< a; b", 80), ["$ cat <<< a;", "   b"]);
    }

    #[test]
    fn a_line_end_looks_different_from_a_row_that_is_full() {
        assert_eq!(
            drawn("echo one two\nrm three four", 10),
            ["$ echo one", "↳ two␊", "  rm three", "↳ four"]
        );
        assert_eq!(drawn("ls \\\n-l", 80), ["$ ls \\␊", "  -l"]);
        assert_eq!(drawn("echo 'a\nb; c'", 80), ["$ echo 'a␊", "  b; c'"]);
        assert_eq!(drawn("", 80), ["$ "]);
    }

    proptest! {
        #[test]
        fn the_parts_are_the_command(
            pieces in prop::collection::vec(prop_oneof![
                hostile::text(),
                prop::sample::select(vec![";", "&&", "|", "\n", "'", "\"", "\\", "<<", "#", " ", "&>"])
                    .prop_map(str::to_owned),
            ], 0..12),
            width in 1..60_u16,
        ) {
            let command: String = pieces.concat();
            prop_assert_eq!(parts(&command).concat(), command.clone());
            let ends = command.matches('\n').count();
            let shown = drawn(&command, 10_000).concat();
            prop_assert!(shown.matches('␊').count() >= ends);
            let fits = rows(&command, width.max(4)).iter().all(|row| row.width() <= usize::from(width.max(4)));
            prop_assert!(fits);
        }
    }
}
