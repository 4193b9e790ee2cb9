//! Rows of styled text, laid out for one width: what the timeline, the prompts and the pager draw.
//!
//! Styles are roles, not colours, so that rows do not depend on the theme. Every text that comes in
//! here is made safe on its way (`base::sanitize`). No row is wider than the width it was made for.

pub mod ansi;
pub mod clip;
pub mod code;
pub mod diff;
mod flat;
pub mod markdown;
pub mod plain;
pub mod stream;

use std::ops::{BitOr, Range};

use crate::base::text;

/// What a piece of text means; a theme gives it colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Plain text.
    #[default]
    Text,
    /// Text that steps back: gutters, tags, counts, HTML.
    Muted,
    /// Strong emphasis.
    Strong,
    /// Emphasis.
    Emphasis,
    /// A heading.
    Heading,
    /// The text of a link.
    Link,
    /// Where a link really goes.
    LinkTarget,
    /// Code, where nothing more is known.
    Code,
    /// A keyword in code.
    CodeKeyword,
    /// A string in code.
    CodeString,
    /// A comment in code.
    CodeComment,
    /// A number or another constant in code.
    CodeNumber,
    /// A type in code.
    CodeType,
    /// A function in code.
    CodeFunction,
    /// The bar beside a quotation.
    Quote,
    /// A rule, also between the columns of a table.
    Rule,
    /// A bullet, a number or a task box.
    ListMark,
    /// An added line.
    DiffAdded,
    /// A removed line.
    DiffRemoved,
    /// The head of a part of a diff, and what is folded away between parts.
    DiffHunk,
    /// Something failed.
    Error,
    /// Something to be careful with, such as a link that may run something.
    Warning,
    /// Something that stands out.
    Accent,
}

/// A set of ways to draw text that every terminal knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mods(u8);

impl Mods {
    /// No modifier.
    pub const NONE: Self = Self(0);
    /// Bold.
    pub const BOLD: Self = Self(1);
    /// Faint.
    pub const DIM: Self = Self(1 << 1);
    /// Italic.
    pub const ITALIC: Self = Self(1 << 2);
    /// Underlined.
    pub const UNDERLINE: Self = Self(1 << 3);
    /// Struck through.
    pub const STRIKE: Self = Self(1 << 4);
    /// Foreground and background exchanged.
    pub const REVERSED: Self = Self(1 << 5);

    /// Whether all of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set less `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Mods {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A colour that a tool asked for in its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// One of the 256 of the terminal's palette; the first 16 are its own.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// How a piece of text is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// What the text means.
    pub role: Role,
    /// Modifiers on top of those that the theme gives to the role.
    pub mods: Mods,
    /// A foreground that replaces the role's; tool output only.
    pub fg: Option<Colour>,
    /// A background that replaces the role's; tool output only.
    pub bg: Option<Colour>,
}

impl From<Role> for Style {
    fn from(role: Role) -> Self {
        Self { role, ..Self::default() }
    }
}

impl Style {
    /// This style with more modifiers.
    #[must_use]
    pub fn with(self, mods: Mods) -> Self {
        Self { mods: self.mods | mods, ..self }
    }

    /// This style in another role, unless it has one already.
    #[must_use]
    fn or_role(self, role: Role) -> Self {
        if self.role == Role::Text { Self { role, ..self } } else { self }
    }
}

/// A piece of a row that is drawn in one style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Safe text without controls; it begins and ends between clusters.
    pub text: &'a str,
    /// How to draw it.
    pub style: Style,
}

/// One row of the screen. Thousands are kept, so it is one text with marks where the style changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    text: Box<str>,
    runs: Box<[Run]>,
    source: Range<u32>,
    width: u16,
    continued: bool,
}

/// A style and the byte of the row's text at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: u32,
    style: Style,
}

impl Row {
    /// The whole text of the row.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The pieces of the row, from left to right.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        spans(&self.text, &self.runs)
    }

    /// The cells that the row fills.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// The bytes of the source that the row shows; empty for a row that shows none, at the place
    /// where it stands. From row to row the start never goes back.
    #[must_use]
    pub fn source(&self) -> Range<u32> {
        self.source.clone()
    }

    /// Whether the row goes on with the source line of the row above.
    #[must_use]
    pub fn is_continued(&self) -> bool {
        self.continued
    }
}

/// A row in the making.
#[derive(Clone, Debug, Default)]
struct RowBuilder {
    text: String,
    runs: Vec<Run>,
}

impl RowBuilder {
    /// Adds safe text.
    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = offset(self.text.len());
        match self.runs.last_mut() {
            Some(run) if run.style == style => run.end = end,
            _ => self.runs.push(Run { end, style }),
        }
    }

    /// Adds what another row holds.
    fn extend(&mut self, other: &Self) {
        for span in spans(&other.text, &other.runs) {
            self.push(span.text, span.style);
        }
    }

    /// The cells that it fills so far.
    fn width(&self) -> usize {
        spans(&self.text, &self.runs).map(|span| text::width(span.text)).sum()
    }

    /// The row, without the spaces at its end that nobody would see.
    fn finish(mut self, source: Range<usize>, continued: bool) -> Row {
        while let Some(run) = self.runs.last()
            && run.style.bg.is_none()
            && run.style.mods.without(Mods::BOLD | Mods::DIM | Mods::ITALIC) == Mods::NONE
        {
            let start = self.runs.iter().rev().nth(1).map_or(0, |before| before.end as usize);
            let len = self.text.trim_end_matches(' ').len();
            self.text.truncate(len.max(start));
            if len > start {
                break;
            }
            self.runs.pop();
        }
        if let Some(run) = self.runs.last_mut() {
            run.end = offset(self.text.len());
        }
        Row {
            width: u16::try_from(self.width()).unwrap_or(u16::MAX),
            text: self.text.into_boxed_str(),
            runs: self.runs.into_boxed_slice(),
            source: offset(source.start)..offset(source.end),
            continued,
        }
    }
}

fn spans<'a>(text: &'a str, runs: &'a [Run]) -> impl Iterator<Item = Span<'a>> {
    let mut start = 0;
    runs.iter().map(move |run| {
        let end = run.end as usize;
        let piece = text.get(start..end).unwrap_or_default();
        start = end;
        Span { text: piece, style: run.style }
    })
}

/// Offsets are kept in 32 bits: no text that is laid out at once comes near 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_end(text: &str, style: Style, drawn: &str) {
        let mut row = RowBuilder::default();
        row.push("a ", Style::default());
        row.push(text, style);
        let row = row.finish(0..9, false);
        assert_eq!(row.text(), drawn);
        assert_eq!(usize::from(row.width()), text::width(drawn));
        assert_eq!(row.spans().map(|span| span.text).collect::<String>(), drawn);
    }

    #[test]
    fn spaces_at_the_end_stay_only_where_they_can_be_seen() {
        check_end("b  ", Role::Code.into(), "a b");
        check_end("  ", Role::Code.into(), "a");
        check_end("  ", Style::default().with(Mods::REVERSED), "a   ");
        check_end(" ", Style { bg: Some(Colour::Indexed(1)), ..Style::default() }, "a  ");
    }

    #[test]
    fn a_row_is_small() {
        assert!(size_of::<Row>() <= 48);
    }
}
