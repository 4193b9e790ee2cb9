//! Where characters and escape sequences begin and end in the bytes of a terminal. Knows the
//! grammar only; what a sequence means is decided elsewhere.

use std::mem;
use std::time::Duration;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// The end of a bracketed paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// Longer than any sequence that a terminal sends; what is beyond it is not kept.
const SEQUENCE_BYTES_MAX: usize = 64;

/// Longer than any answer to a question of ours; what is beyond it is not kept.
const STRING_BYTES_MAX: usize = 1024;

/// A paste that is longer is told in several parts, so that a missing end cannot fill the memory.
const PASTE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long an ESC may wait for what belongs to it before it is the key. Longer than the bytes of
/// one sequence are apart on a slow line, shorter than a person notices.
const ESC_WAIT: Duration = Duration::from_millis(50);

/// How long the rest of a sequence or character may take. Nobody types the beginning of one, so it
/// can be long: what comes later would be taken for typed text.
const SEQUENCE_WAIT: Duration = Duration::from_secs(1);

/// How long a paste may be silent. A line may stall in the middle of one; an end marker that never
/// comes must not swallow what is typed for longer than a person waits.
const PASTE_WAIT: Duration = Duration::from_secs(1);

/// Whether ESC came before a character or sequence: the terminal's way to tell of Alt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alt {
    /// It did not.
    Up,
    /// It did.
    Held,
}

/// What came last of a string sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// A byte of its own.
    Byte,
    /// ESC, with which its end may begin.
    Esc,
}

/// One character or sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A character, or a control character of seven bits.
    Char { c: char, alt: Alt },
    /// A control sequence without its `ESC [`, with its final byte.
    Csi { body: Vec<u8>, alt: Alt },
    /// A single shift without its `ESC O`, with its final byte.
    Ss3 { body: Vec<u8>, alt: Alt },
    /// The three bytes after `ESC [ M`.
    OldMouse([u8; 3]),
    /// An operating system command without its `ESC ]` and its end.
    Osc(Vec<u8>),
    /// All that stood between the marks of a bracketed paste.
    Paste(Vec<u8>),
}

/// What has begun and not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Char {
        bytes: Vec<u8>,
        len: usize,
        alt: Alt,
    },
    /// ESC; with Alt if two of them came.
    Escape {
        alt: Alt,
    },
    Csi {
        body: Vec<u8>,
        alt: Alt,
    },
    /// `ESC [ [`, a function key of the Linux console.
    Console {
        alt: Alt,
    },
    OldMouse(Vec<u8>),
    Ss3 {
        body: Vec<u8>,
        alt: Alt,
    },
    /// A string sequence.
    Text {
        kind: StringKind,
        body: Vec<u8>,
        last: Last,
    },
    Paste(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringKind {
    Osc,
    Dcs,
    Apc,
}

impl StringKind {
    fn introducer(self) -> char {
        match self {
            Self::Osc => ']',
            Self::Dcs => 'P',
            Self::Apc => '_',
        }
    }

    /// Whether an answer of a terminal can begin with `byte`; else the introducer was a key.
    fn begins_with(self, byte: u8) -> bool {
        match self {
            Self::Osc => byte.is_ascii_digit(),
            Self::Dcs => byte.is_ascii_digit() || b">!+$|?".contains(&byte),
            Self::Apc => byte == b'G',
        }
    }
}

/// Finds tokens in bytes that may be cut anywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    state: State,
}

impl Scanner {
    /// Takes the next byte.
    pub(super) fn byte(&mut self, byte: u8, out: &mut Vec<Token>) {
        self.state = match mem::take(&mut self.state) {
            State::Ground => ground(byte, Alt::Up, out),
            State::Char { bytes, len, alt } => character(bytes, len, alt, byte, out),
            State::Escape { alt } => escape(alt, byte, out),
            State::Csi { body, alt } => csi(body, alt, byte, out),
            State::Console { alt } => console(alt, byte, out),
            State::OldMouse(bytes) => old_mouse(bytes, byte, out),
            State::Ss3 { body, alt } => ss3(body, alt, byte, out),
            State::Text { kind, body, last } => string(kind, body, last, byte, out),
            State::Paste(body) => paste(body, byte, out),
        };
    }

