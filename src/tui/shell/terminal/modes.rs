//! The sequences that switch a terminal between the shell's screen and ours, byte for byte.

use std::fmt::{self, Display};

use crossterm::Command;
use crossterm::cursor::{SetCursorStyle, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::ResetColor;
use crossterm::terminal::{EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen};

use crate::tui::shell::terminal::Options;

/// Buttons, the wheel, and moving with a button held, in the encoding without a limit. Not
/// crossterm's, which also asks for every move without a button and would never let us rest.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";

const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l";

/// Which keyboard flags are in force, and what colour text is and stands on. BEL as the end, since
/// old consoles know no other.
const QUESTIONS: &str = "\x1b[?u\x1b]10;?\x07\x1b]11;?\x07";

/// Primary device attributes. Every terminal answers, and answers in order, so with this answer
/// all that was sent before has been dealt with.
pub(super) const ATTRIBUTES: &str = "\x1b[c";

/// More than any program pushes.
const FORGET_KEYBOARD_FLAGS: &str = "\x1b[<16u\x1b[=0u";

/// Ends a string sequence in which a killed program was cut off.
const END_STRING: &str = "\x1b\\";

/// Arrow keys and keypad as they are by default, lines that wrap.
const DEFAULT_MODES: &str = "\x1b[?1l\x1b>\x1b[?7h";

struct Ansi<C>(C);

impl<C: Command> Display for Ansi<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_ansi(f)
    }
}

/// To our screen.
pub(super) fn enter(Options { mouse, ask }: Options) -> String {
    let (screen, paste) = (Ansi(EnterAlternateScreen), Ansi(EnableBracketedPaste));
    let focus = Ansi(EnableFocusChange);
    let mouse = if mouse { MOUSE_ON } else { "" };
    let (questions, attributes) = if ask { (QUESTIONS, ATTRIBUTES) } else { ("", "") };
    format!("{screen}{paste}{focus}{mouse}{questions}{attributes}")
}

/// Keys that the older encoding cannot tell apart become apart, and come with the character that
/// Shift makes and the one of a Latin layout. Releases are not asked for.
pub(super) fn keyboard_on() -> String {
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
        | KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS;
    Ansi(PushKeyboardEnhancementFlags(flags)).to_string()
}

/// What was switched on besides the screen.
#[derive(Clone, Copy)]
pub(super) struct Switched {
    pub(super) mouse: bool,
    pub(super) keyboard: bool,
}

/// Back to the screen of the shell. The keyboard flags belong to our screen, so they go first.
pub(super) fn leave(Switched { mouse, keyboard }: Switched) -> String {
    let keyboard =
        if keyboard { Ansi(PopKeyboardEnhancementFlags).to_string() } else { String::new() };
    let mouse = if mouse { MOUSE_OFF } else { "" };
    format!("{}{keyboard}{mouse}{}", Ansi(EndSynchronizedUpdate), to_shell())
}

/// Back to the screen of the shell from whatever a killed program left behind.
pub(super) fn reset() -> String {
    let sync = Ansi(EndSynchronizedUpdate);
    let style = Ansi(SetCursorStyle::DefaultUserShape);
    let flags = FORGET_KEYBOARD_FLAGS;
    let shell = to_shell();
    format!("{END_STRING}{sync}{flags}{MOUSE_OFF}{DEFAULT_MODES}{style}{shell}{flags}")
}

fn to_shell() -> String {
    let (focus, paste) = (Ansi(DisableFocusChange), Ansi(DisableBracketedPaste));
    let (colors, cursor, screen) = (Ansi(ResetColor), Ansi(Show), Ansi(LeaveAlternateScreen));
    format!("{focus}{paste}{colors}{cursor}{screen}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: &str = "\x1b[?1004l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

    #[test]
    fn entering_asks_only_what_it_may_ask() {
        let plain = "\x1b[?1049h\x1b[?2004h\x1b[?1004h";
        assert_eq!(enter(Options { mouse: false, ask: false }), plain);
        assert_eq!(
            enter(Options { mouse: true, ask: true }),
            format!(
                "{plain}\x1b[?1000h\x1b[?1002h\x1b[?1006h\
                 \x1b[?u\x1b]10;?\x07\x1b]11;?\x07\x1b[c"
            )
        );
    }

    #[test]
    fn keyboard_flags_are_pushed_once_and_popped_before_the_screen_is_left() {
        assert_eq!(keyboard_on(), "\x1b[>5u");
        assert_eq!(
            leave(Switched { mouse: false, keyboard: true }),
            format!("\x1b[?2026l\x1b[<1u{LEFT}")
        );
    }

    #[test]
    fn leaving_undoes_what_was_switched_on() {
        assert_eq!(leave(Switched { mouse: false, keyboard: false }), format!("\x1b[?2026l{LEFT}"));
        let mouse = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l";
        assert_eq!(
            leave(Switched { mouse: true, keyboard: false }),
            format!("\x1b[?2026l{mouse}{LEFT}")
        );
    }

    #[test]
    fn a_reset_undoes_everything_on_both_screens() {
        let flags = "\x1b[<16u\x1b[=0u";
        let modes = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1l\x1b>\x1b[?7h";
        assert_eq!(reset(), format!("\x1b\\\x1b[?2026l{flags}{modes}\x1b[0 q{LEFT}{flags}"));
    }

    fn check_like_new(bytes: &str) {
        let mut terminal = vt100::Parser::default();
        terminal.process(b"$ turnstile");
        terminal.process(bytes.as_bytes());
        let mut untouched = vt100::Parser::default();
        untouched.process(b"$ turnstile");
        let (screen, like_new) = (terminal.screen(), untouched.screen());
        assert_eq!(screen.state_formatted(), like_new.state_formatted());
        assert!(!screen.alternate_screen() && !screen.bracketed_paste());
    }

    #[test]
    fn a_terminal_that_was_left_is_as_it_was() {
        check_like_new(&format!(
            "{}\x1b[31mtext{}",
            enter(Options { mouse: true, ask: true }),
            leave(Switched { mouse: true, keyboard: true })
        ));
    }

    #[test]
    fn a_terminal_of_a_killed_program_is_as_it_was_after_a_reset() {
        let killed = "\x1b[?1h\x1b=\x1b[?25l\x1b[?2026h\x1b[3;5Htext\x1b]52;c;aGk";
        check_like_new(&format!(
            "{}{killed}{}",
            enter(Options { mouse: true, ask: false }),
            reset()
        ));
    }
}
