//! Keys in the kitty keyboard protocol, and in the older `CSI u` form that it extends.

use crate::tui::input::Input;
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::shell::decode::csi::{RELEASE, held};

/// The key in the parameters `code:shifted:base ; modifiers:event ; text`. A release is none.
pub(super) fn key(params: &str, alt: Mods) -> Option<Input> {
    let mut fields = params.split(';');
    let mut codes = fields.next()?.split(':').map(|code| code.parse::<u32>().ok());
    let (mods, event) = held(fields.next())?;
    if event == RELEASE {
        return None;
    }
    let mods = mods.with(alt);
    let plain = mods.without(Mods::SHIFT) == Mods::NONE;
    let text = fields.next().map(typed).unwrap_or_default();
    if plain && !text.is_empty() {
        return Some(of_text(text));
    }
    let code = codes.next()??;
    let (shifted, base) = (codes.next().flatten(), codes.next().flatten());
    let (code, mods) = match shifted {
        Some(shifted) if mods.has(Mods::SHIFT) && !same_letter(code, shifted) => {
            (shifted, mods.without(Mods::SHIFT))
        }
        _ => (code, mods),
    };
    // Ctrl-C is where it is on any layout: on one without Latin letters the base key tells it.
    let code = if plain || code < 0x80 { code } else { base.unwrap_or(code) };
    Some(Input::Key(Key::new(key_code(code)?, mods)))
}

/// The key of a code: a Unicode character, or one of the numbers for keys without one.
pub(super) fn key_code(code: u32) -> Option<KeyCode> {
    Some(match code {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57376..=57398 => KeyCode::F(u8::try_from(code - 57376).ok()? + 13),
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // The private use area holds the keys that mean nothing here: media keys, bare modifiers.
        57344..=63743 => return None,
        _ => KeyCode::Char(char::from_u32(code).filter(|c| !c.is_control())?),
    })
}

fn same_letter(code: u32, shifted: u32) -> bool {
    let letters = char::from_u32(code).zip(char::from_u32(shifted));
    letters.is_some_and(|(small, big)| small.to_lowercase().eq(big.to_lowercase()))
}

/// The text that a key typed, as code points with colons between them.
fn typed(field: &str) -> String {
    let codes = field.split(':').filter_map(|code| code.parse().ok());
    codes.filter_map(char::from_u32).filter(|c| !c.is_control()).collect()
}

fn of_text(text: String) -> Input {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Input::Key(Key::plain(KeyCode::Char(c))),
        _ => Input::Text(text),
    }
}
