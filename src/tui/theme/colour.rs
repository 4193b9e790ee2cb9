//! Colours: how bright they are, how well they stand out, and the nearest that a terminal has.

use ratatui::style::Color;

use crate::tui::input::Rgb;

/// How many colours a terminal can draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None are wanted (`NO_COLOR`), or there are none.
    None,
    /// The 16 that everybody sets up for themselves.
    Sixteen,
    /// The 256 of xterm.
    TwoFiftySix,
    /// All.
    Full,
}

/// What the environment says about colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told<'a> {
    /// `NO_COLOR`: anything in it means that none are wanted.
    pub no_color: Option<&'a str>,
    /// `COLORTERM`: `truecolor` or `24bit` where all can be drawn.
    pub colorterm: Option<&'a str>,
    /// `TERM`: the name of the terminal.
    pub term: Option<&'a str>,
}

/// Terminals that draw all colours and say so in their name alone, as over ssh.
const FULL_TERMS: [&str; 6] = ["kitty", "ghostty", "alacritty", "wezterm", "foot", "direct"];

impl Depth {
    /// As many colours as the environment lets hope for.
    #[must_use]
    pub fn told(by: Told<'_>) -> Self {
        let term = by.term.unwrap_or_default();
        if by.no_color.is_some_and(|said| !said.is_empty()) || term == "dumb" {
            return Self::None;
        }
        let says_full = matches!(by.colorterm, Some("truecolor" | "24bit"));
        if says_full || FULL_TERMS.iter().any(|name| term.contains(name)) {
            return Self::Full;
        }
        if term.contains("256") { Self::TwoFiftySix } else { Self::Sixteen }
    }

    /// An exact colour, or the nearest that there is.
    #[must_use]
    pub fn exact(self, colour: Rgb) -> Option<Color> {
        match self {
            Self::None => None,
            Self::Sixteen => Some(Color::Indexed(nearest(colour, 0..16))),
            Self::TwoFiftySix => Some(Color::Indexed(nearest(colour, 16..=255))),
            Self::Full => Some(Color::Rgb(colour.red, colour.green, colour.blue)),
        }
    }

    /// One of the 256 of xterm, or the nearest that there is.
    #[must_use]
    pub fn indexed(self, index: u8) -> Option<Color> {
        match self {
            Self::None => None,
            Self::Sixteen if index >= 16 => Some(Color::Indexed(nearest(xterm(index), 0..16))),
            Self::Sixteen | Self::TwoFiftySix | Self::Full => Some(Color::Indexed(index)),
        }
    }
}

/// How well text of one colour stands out on another, from 1 to 21 (WCAG 2).
#[must_use]
pub fn contrast(text: Rgb, ground: Rgb) -> f64 {
    let (a, b) = (luminance(text), luminance(ground));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// How bright a colour is, from 0 to 1 (WCAG 2).
#[must_use]
pub fn luminance(colour: Rgb) -> f64 {
    let part = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(colour.red) + 0.7152 * part(colour.green) + 0.0722 * part(colour.blue)
}

fn nearest(colour: Rgb, among: impl Iterator<Item = u8>) -> u8 {
    let distance = |index: &u8| {
        let other = xterm(*index);
        let part = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        part(colour.red, other.red)
            + part(colour.green, other.green)
            + part(colour.blue, other.blue)
    };
    among.min_by_key(distance).unwrap_or(0)
}

/// The colours of xterm. The first 16 are its defaults; everybody has their own.
fn xterm(index: u8) -> Rgb {
    let grey = |level: u8| Rgb { red: level, green: level, blue: level };
    match index {
        0..=6 | 9..=14 => {
            let high = if index < 8 { 205 } else { 255 };
            let part = |bit: u8| if index & bit == 0 { 0 } else { high };
            Rgb { red: part(1), green: part(2), blue: part(4) }
        }
        7 => grey(229),
        8 => grey(127),
        15 => grey(255),
        16..=231 => {
            let step = |place: u8| match place % 6 {
                0 => 0,
                step => 55 + 40 * step,
            };
            let cube = index - 16;
            Rgb { red: step(cube / 36), green: step(cube / 6), blue: step(cube) }
        }
        232..=255 => grey(8 + 10 * (index - 232)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rgb(hex: u32) -> Rgb {
        let [_, red, green, blue] = hex.to_be_bytes();
        Rgb { red, green, blue }
    }

    #[test]
    fn contrast_goes_from_none_to_that_of_black_on_white() {
        assert!((contrast(rgb(0x00_0000), rgb(0xFF_FFFF)) - 21.0).abs() < 0.001);
        assert!((contrast(rgb(0x12_3456), rgb(0x12_3456)) - 1.0).abs() < 0.001);
        assert!((contrast(rgb(0x77_7777), rgb(0xFF_FFFF)) - 4.48).abs() < 0.01);
    }

    #[test]
    fn the_environment_says_how_many_colours_there_are() {
        let check = |no_color, colorterm, term, expected| {
            assert_eq!(Depth::told(Told { no_color, colorterm, term }), expected, "{term:?}");
        };
        check(None, None, None, Depth::Sixteen);
        check(None, None, Some("linux"), Depth::Sixteen);
        check(None, None, Some("screen-256color"), Depth::TwoFiftySix);
        check(None, None, Some("xterm-kitty"), Depth::Full);
        check(Some(""), Some("truecolor"), Some("xterm-256color"), Depth::Full);
        check(Some("1"), Some("truecolor"), Some("xterm-256color"), Depth::None);
        check(None, None, Some("dumb"), Depth::None);
    }

    #[test]
    fn a_terminal_with_few_colours_gets_the_nearest() {
        assert_eq!(Depth::Full.exact(rgb(0x82_AAFF)), Some(Color::Rgb(0x82, 0xAA, 0xFF)));
        assert_eq!(Depth::TwoFiftySix.exact(rgb(0x82_AAFF)), Some(Color::Indexed(111)));
        assert_eq!(Depth::TwoFiftySix.exact(rgb(0x30_3030)), Some(Color::Indexed(236)));
        assert_eq!(Depth::Sixteen.exact(rgb(0xFF_1010)), Some(Color::Indexed(9)));
        assert_eq!(Depth::Sixteen.indexed(196), Some(Color::Indexed(9)));
        assert_eq!(Depth::Sixteen.indexed(3), Some(Color::Indexed(3)));
        assert_eq!(Depth::None.exact(rgb(0xFF_1010)), None);
    }
}
