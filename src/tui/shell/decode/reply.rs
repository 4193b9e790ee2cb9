//! Answers of a terminal that come as operating system commands: its colours.

use crate::tui::input::{Input, Reply, Rgb};

/// The answer in this command, such as `11;rgb:1e1e/1e1e/2e2e`.
pub(super) fn osc(body: &[u8]) -> Option<Input> {
    let (number, value) = str::from_utf8(body).ok()?.split_once(';')?;
    let reply = match number {
        "10" => Reply::Foreground,
        "11" => Reply::Background,
        _ => return None,
    };
    Some(Input::Reply(reply(color(value)?)))
}

/// A colour as X11 writes it: `rgb:` and three numbers of one to four hexadecimal digits. `rgba:`
/// has a fourth one that says nothing about how bright it is.
fn color(value: &str) -> Option<Rgb> {
    let (form, numbers) = value.split_once(':')?;
    let mut parts = numbers.split('/').map(part);
    let color = Rgb { red: parts.next()??, green: parts.next()??, blue: parts.next()?? };
    let known = match form {
        "rgb" => parts.next().is_none(),
        "rgba" => true,
        _ => false,
    };
    known.then_some(color)
}

fn part(digits: &str) -> Option<u8> {
    let max = match digits.len() {
        len @ 1..=4 => (1_u32 << (4 * len)) - 1,
        _ => return None,
    };
    let value = u32::from_str_radix(digits, 16).ok()?;
    u8::try_from((value * 255 + max / 2) / max).ok()
}
