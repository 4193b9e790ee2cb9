//! Keys as the program knows them: one canonical form per key, its spelling, and sequences of keys.
//! Names no terminal crate; bytes become keys in the shell.

use std::fmt;
use std::str::FromStr;

/// Which key, without its modifiers. Shift-Tab is [`KeyCode::Tab`] with [`Mods::SHIFT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyCode {
    /// A character; the space bar is `' '`.
    Char(char),
    /// Enter or Return, of the keypad too.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// The key that deletes backwards.
    Backspace,
    /// The key that deletes forwards.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key, 1 to [`FUNCTION_KEY_MAX`].
    F(u8),
}

/// The highest function key that any terminal protocol can report.
pub const FUNCTION_KEY_MAX: u8 = 35;

/// The keys that have a name, with the name the program shows.
const NAMED: [(KeyCode, &str); 15] = [
    (KeyCode::Char(' '), "Space"),
    (KeyCode::Enter, "Enter"),
    (KeyCode::Esc, "Esc"),
    (KeyCode::Tab, "Tab"),
    (KeyCode::Backspace, "Backspace"),
    (KeyCode::Delete, "Delete"),
    (KeyCode::Insert, "Insert"),
    (KeyCode::Up, "Up"),
    (KeyCode::Down, "Down"),
    (KeyCode::Left, "Left"),
    (KeyCode::Right, "Right"),
    (KeyCode::Home, "Home"),
    (KeyCode::End, "End"),
    (KeyCode::PageUp, "PgUp"),
    (KeyCode::PageDown, "PgDn"),
];

/// A set of modifier keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mods(u8);

impl Mods {
    /// No modifier.
    pub const NONE: Self = Self(0);
    /// Control.
    pub const CTRL: Self = Self(1);
    /// Alt, Option or Meta.
    pub const ALT: Self = Self(2);
    /// Shift.
    pub const SHIFT: Self = Self(4);
    /// Super, Command or the Windows key.
    pub const SUPER: Self = Self(8);

    /// The modifiers in the order in which they are written.
    const NAMED: [(Self, &str); 4] = [
        (Self::CTRL, "Ctrl-"),
        (Self::ALT, "Alt-"),
        (Self::SHIFT, "Shift-"),
        (Self::SUPER, "Super-"),
    ];

    /// These modifiers and `more`.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// These modifiers without `less`.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Whether all of `wanted` are held.
    #[must_use]
    pub const fn has(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// A key with its modifiers, in canonical form: keys that some terminal cannot tell apart are one
/// key, so that a binding means the same everywhere.
///
/// - A character without other modifiers carries Shift in itself: `A`, `?`.
/// - With Ctrl, Alt or Super a letter is lower case and Shift is a modifier: `Alt-Shift-B`.
/// - `Ctrl-I`, `Ctrl-M`, `Ctrl-[` and `Ctrl-H` are Tab, Enter, Esc and Backspace; `Ctrl-_` is
///   `Ctrl-/` and `Ctrl-@` is `Ctrl-Space`.
/// - Backspace knows no Shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    code: KeyCode,
    mods: Mods,
}

impl Key {
    /// The canonical form of a key as some terminal reported it.
    #[must_use]
    pub fn new(code: KeyCode, mods: Mods) -> Self {
        match code {
            KeyCode::Char(c) => Self::of_char(c, mods),
            KeyCode::Backspace => Self { code, mods: mods.without(Mods::SHIFT) },
            _ => Self { code, mods },
        }
    }

    /// A key without modifiers.
    #[must_use]
    pub fn plain(code: KeyCode) -> Self {
        Self::new(code, Mods::NONE)
    }

    /// Which key.
    #[must_use]
    pub fn code(self) -> KeyCode {
        self.code
    }

    /// The modifiers that the form keeps.
    #[must_use]
    pub fn mods(self) -> Mods {
        self.mods
    }

    /// The character that this key types into a text, if it types one.
    #[must_use]
    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if self.mods == Mods::NONE => Some(c),
            _ => None,
        }
    }

    fn of_char(c: char, mods: Mods) -> Self {
        if mods.without(Mods::SHIFT) == Mods::NONE {
            let c = if mods.has(Mods::SHIFT) { upper(c) } else { c };
            return Self { code: KeyCode::Char(c), mods: Mods::NONE };
        }
        let lowered = lower(c);
        let shift = lowered != c && !mods.has(Mods::CTRL);
        let mods = if shift { mods.with(Mods::SHIFT) } else { mods };
        let alone = mods.without(Mods::ALT) == Mods::CTRL;
        match lowered {
            'i' if alone => Self::new(KeyCode::Tab, mods.without(Mods::CTRL)),
            'm' if alone => Self::new(KeyCode::Enter, mods.without(Mods::CTRL)),
            '[' if alone => Self::new(KeyCode::Esc, mods.without(Mods::CTRL)),
            'h' if alone => Self::new(KeyCode::Backspace, mods.without(Mods::CTRL)),
            '_' if alone => Self { code: KeyCode::Char('/'), mods },
            '@' if alone => Self { code: KeyCode::Char(' '), mods },
            c => Self { code: KeyCode::Char(c), mods },
        }
    }
}

