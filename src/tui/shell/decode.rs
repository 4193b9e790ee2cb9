//! The bytes of a terminal become input. Time comes as an argument, and the bytes may be cut
//! anywhere: the same bytes give the same input.
//!
//! Written here because no library decoder served when tried against the corpus in the tests:
//! termina 0.4 loses `modifyOtherKeys` and rxvt's keys, takes Alt-Up and unknown answers for typed
//! text, and keeps an unfinished paste or string for ever; termwiz 0.23 takes every answer of a
//! terminal and every kitty sequence for typed text, panics on a paste that is no UTF-8, and brings
//! 99 crates. crossterm's cannot be fed bytes.

mod burst;
mod csi;
mod kitty;
mod paste;
mod reply;
mod scan;

use std::time::Duration;

use crate::tui::input::Input;
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::shell::decode::burst::{Burst, control_key};
use crate::tui::shell::decode::scan::{Alt, Scanner, Token};

/// Decodes the bytes of one terminal. Whoever reads calls [`Decoder::feed`] with what came,
/// [`Decoder::dry`] when nothing more is there, and [`Decoder::tick`] at [`Decoder::deadline`].
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    scanner: Scanner,
    burst: Burst,
    tokens: Vec<Token>,
    fed_at: Duration,
}

impl Decoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes that came at `now`.
    pub fn feed(&mut self, bytes: &[u8], now: Duration, out: &mut Vec<Input>) {
        self.fed_at = now;
        for byte in bytes {
            self.scanner.byte(*byte, &mut self.tokens);
            self.drain(now, out);
        }
    }

    /// Takes notice that at `now` no more bytes are there: characters that came in one piece end.
    pub fn dry(&mut self, now: Duration, out: &mut Vec<Input>) {
        self.burst.dry(now, out);
    }

    /// When to call [`Decoder::tick`] if no bytes come before; never if nothing is open.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let wait = [self.scanner.wait(), self.burst.wait()].into_iter().flatten().min()?;
        Some(self.fed_at.saturating_add(wait))
    }

    /// Ends what has waited long enough at `now`.
    pub fn tick(&mut self, now: Duration, out: &mut Vec<Input>) {
        let silent = now.saturating_sub(self.fed_at);
        if self.burst.wait().is_some_and(|wait| silent >= wait) {
            self.burst.end(now, out);
        }
        if self.scanner.wait().is_some_and(|wait| silent >= wait) {
            self.scanner.give_up(&mut self.tokens);
            self.drain(now, out);
            self.burst.dry(now, out);
        }
    }

    fn drain(&mut self, now: Duration, out: &mut Vec<Input>) {
        for token in self.tokens.drain(..) {
            if let Token::Char { c, alt: Alt::Up } = token
                && Burst::takes(c)
            {
                self.burst.push(c, now, out);
                continue;
            }
            self.burst.end(now, out);
            tell(token, out);
        }
    }
}

fn tell(token: Token, out: &mut Vec<Input>) {
    match token {
        Token::Char { c, alt } if c.is_control() => {
            out.push(Input::Key(control_key(c, mods(alt))));
        }
        Token::Char { c, alt } => {
            out.push(Input::Key(Key::new(KeyCode::Char(c), mods(alt))));
        }
        Token::Csi { body, alt } => out.extend(csi::control(&body, mods(alt))),
        Token::Ss3 { body, alt } => out.extend(csi::single_shift(&body, mods(alt))),
        Token::OldMouse(report) => out.extend(csi::old_mouse(report)),
        Token::Osc(body) => out.extend(reply::osc(&body)),
        Token::Paste(body) => {
            let (text, reports) = paste::unwrap(&body);
            if !text.is_empty() {
                out.push(Input::Paste(text));
            }
            out.extend(reports);
        }
    }
}

fn mods(alt: Alt) -> Mods {
    match alt {
        Alt::Up => Mods::NONE,
        Alt::Held => Mods::ALT,
    }
}

#[cfg(test)]
mod tests;
