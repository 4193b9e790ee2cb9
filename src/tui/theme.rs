//! Themes: what the roles of texts, the parts of the screen and the marks look like, in as many
//! colours as the terminal has. Nothing is told by a colour alone.

pub mod colour;
mod read;

use std::collections::HashMap;

use ratatui::style::{Color, Modifier, Style};

use crate::tui::input::Rgb;
use crate::tui::mark::Mark;
use crate::tui::rich;
use colour::Depth;
pub use read::{MalformedStyle, ThemeProblem};

const STYLES: &str = include_str!("../../assets/themes/styles.toml");
const DARK: &str = include_str!("../../assets/themes/dark.toml");
const LIGHT: &str = include_str!("../../assets/themes/light.toml");

/// Whether a terminal is dark or light.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Light text on a dark ground.
    #[default]
    Dark,
    /// Dark text on a light ground.
    Light,
}

impl Ground {
    /// What a background is, as the terminal told it.
    #[must_use]
    pub fn of(background: Rgb) -> Self {
        // Where black and white stand out equally well.
        if colour::luminance(background) > 0.18 { Self::Light } else { Self::Dark }
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal $what:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $what] $variant,)+
        }

        impl $name {
            /// All of them, with their names in theme files.
            const NAMED: &'static [(Self, &'static str)] = &[$((Self::$variant, $text),)+];
        }
    };
}

named! {
    /// A part of the screen.
    Ui {
        Border "border" "Lines between panes.",
        BorderFocused "border-focused" "Lines around the pane that has the focus.",
        Title "title" "The title of a pane.",
        TitleFocused "title-focused" "The title of the pane that has the focus.",
        You "you" "The head of a message of the person's.",
        Assistant "assistant" "The head of an answer.",
        Plain "plain" "Text of our own.",
        Muted "muted" "Text of our own that steps back: times, counts, hints.",
        Strong "strong" "Text of our own that stands out: names of tools, questions.",
        Day "day" "The head of a day in the session list.",
        Cursor "cursor" "The row under the cursor where the focus is.",
        CursorResting "cursor-resting" "The row under the cursor where the focus is not.",
        Marked "marked" "The sign of a session that is marked.",
        FocusBar "focus-bar" "The bar beside what has the focus.",
        Key "key" "A key that does something.",
        KeyDead "key-dead" "A key that does nothing yet.",
        Caution "caution" "Something to be careful with.",
        Chip "chip" "A pasted block.",
        Placeholder "placeholder" "What stands in an empty text.",
        Pill "pill" "What lies over the conversation and says that more is below.",
        Toast "toast" "A message that goes by itself.",
        ToastProblem "toast-problem" "A message that something did not happen.",
    }
}

/// What a piece of a row is, and with it how it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tint {
    /// Text of somebody else's.
    Text(rich::Style),
    /// A part of the screen.
    Ui(Ui),
    /// A mark, drawn in the frame of the moment.
    Mark(Mark),
}

/// The names of the roles of texts in theme files.
const ROLES: &[(rich::Role, &str)] = &[
    (rich::Role::Text, "text"),
    (rich::Role::Muted, "muted"),
    (rich::Role::Strong, "strong"),
    (rich::Role::Emphasis, "emphasis"),
    (rich::Role::Heading, "heading"),
    (rich::Role::Link, "link"),
    (rich::Role::LinkTarget, "link-target"),
    (rich::Role::Code, "code"),
    (rich::Role::CodeKeyword, "code-keyword"),
    (rich::Role::CodeString, "code-string"),
    (rich::Role::CodeComment, "code-comment"),
    (rich::Role::CodeNumber, "code-number"),
    (rich::Role::CodeType, "code-type"),
    (rich::Role::CodeFunction, "code-function"),
    (rich::Role::Quote, "quote"),
    (rich::Role::Rule, "rule"),
    (rich::Role::ListMark, "list-mark"),
    (rich::Role::DiffAdded, "diff-added"),
    (rich::Role::DiffRemoved, "diff-removed"),
    (rich::Role::DiffHunk, "diff-hunk"),
    (rich::Role::Error, "error"),
    (rich::Role::Warning, "warning"),
    (rich::Role::Accent, "accent"),
];

/// A theme, for a terminal with a certain number of colours.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    depth: Depth,
    roles: HashMap<rich::Role, Style>,
    screen: HashMap<Ui, Style>,
    marks: HashMap<Mark, Style>,
}

impl Theme {
    /// The built-in theme for a ground.
    ///
    /// # Errors
    /// What is wrong with it, in a program that was built from broken files.
    pub fn built_in(ground: Ground, depth: Depth) -> Result<Self, ThemeProblem> {
        let colours = match ground {
            Ground::Dark => DARK,
            Ground::Light => LIGHT,
        };
        read::theme(STYLES, colours, depth)
    }

    /// How a piece of a line is drawn.
    #[must_use]
    pub fn style(&self, tint: Tint) -> Style {
        match tint {
            Tint::Text(style) => self.text(style),
            Tint::Ui(part) => self.ui(part),
            Tint::Mark(mark) => self.mark(mark),
        }
    }

    /// How a part of the screen is drawn.
    #[must_use]
    pub fn ui(&self, part: Ui) -> Style {
        self.screen.get(&part).copied().unwrap_or_default()
    }

    /// How a mark is drawn.
    #[must_use]
    pub fn mark(&self, mark: Mark) -> Style {
        self.marks.get(&mark).copied().unwrap_or_default()
    }

    fn text(&self, style: rich::Style) -> Style {
        let mut drawn = self.roles.get(&style.role).copied().unwrap_or_default();
        drawn.add_modifier |= modifiers(style.mods);
        if let Some(fg) = style.fg.and_then(|colour| self.asked_for(colour)) {
            drawn.fg = Some(fg);
        }
        if let Some(bg) = style.bg.and_then(|colour| self.asked_for(colour)) {
            drawn.bg = Some(bg);
        }
        drawn
    }

    /// A colour that a tool asked for, as far as the terminal has it.
    fn asked_for(&self, colour: rich::Colour) -> Option<Color> {
        match colour {
            rich::Colour::Indexed(index) => self.depth.indexed(index),
            rich::Colour::Rgb(red, green, blue) => self.depth.exact(Rgb { red, green, blue }),
        }
    }
}

fn modifiers(mods: rich::Mods) -> Modifier {
    let pairs = [
        (rich::Mods::BOLD, Modifier::BOLD),
        (rich::Mods::DIM, Modifier::DIM),
        (rich::Mods::ITALIC, Modifier::ITALIC),
        (rich::Mods::UNDERLINE, Modifier::UNDERLINED),
        (rich::Mods::STRIKE, Modifier::CROSSED_OUT),
        (rich::Mods::REVERSED, Modifier::REVERSED),
    ];
    let held = pairs.into_iter().filter(|(mods_held, _)| mods.contains(*mods_held));
    held.fold(Modifier::empty(), |all, (_, modifier)| all | modifier)
}

#[cfg(test)]
mod tests;