/// The capital of a letter, where one capital and one small letter belong together.
fn upper(c: char) -> char {
    only(c.to_uppercase()).filter(|big| only(big.to_lowercase()) == Some(c)).unwrap_or(c)
}

/// The small letter of a capital, under the same condition.
fn lower(c: char) -> char {
    only(c.to_lowercase()).filter(|small| only(small.to_uppercase()) == Some(c)).unwrap_or(c)
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next();
    if chars.next().is_none() { first } else { None }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in Mods::NAMED {
            if self.mods.has(modifier) {
                f.write_str(name)?;
            }
        }
        if let Some((_, name)) = NAMED.iter().find(|(code, _)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(c) if self.mods == Mods::NONE => write!(f, "{c}"),
            KeyCode::Char(c) => write!(f, "{}", upper(c)),
            KeyCode::F(number) => write!(f, "F{number}"),
            code => write!(f, "{code:?}"),
        }
    }
}

/// A text that spells no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedKey {
    /// There is no key of this name.
    #[error("no key is called {0:?}; keys look like x, Ctrl-X, Alt-Enter, Shift-Tab, PgUp, F1")]
    Name(String),
    /// Nothing is written at all.
    #[error("no key is named")]
    Empty,
    /// A longer sequence than anybody would type.
    #[error("a sequence of {0} keys; at most {KEYS_MAX} are taken")]
    TooLong(usize),
}

impl FromStr for Key {
    type Err = MalformedKey;

    /// Names are read in any case; a letter after a modifier too (`ctrl-x` is `Ctrl-X`), alone it
    /// is what it is.
    fn from_str(text: &str) -> Result<Self, MalformedKey> {
        let mut mods = Mods::NONE;
        let mut rest = text;
        while let Some((modifier, after)) = strip_modifier(rest) {
            mods = mods.with(modifier);
            rest = after;
        }
        if let Some(c) = only(rest.chars()).filter(|c| !c.is_control() && *c != ' ') {
            let c = if mods == Mods::NONE { c } else { lower(c) };
            return Ok(Self::new(KeyCode::Char(c), mods));
        }
        let named = NAMED.iter().find(|(_, name)| name.eq_ignore_ascii_case(rest));
        let code = named.map(|(code, _)| *code).or_else(|| function_key(rest));
        let code = code.ok_or_else(|| MalformedKey::Name(text.to_owned()))?;
        Ok(Self::new(code, mods))
    }
}

fn strip_modifier(text: &str) -> Option<(Mods, &str)> {
    Mods::NAMED.iter().find_map(|(modifier, name)| {
        let (head, rest) = text.split_at_checked(name.len())?;
        (head.eq_ignore_ascii_case(name) && !rest.is_empty()).then_some((*modifier, rest))
    })
}

fn function_key(text: &str) -> Option<KeyCode> {
    let number = text.strip_prefix(['F', 'f'])?.parse().ok()?;
    (1..=FUNCTION_KEY_MAX).contains(&number).then_some(KeyCode::F(number))
}

/// Nobody remembers longer sequences.
pub const KEYS_MAX: usize = 4;

/// One to [`KEYS_MAX`] keys that are pressed one after the other: `Ctrl-X Ctrl-E`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeySequence(Vec<Key>);

impl KeySequence {
    /// The keys, in the order in which they are pressed.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.0
    }

    /// Whether it begins with `keys`, or is just these.
    #[must_use]
    pub fn starts_with(&self, keys: &[Key]) -> bool {
        self.0.starts_with(keys)
    }
}

impl fmt::Display for KeySequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, key) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{key}")?;
        }
        Ok(())
    }
}