    /// How long the bytes that must follow may take; nothing if none must.
    pub(super) fn wait(&self) -> Option<Duration> {
        match &self.state {
            State::Ground => None,
            State::Escape { .. } => Some(ESC_WAIT),
            State::Csi { body, .. } | State::Ss3 { body, .. } | State::Text { body, .. }
                if body.is_empty() =>
            {
                Some(ESC_WAIT)
            }
            State::Paste(_) => Some(PASTE_WAIT),
            State::Char { .. }
            | State::Csi { .. }
            | State::Console { .. }
            | State::OldMouse(_)
            | State::Ss3 { .. }
            | State::Text { .. } => Some(SEQUENCE_WAIT),
        }
    }

    /// Nothing more came in time: what has begun is a key, or half of something and dropped.
    pub(super) fn give_up(&mut self, out: &mut Vec<Token>) {
        match mem::take(&mut self.state) {
            State::Escape { alt } => {
                let before = (alt == Alt::Held).then(|| key(char::from(ESC), Alt::Up));
                out.extend(before);
                out.push(key(char::from(ESC), Alt::Up));
            }
            State::Csi { body, alt } if body.is_empty() => introducer('[', alt, out),
            State::Ss3 { body, alt } if body.is_empty() => introducer('O', alt, out),
            State::Text { kind, body, .. } if body.is_empty() => {
                introducer(kind.introducer(), Alt::Up, out);
            }
            State::Paste(body) => out.push(Token::Paste(body)),
            State::Ground
            | State::Char { .. }
            | State::Csi { .. }
            | State::Console { .. }
            | State::OldMouse(_)
            | State::Ss3 { .. }
            | State::Text { .. } => {}
        }
    }
}

fn key(c: char, alt: Alt) -> Token {
    Token::Char { c, alt }
}

/// What looked like the beginning of a sequence was Alt and a key, after an Esc if there were two.
fn introducer(c: char, alt: Alt, out: &mut Vec<Token>) {
    if alt == Alt::Held {
        out.push(key(char::from(ESC), Alt::Up));
    }
    out.push(key(c, Alt::Held));
}

fn ground(byte: u8, alt: Alt, out: &mut Vec<Token>) -> State {
    let len = match byte {
        ESC => return State::Escape { alt: Alt::Up },
        0..=0x7f => {
            out.push(key(char::from(byte), alt));
            return State::Ground;
        }
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return State::Ground,
    };
    State::Char { bytes: vec![byte], len, alt }
}

fn character(mut bytes: Vec<u8>, len: usize, alt: Alt, byte: u8, out: &mut Vec<Token>) -> State {
    if byte & 0xc0 != 0x80 {
        return ground(byte, Alt::Up, out);
    }
    bytes.push(byte);
    if bytes.len() < len {
        return State::Char { bytes, len, alt };
    }
    let chars = str::from_utf8(&bytes).unwrap_or_default().chars();
    out.extend(chars.filter(|c| !c.is_control()).map(|c| key(c, alt)));
    State::Ground
}

fn escape(alt: Alt, byte: u8, out: &mut Vec<Token>) -> State {
    let string = |kind| State::Text { kind, body: Vec::new(), last: Last::Byte };
    match byte {
        b'[' => return State::Csi { body: Vec::new(), alt },
        b'O' => return State::Ss3 { body: Vec::new(), alt },
        ESC if alt == Alt::Up => return State::Escape { alt: Alt::Held },
        _ => {}
    }
    if alt == Alt::Held {
        out.push(key(char::from(ESC), Alt::Up));
    }
    match byte {
        ESC => State::Escape { alt: Alt::Held },
        b']' => string(StringKind::Osc),
        b'P' => string(StringKind::Dcs),
        b'_' => string(StringKind::Apc),
        _ => ground(byte, Alt::Held, out),
    }
}

