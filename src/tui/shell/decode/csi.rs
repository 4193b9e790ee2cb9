//! What the control sequences of terminals mean: keys in every encoding that is in use, the mouse,
//! focus, and answers. What has no meaning here is swallowed.

use crate::tui::input::{Button, Input, Mouse, MouseKind, Reply};
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::shell::decode::kitty;

/// The meaning of the control sequence with this body, its last byte included.
pub(super) fn control(body: &[u8], alt: Mods) -> Option<Input> {
    let (last, rest) = body.split_last()?;
    let rest = str::from_utf8(rest).ok()?;
    match (rest.as_bytes().first(), last) {
        (Some(b'<'), b'M' | b'm') => {
            mouse(rest.get(1..)?, if *last == b'm' { Way::Up } else { Way::Down })
        }
        (Some(b'?'), b'u') => {
            Some(Input::Reply(Reply::KeyboardFlags(rest.get(1..)?.parse().ok()?)))
        }
        (Some(b'?'), b'c') => Some(Input::Reply(Reply::DeviceAttributes)),
        (Some(b'['), letter @ b'A'..=b'E') => Some(pressed(KeyCode::F(letter - b'A' + 1), alt)),
        (Some(b'0'..=b'9' | b';') | None, _) => keys(*last, rest, alt),
        _ => None,
    }
}

/// The meaning of the single shift with this body: application keys, and those of the keypad.
pub(super) fn single_shift(body: &[u8], alt: Mods) -> Option<Input> {
    let (last, modifiers) = body.split_last()?;
    let modifiers = str::from_utf8(modifiers).ok()?;
    let (mods, _) = held(modifiers.rsplit(';').next())?;
    let mods = mods.with(alt);
    let keypad = |c: u8| KeyCode::Char(char::from(c));
    Some(match last {
        b'M' => pressed(KeyCode::Enter, mods),
        b'I' => pressed(KeyCode::Tab, mods),
        b'X' => pressed(keypad(b'='), mods),
        // The keypad sends its characters, moved from their place in ASCII.
        b'j'..=b'y' => pressed(keypad(last - 0x40), mods),
        b'a'..=b'd' => pressed(lettered(last.to_ascii_uppercase())?, mods.with(Mods::CTRL)),
        b'R' => pressed(KeyCode::F(3), mods),
        _ => pressed(lettered(*last)?, mods),
    })
}

/// The meaning of the three bytes of a mouse report in the oldest encoding.
pub(super) fn old_mouse(report: [u8; 3]) -> Option<Input> {
    let [buttons, column, row] = report.map(|byte| u32::from(byte.saturating_sub(32)));
    let (bits, way) = old_buttons(buttons);
    mouse_event(bits, way, column, row)
}

/// Keys whose sequences begin with no private mark.
fn keys(last: u8, params: &str, alt: Mods) -> Option<Input> {
    let mut numbers = params.split(';');
    let (first, second) = (numbers.next().unwrap_or_default(), numbers.next());
    let modified = |code, more: Mods| {
        let (mods, event) = held(second)?;
        (event != RELEASE).then(|| pressed(code, mods.with(more).with(alt)))
    };
    match (last, first) {
        (b'I', "") => Some(Input::FocusGained),
        (b'O', "") => Some(Input::FocusLost),
        (b'u', _) => kitty::key(params, alt),
        (b'~', "27") => other_key(second, numbers.next(), alt),
        (b'~', _) => modified(numbered(first)?, Mods::NONE),
        (b'$', _) => modified(numbered(first)?, Mods::SHIFT),
        (b'^', _) => modified(numbered(first)?, Mods::CTRL),
        (b'@', _) => modified(numbered(first)?, Mods::CTRL.with(Mods::SHIFT)),
        (b'Z', _) => modified(KeyCode::Tab, Mods::SHIFT),
        (b'M', _) => rxvt_mouse(params),
        (b'a'..=b'd', "") => modified(lettered(last.to_ascii_uppercase())?, Mods::SHIFT),
        // F3 with modifiers looks like an answer with the place of the cursor in the first row.
        // Nothing here asks for that, so it is the key wherever it can be.
        (b'R', "1") if F3_MODIFIERS.contains(&second?.parse().ok()?) => {
            modified(KeyCode::F(3), Mods::NONE)
        }
        (_, "" | "1") => modified(lettered(last)?, Mods::NONE),
        _ => None,
    }
}

fn pressed(code: KeyCode, mods: Mods) -> Input {
    Input::Key(Key::new(code, mods))
}

/// The kinds of key events, as the kitty protocol numbers them.
pub(super) const RELEASE: u8 = 3;