impl FromStr for KeySequence {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, MalformedKey> {
        let keys = text.split(' ').filter(|word| !word.is_empty()).map(str::parse);
        let keys = keys.collect::<Result<Vec<Key>, _>>()?;
        match keys.len() {
            0 => Err(MalformedKey::Empty),
            1..=KEYS_MAX => Ok(Self(keys)),
            count => Err(MalformedKey::TooLong(count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_spelling(text: &str, code: KeyCode, mods: Mods) {
        let key = Key { code, mods };
        assert_eq!(text.parse(), Ok(key), "{text}");
        assert_eq!(key.to_string(), text);
    }

    fn check_one_key(code: KeyCode, mods: Mods, spelling: &str) {
        assert_eq!(Key::new(code, mods).to_string(), spelling, "{code:?} {mods:?}");
    }

    const CTRL_ALT: Mods = Mods::CTRL.with(Mods::ALT);
    const ALT_SHIFT: Mods = Mods::ALT.with(Mods::SHIFT);

    #[test]
    fn keys_are_spelled_as_the_design_spells_them() {
        check_spelling("Ctrl-X", KeyCode::Char('x'), Mods::CTRL);
        check_spelling("Alt-Enter", KeyCode::Enter, Mods::ALT);
        check_spelling("Shift-Tab", KeyCode::Tab, Mods::SHIFT);
        check_spelling("PgUp", KeyCode::PageUp, Mods::NONE);
        check_spelling("F12", KeyCode::F(12), Mods::NONE);
        check_spelling("?", KeyCode::Char('?'), Mods::NONE);
        check_spelling("[", KeyCode::Char('['), Mods::NONE);
        check_spelling("G", KeyCode::Char('G'), Mods::NONE);
        check_spelling("Space", KeyCode::Char(' '), Mods::NONE);
        check_spelling("-", KeyCode::Char('-'), Mods::NONE);
        check_spelling("Ctrl--", KeyCode::Char('-'), Mods::CTRL);
        check_spelling("Ctrl-/", KeyCode::Char('/'), Mods::CTRL);
        check_spelling("Ctrl-Alt-Left", KeyCode::Left, CTRL_ALT);
        check_spelling("Alt-Shift-B", KeyCode::Char('b'), ALT_SHIFT);
        check_spelling("Ctrl-Alt-Б", KeyCode::Char('б'), CTRL_ALT);
    }

    #[test]
    fn names_are_read_in_any_case() {
        for text in ["ctrl-x", "CTRL-X", "Ctrl-x"] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), "Ctrl-X");
        }
        assert_eq!("pgdn".parse(), Ok(Key::plain(KeyCode::PageDown)));
    }

    #[test]
    fn keys_that_some_terminal_cannot_tell_apart_are_one() {
        check_one_key(KeyCode::Char('i'), Mods::CTRL, "Tab");
        check_one_key(KeyCode::Char('m'), Mods::CTRL, "Enter");
        check_one_key(KeyCode::Char('['), Mods::CTRL, "Esc");
        check_one_key(KeyCode::Char('h'), CTRL_ALT, "Alt-Backspace");
        check_one_key(KeyCode::Char('_'), Mods::CTRL, "Ctrl-/");
        check_one_key(KeyCode::Char('@'), Mods::CTRL, "Ctrl-Space");
        check_one_key(KeyCode::Char('X'), Mods::CTRL, "Ctrl-X");
        check_one_key(KeyCode::Char('x'), Mods::CTRL.with(Mods::SHIFT), "Ctrl-Shift-X");
        check_one_key(KeyCode::Char('B'), Mods::ALT, "Alt-Shift-B");
        check_one_key(KeyCode::Char('a'), Mods::SHIFT, "A");
        check_one_key(KeyCode::Char('?'), Mods::SHIFT, "?");
        check_one_key(KeyCode::Backspace, Mods::SHIFT, "Backspace");
    }

    #[test]
    fn only_characters_without_modifiers_are_text() {
        assert_eq!(Key::plain(KeyCode::Char('é')).text(), Some('é'));
        assert_eq!(Key::new(KeyCode::Char('e'), Mods::SHIFT).text(), Some('E'));
        assert_eq!(Key::new(KeyCode::Char('e'), Mods::ALT).text(), None);
        assert_eq!(Key::plain(KeyCode::Enter).text(), None);
    }

    #[test]
    fn what_is_no_key_is_refused_by_name() {
        for text in ["", "Ctrl-", "Hyper-X", "F0", "F36", "Return", "xy", "\u{1b}"] {
            let refused = text.parse::<Key>();
            assert_eq!(refused, Err(MalformedKey::Name(text.to_owned())), "{text:?}");
        }
        assert_eq!("  ".parse::<KeySequence>(), Err(MalformedKey::Empty));
        assert_eq!("a b c d e".parse::<KeySequence>(), Err(MalformedKey::TooLong(5)));
    }

    fn any_key() -> impl Strategy<Value = Key> {
        let code = prop_oneof![
            prop::sample::select(NAMED.map(|(code, _)| code).to_vec()),
            (1..=FUNCTION_KEY_MAX).prop_map(KeyCode::F),
            any::<char>().prop_filter("typed", |c| !c.is_control()).prop_map(KeyCode::Char),
            (b' '..=b'~').prop_map(|c| KeyCode::Char(char::from(c))),
        ];
        (code, 0..16u8).prop_map(|(code, mods)| Key::new(code, Mods(mods)))
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_its_own(key in any_key()) {
            prop_assert_eq!(Key::new(key.code, key.mods), key);
        }

        #[test]
        fn a_sequence_is_read_back_as_it_was_written(
            keys in prop::collection::vec(any_key(), 1..=KEYS_MAX)
        ) {
            let sequence = KeySequence(keys);
            prop_assert_eq!(sequence.to_string().parse(), Ok(sequence));
        }
    }
}
