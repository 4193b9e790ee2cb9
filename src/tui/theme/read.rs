//! Reads the files of a theme: its colours, and the styles that are made of them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use super::{ROLES, Theme, Ui};
use crate::tui::input::Rgb;
use crate::tui::mark::Mark;
use crate::tui::theme::colour::Depth;

/// What is wrong with a theme.
#[derive(Debug, thiserror::Error)]
pub enum ThemeProblem {
    /// A file is no TOML, or holds something else than a theme.
    #[error("a theme that cannot be read: {0}")]
    Form(#[from] toml::de::Error),
    /// Nothing says how this is drawn.
    #[error("no style for {0}")]
    Missing(&'static str),
    /// There is nothing of this name to be drawn.
    #[error("nothing is called {0}")]
    Unknown(String),
    /// A style is no style.
    #[error("{name} = {style:?}: {why}")]
    Style {
        /// Whose style.
        name: &'static str,
        /// As it is written.
        style: String,
        /// What is wrong with it.
        why: MalformedStyle,
    },
}

/// A text that is no style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedStyle {
    /// The theme has no such colour.
    #[error("no colour and no modifier is called {0:?}")]
    Word(String),
    /// A colour is not written as `#rrggbb`.
    #[error("{0:?} is no colour of the form #rrggbb")]
    Colour(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StylesFile {
    text: BTreeMap<String, String>,
    screen: BTreeMap<String, String>,
    mark: BTreeMap<String, String>,
}

/// The colours of a theme.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColoursFile {
    /// The backgrounds that they are made for.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the test of the contrast asks"))]
    pub(super) grounds: Vec<String>,
    pub(super) colours: BTreeMap<String, ColourEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColourEntry {
    pub(super) rgb: String,
    ansi: Option<u8>,
}

pub(super) fn theme(styles: &str, colours: &str, depth: Depth) -> Result<Theme, ThemeProblem> {
    let styles: StylesFile = toml::from_str(styles)?;
    let colours: ColoursFile = toml::from_str(colours)?;
    let palette = Palette { colours: &colours.colours, depth };
    Ok(Theme {
        depth,
        roles: palette.table(&styles.text, ROLES)?,
        screen: palette.table(&styles.screen, Ui::NAMED)?,
        marks: palette.table(&styles.mark, Mark::NAMED)?,
    })
}

/// The colours of a theme on a terminal.
struct Palette<'a> {
    colours: &'a BTreeMap<String, ColourEntry>,
    depth: Depth,
}

impl Palette<'_> {
    /// The styles of everything that has a name.
    fn table<K: Copy + Eq + Hash>(
        &self,
        styles: &BTreeMap<String, String>,
        names: &'static [(K, &'static str)],
    ) -> Result<HashMap<K, Style>, ThemeProblem> {
        if let Some(unknown) =
            styles.keys().find(|name| names.iter().all(|(_, known)| known != name))
        {
            return Err(ThemeProblem::Unknown(unknown.clone()));
        }
        let made = names.iter().map(|&(key, name)| {
            let style = styles.get(name).ok_or(ThemeProblem::Missing(name))?;
            let problem = |why| ThemeProblem::Style { name, style: style.clone(), why };
            Ok((key, self.style(style).map_err(problem)?))
        });
        made.collect()
    }

    fn style(&self, text: &str) -> Result<Style, MalformedStyle> {
        let (coloured, plain) = match text.split_once('|') {
            Some((coloured, plain)) => (coloured, Some(plain)),
            None => (text, None),
        };
        let drawn = self.words(coloured)?;
        match (self.depth, plain) {
            (Depth::None, Some(plain)) => self.words(plain),
            // What is told by its ground has to be told otherwise where there is no colour for it.
            (Depth::Sixteen, Some(plain)) if drawn.bg.is_none() && has_ground(coloured) => {
                Ok(drawn.patch(self.words(plain)?))
            }
            _ => Ok(drawn),
        }
    }

    fn words(&self, text: &str) -> Result<Style, MalformedStyle> {
        let mut style = Style::new();
        let mut is_background = false;
        for word in text.split_whitespace() {
            if word == "on" {
                is_background = true;
            } else if let Some(modifier) = modifier(word) {
                style = style.add_modifier(modifier);
            } else {
                let colour = self.colour(word)?;
                let place = if is_background { &mut style.bg } else { &mut style.fg };
                *place = colour;
            }
        }
        Ok(style)
    }

    fn colour(&self, name: &str) -> Result<Option<Color>, MalformedStyle> {
        let word = || MalformedStyle::Word(name.to_owned());
        let entry = self.colours.get(name).ok_or_else(word)?;
        let exact = hex(&entry.rgb).ok_or_else(|| MalformedStyle::Colour(entry.rgb.clone()))?;
        Ok(match self.depth {
            Depth::Sixteen => entry.ansi.and_then(|index| self.depth.indexed(index)),
            Depth::None | Depth::TwoFiftySix | Depth::Full => self.depth.exact(exact),
        })
    }
}

/// Whether a style names a background.
fn has_ground(style: &str) -> bool {
    style.split_whitespace().any(|word| word == "on")
}

fn modifier(word: &str) -> Option<Modifier> {
    Some(match word {
        "bold" => Modifier::BOLD,
        "dim" => Modifier::DIM,
        "italic" => Modifier::ITALIC,
        "underline" => Modifier::UNDERLINED,
        "strike" => Modifier::CROSSED_OUT,
        "reversed" => Modifier::REVERSED,
        _ => return None,
    })
}

/// Reads `#rrggbb`.
pub(super) fn hex(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(Rgb { red, green, blue })
}