/// The highest modifier parameter: one more than the sum of all bits.
const MODIFIERS_MAX: u16 = 256;

/// The modifier parameters that xterm sends.
const F3_MODIFIERS: std::ops::RangeInclusive<u8> = 2..=16;

/// The modifiers and the kind of event in a parameter such as `5` or `5:3`.
pub(super) fn held(param: Option<&str>) -> Option<(Mods, u8)> {
    let (mods, event) = match param {
        None | Some("") => return Some((Mods::NONE, 1)),
        Some(param) => param.split_once(':').unwrap_or((param, "1")),
    };
    let mods: u16 = if mods.is_empty() { 1 } else { mods.parse().ok()? };
    let bits = (1..=MODIFIERS_MAX).contains(&mods).then_some(mods - 1)?;
    // Hyper (16) and Meta (32) exist on few keyboards and stand for Super and Alt.
    let bit = |mask: u16, modifier: Mods| if bits & mask == 0 { Mods::NONE } else { modifier };
    let mods = bit(1, Mods::SHIFT)
        .with(bit(2 | 32, Mods::ALT))
        .with(bit(4, Mods::CTRL))
        .with(bit(8 | 16, Mods::SUPER));
    Some((mods, event.parse().unwrap_or(1)))
}

/// Keys whose sequences end with a letter.
fn lettered(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// Keys whose sequences begin with a number.
fn numbered(number: &str) -> Option<KeyCode> {
    let number: u8 = number.parse().ok()?;
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number - 10),
        17..=21 => KeyCode::F(number - 11),
        23..=26 => KeyCode::F(number - 12),
        28 | 29 => KeyCode::F(number - 13),
        31..=34 => KeyCode::F(number - 14),
        _ => return None,
    })
}

/// xterm's `modifyOtherKeys`, whose character already has its Shift.
fn other_key(mods: Option<&str>, code: Option<&str>, alt: Mods) -> Option<Input> {
    let (mods, _) = held(mods)?;
    let code: u32 = code?.parse().ok()?;
    let c = char::from_u32(code)?;
    let mods = if c.is_alphabetic() || c.is_control() { mods } else { mods.without(Mods::SHIFT) };
    Some(pressed(kitty::key_code(code)?, mods.with(alt)))
}

fn rxvt_mouse(params: &str) -> Option<Input> {
    let mut numbers = params.split(';').map(|number| number.parse::<u32>().ok());
    let (buttons, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let buttons = buttons.checked_sub(32)?;
    let (bits, way) = old_buttons(buttons);
    mouse_event(bits, way, column, row)
}

fn mouse(params: &str, way: Way) -> Option<Input> {
    let mut numbers = params.split(';').map(|number| number.parse::<u32>().ok());
    let (buttons, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    mouse_event(buttons, way, column, row)
}

/// The way of a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

/// The encodings without a mark of their own for it tell of a released button by a fourth one.
fn old_buttons(bits: u32) -> (u32, Way) {
    let is_released = bits & 0b110_0011 == 3;
    if is_released { (bits & !3, Way::Up) } else { (bits, Way::Down) }
}

/// An event of the mouse from its bits: 0 to 1 the button, 2 to 4 modifiers, 5 moving, 6 the
/// wheel, 7 buttons that no program uses. Columns and rows count from 1.
fn mouse_event(bits: u32, way: Way, column: u32, row: u32) -> Option<Input> {
    let button = match bits & 3 {
        0 => Some(Button::Left),
        1 => Some(Button::Middle),
        2 => Some(Button::Right),
        _ => None,
    };
    let kind = match (bits & 0b1110_0000, way) {
        (0, Way::Down) => MouseKind::Press(button?),
        (0, Way::Up) => MouseKind::Release(button?),
        (0b10_0000, Way::Down) => MouseKind::Drag(button?),
        (0b100_0000, Way::Down) => match button {
            Some(Button::Left) => MouseKind::WheelUp,
            Some(Button::Middle) => MouseKind::WheelDown,
            Some(Button::Right) => MouseKind::WheelLeft,
            None => MouseKind::WheelRight,
        },
        _ => return None,
    };
    let bit = |mask: u32, modifier: Mods| if bits & mask == 0 { Mods::NONE } else { modifier };
    let mods = bit(4, Mods::SHIFT).with(bit(8, Mods::ALT)).with(bit(16, Mods::CTRL));
    let cell = |number: u32| u16::try_from(number.checked_sub(1)?).ok();
    Some(Input::Mouse(Mouse { kind, column: cell(column)?, row: cell(row)?, mods }))
}