fn csi(mut body: Vec<u8>, alt: Alt, byte: u8, out: &mut Vec<Token>) -> State {
    let last = match byte {
        b'[' if body.is_empty() => return State::Console { alt },
        b'M' if body.is_empty() => return State::OldMouse(Vec::new()),
        // rxvt ends Shift and a key with a byte that elsewhere only comes before the last one.
        b'$' => !body.is_empty() && body.iter().all(u8::is_ascii_digit),
        0x20..=0x3f => false,
        0x40..=0x7e => true,
        _ => {
            if body.is_empty() {
                introducer('[', alt, out);
            }
            return ground(byte, Alt::Up, out);
        }
    };
    if body.len() < SEQUENCE_BYTES_MAX {
        body.push(byte);
    } else if last {
        return State::Ground;
    }
    match (last, body.as_slice()) {
        (false, _) => State::Csi { body, alt },
        (true, b"200~") => State::Paste(Vec::new()),
        (true, _) => {
            out.push(Token::Csi { body, alt });
            State::Ground
        }
    }
}

fn console(alt: Alt, byte: u8, out: &mut Vec<Token>) -> State {
    if byte.is_ascii_uppercase() {
        out.push(Token::Csi { body: vec![b'[', byte], alt });
        return State::Ground;
    }
    ground(byte, Alt::Up, out)
}

fn old_mouse(mut bytes: Vec<u8>, byte: u8, out: &mut Vec<Token>) -> State {
    bytes.push(byte);
    match <[u8; 3]>::try_from(bytes.as_slice()) {
        Ok(report) => out.push(Token::OldMouse(report)),
        Err(_) => return State::OldMouse(bytes),
    }
    State::Ground
}

fn ss3(mut body: Vec<u8>, alt: Alt, byte: u8, out: &mut Vec<Token>) -> State {
    match byte {
        b'0'..=b'9' | b';' if body.len() < SEQUENCE_BYTES_MAX => {
            body.push(byte);
            State::Ss3 { body, alt }
        }
        0x21..=0x7e => {
            body.push(byte);
            out.push(Token::Ss3 { body, alt });
            State::Ground
        }
        _ => {
            if body.is_empty() {
                introducer('O', alt, out);
            }
            ground(byte, Alt::Up, out)
        }
    }
}

fn string(
    kind: StringKind,
    mut body: Vec<u8>,
    last: Last,
    byte: u8,
    out: &mut Vec<Token>,
) -> State {
    if body.is_empty() && !kind.begins_with(byte) {
        introducer(kind.introducer(), Alt::Up, out);
        return ground(byte, Alt::Up, out);
    }
    let ended = match (last, byte) {
        (Last::Esc, b'\\') | (Last::Byte, BEL) => true,
        (Last::Esc, _) => return escape(Alt::Up, byte, out),
        (Last::Byte, ESC) => return State::Text { kind, body, last: Last::Esc },
        (Last::Byte, 0..=0x1f) => return ground(byte, Alt::Up, out),
        (Last::Byte, _) => false,
    };
    if ended {
        if kind == StringKind::Osc {
            out.push(Token::Osc(body));
        }
        return State::Ground;
    }
    if body.len() < STRING_BYTES_MAX {
        body.push(byte);
    }
    State::Text { kind, body, last: Last::Byte }
}

fn paste(mut body: Vec<u8>, byte: u8, out: &mut Vec<Token>) -> State {
    let begins_a_char = byte & 0xc0 != 0x80;
    if body.len() >= PASTE_BYTES_MAX && begins_a_char && !ends_inside_of_the_mark(&body) {
        out.push(Token::Paste(mem::take(&mut body)));
    }
    body.push(byte);
    if body.ends_with(PASTE_END) {
        body.truncate(body.len() - PASTE_END.len());
        out.push(Token::Paste(body));
        return State::Ground;
    }
    State::Paste(body)
}

fn ends_inside_of_the_mark(body: &[u8]) -> bool {
    (1..PASTE_END.len()).any(|len| PASTE_END.get(..len).is_some_and(|part| body.ends_with(part)))
}
