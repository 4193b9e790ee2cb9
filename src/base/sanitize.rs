//! Hostile text made safe to draw: nothing that steers a terminal, reorders or hides text is left.
//! Model output, tool output, file names, titles and pasted text all go through here before they are
//! measured or drawn. What a cluster looks like and how wide it is, is `base::text`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::CharIndices;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most zero-width marks that may sit on one character; no script needs more, and a stack of
/// them would paint over the rows above and below.
pub const MARKS_MAX: usize = 8;
/// How far back a joiner looks for the emoji it joins; the longest family is shorter.
const CLUSTER_BYTES_MAX: usize = 64;
/// The only flags that Unicode recommends to spell with tag characters: England, Scotland, Wales.
const TAG_FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
/// The base of every flag that is spelled with tag characters.
const BLACK_FLAG: char = '\u{1F3F4}';
/// Ends a flag that is spelled with tag characters.
const TAG_END: char = '\u{E007F}';

/// What a text is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Somebody reads it: what is invisible and harmless is dropped, the rest is shown as a mark.
    Reading,
    /// Somebody decides by it: nothing is dropped, everything that cannot be seen is spelled out.
    Approval,
}

/// Makes a text safe for drawing. Line ends stay; they are the caller's.
#[must_use]
pub fn clean(text: &str, policy: Policy) -> Cow<'_, str> {
    match policy {
        Policy::Reading => for_reading(text),
        Policy::Approval => for_approval(text),
    }
}

/// For reading: harmless invisible characters are dropped, others become visible marks (`␛`,
/// `⟨U+202E⟩`). Joiners stay where they make one cluster, `\n` and `\t` stay for the layout.
#[must_use]
pub fn for_reading(text: &str) -> Cow<'_, str> {
    run(text, Way::Read)
}

/// As [`for_reading`], for places that have one row only (file names, status lines): line ends and
/// tabs become visible marks too.
#[must_use]
pub fn for_line(text: &str) -> Cow<'_, str> {
    run(text, Way::Line)
}

/// For titles, which are stored: whatever [`for_line`] would drop or mark is left out, and a tab is
/// a space.
#[must_use]
pub fn for_title(text: &str) -> Cow<'_, str> {
    run(text, Way::Title)
}

/// For decisions: everything that is invisible or looks like something else is spelled out, tabs,
/// spaces at line ends and uncommon spaces included; only `\n` stays.
#[must_use]
pub fn for_approval(text: &str) -> Cow<'_, str> {
    run(text, Way::Decide)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Line,
    Title,
    Decide,
}

/// What a character is, as far as safety goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Visible by itself, or a mark on a visible character.
    Plain,
    /// C0, DEL and C1.
    Control,
    /// Invisible; its absence changes nothing that a reader could see.
    Harmless,
    /// Invisible or reordering; a reader must know that it is there.
    Hidden,
    /// Zero-width joiner and non-joiner.
    Joiner,
    /// Asks for the text or emoji form of the character before it.
    Selector,
    /// Invisible copy of an ASCII character.
    Tag,
    /// Looks like a space, or like anything at all (private use).
    Lookalike,
}

fn kind(c: char) -> Kind {
    match u32::from(c) {
        0x20..=0x7E => Kind::Plain,
        0..=0x1F | 0x7F..=0x9F => Kind::Control,
        // Soft hyphen, grapheme joiner, order marks, Khmer and Mongolian format characters,
        // zero-width space, word joiner, invisible operators, byte order mark, variation selectors.
        0xAD
        | 0x34F
        | 0x61C
        | 0x17B4..=0x17B5
        | 0x180B..=0x180F
        | 0x200B
        | 0x200E..=0x200F
        | 0x2060..=0x2064
        | 0xFE00..=0xFE0D
        | 0xFEFF
        | 0xE0100..=0xE01EF => Kind::Harmless,
        0x200C..=0x200D => Kind::Joiner,
        0xFE0E..=0xFE0F => Kind::Selector,
        0xE0020..=0xE007F => Kind::Tag,
        // Fillers, separators, embeddings, overrides, isolates, deprecated format characters,
        // annotations, the format characters of hieroglyphs, shorthand and music, the rest of the
        // tags, codes that are no characters.
        0x115F..=0x1160
        | 0x2028..=0x202E
        | 0x2065..=0x206F
        | 0x3164
        | 0xFDD0..=0xFDEF
        | 0xFFA0
        | 0xFFF0..=0xFFFB
        | 0x13430..=0x1343F
        | 0x1BCA0..=0x1BCA3
        | 0x1D173..=0x1D17A
        | 0xE0000..=0xE0FFF => Kind::Hidden,
        code if code & 0xFFFE == 0xFFFE => Kind::Hidden,
        0xA0
        | 0x1680
        | 0x2000..=0x200A
        | 0x202F
        | 0x205F
        | 0x2800
        | 0x3000
        | 0xE000..=0xF8FF
        | 0xF0000..=0x0010_FFFD => Kind::Lookalike,
        _ => Kind::Plain,
    }
}

fn run(text: &str, way: Way) -> Cow<'_, str> {
    let Some(at) = first_suspect(text, way) else { return Cow::Borrowed(text) };
    let (safe, rest) = text.split_at(at);
    let mut cleaner = Cleaner { out: String::with_capacity(text.len() + 16), way, marks: 0 };
    cleaner.out.push_str(safe);
    cleaner.take(rest);
    if cleaner.out == text { Cow::Borrowed(text) } else { Cow::Owned(cleaner.out) }
}

/// Where the first character stands that needs a closer look; most text has none.
fn first_suspect(text: &str, way: Way) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|&byte| !is_safe_byte(byte, way))?;
        let c = text.get(at..)?.chars().next()?;
        let safe = !c.is_ascii()
            && (kind(c) == Kind::Plain || (kind(c) == Kind::Lookalike && way != Way::Decide))
            && c.width() != Some(0);
        if !safe {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

fn is_safe_byte(byte: u8, way: Way) -> bool {
    match byte {
        b'\n' => matches!(way, Way::Read | Way::Decide),
        b'\t' => way == Way::Read,
        b' ' => way != Way::Decide,
        _ => (0x21..=0x7E).contains(&byte),
    }
}

struct Cleaner {
    out: String,
    way: Way,
    /// Zero-width marks since the last character that has a width.
    marks: usize,
}

impl Cleaner {
    fn take(&mut self, text: &str) {
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let next = rest.peek().map(|&(_, next)| next);
            match kind(c) {
                Kind::Plain if c == ' ' && self.way == Way::Decide => self.spaces(&mut rest),
                Kind::Lookalike if self.way == Way::Decide => self.hidden(c),
                Kind::Plain | Kind::Lookalike => self.plain(c),
                Kind::Control => self.control(c, next),
                Kind::Hidden => self.hidden(c),
                Kind::Tag => self.tag(text.get(at..).unwrap_or_default(), &mut rest),
                Kind::Joiner if self.joins(c, next) => self.out.push(c),
                Kind::Selector if self.selects() => self.out.push(c),
                Kind::Harmless | Kind::Joiner | Kind::Selector => self.harmless(c),
            }
        }
    }

    fn plain(&mut self, c: char) {
        if c.width() == Some(0) {
            self.marks += 1;
            if self.marks > MARKS_MAX || (self.way == Way::Decide && !self.is_carried(c)) {
                return self.harmless(c);
            }
        } else {
            self.marks = 0;
        }
        self.out.push(c);
    }

    /// Whether what is written ends in a character that a mark, or a part of a syllable, joins.
    fn is_carried(&self, mark: char) -> bool {
        self.out.chars().next_back().is_some_and(|last| {
            !last.is_whitespace() && format!("{last}{mark}").graphemes(true).count() == 1
        })
    }

    /// A run of spaces; visible when nothing follows them on their line.
    fn spaces(&mut self, rest: &mut Peekable<CharIndices<'_>>) {
        let mut count = 1;
        while rest.next_if(|&(_, c)| c == ' ').is_some() {
            count += 1;
        }
        let last = rest.peek().is_none_or(|&(_, c)| c == '\n');
        self.out.extend(std::iter::repeat_n(if last { '␠' } else { ' ' }, count));
        self.marks = 0;
    }

    fn control(&mut self, c: char, next: Option<char>) {
        let kept = match c {
            '\n' => matches!(self.way, Way::Read | Way::Decide),
            '\t' => self.way == Way::Read,
            _ => false,
        };
        if kept {
            self.plain(c);
        } else if c == '\t' && self.way == Way::Title {
            self.plain(' ');
        } else if c == '\r' && next == Some('\n') {
            self.harmless(c);
        } else {
            self.hidden(c);
        }
    }

    fn harmless(&mut self, c: char) {
        if self.way == Way::Decide {
            self.hidden(c);
        }
    }

    fn hidden(&mut self, c: char) {
        if self.way == Way::Title {
            return;
        }
        self.marks = 0;
        let code = u32::from(c);
        let picture = match code {
            0..=0x1F => char::from_u32(0x2400 + code),
            0x7F => Some('␡'),
            _ => None,
        };
        match picture {
            Some(picture) => self.out.push(picture),
            // Writing to a string cannot fail.
            None => _ = write!(self.out, "⟨U+{code:04X}⟩"),
        }
    }

    /// Whether a joiner between what is written and `next` belongs to the spelling: it makes one
    /// emoji of two, or stands inside a word of a script whose letters join.
    fn joins(&self, joiner: char, next: Option<char>) -> bool {
        let Some(next) = next else { return false };
        if self.way == Way::Decide || kind(next) != Kind::Plain || next.width() == Some(0) {
            return false;
        }
        let mut start = self.out.len().saturating_sub(CLUSTER_BYTES_MAX);
        while !self.out.is_char_boundary(start) {
            start += 1;
        }
        let tail = self.out.get(start..).unwrap_or_default();
        let Some(last) = tail.chars().next_back() else { return false };
        if is_joining_script(last) && is_joining_script(next) {
            return true;
        }
        let Some(cluster) = tail.graphemes(true).next_back() else { return false };
        joiner == '\u{200D}' && format!("{cluster}{joiner}{next}").graphemes(true).count() == 1
    }

    /// Whether the character before a selector has both a text and an emoji form.
    fn selects(&self) -> bool {
        self.way != Way::Decide
            && self.out.chars().next_back().is_some_and(|base| {
                base.width() != Some(0) && format!("{base}\u{FE0F}").width() == 2
            })
    }

    fn tag(&mut self, text: &str, rest: &mut Peekable<CharIndices<'_>>) {
        let flag = self.out.ends_with(BLACK_FLAG)
            && self.way != Way::Decide
            && TAG_FLAGS.iter().any(|name| text.starts_with(&tagged(name)));
        if flag {
            self.out.extend(text.chars().take_while(|&c| kind(c) == Kind::Tag && c != TAG_END));
            self.out.push(TAG_END);
            while rest.next_if(|&(_, c)| kind(c) == Kind::Tag && c != TAG_END).is_some() {}
            rest.next_if(|&(_, c)| c == TAG_END);
        } else if let Some(c) = text.chars().next() {
            self.hidden(c);
        }
    }
}

/// Arabic and its neighbours, the scripts of India, Khmer, Mongolian.
fn is_joining_script(c: char) -> bool {
    kind(c) == Kind::Plain
        && matches!(u32::from(c), 0x600..=0x8FF | 0x900..=0xDFF | 0x1780..=0x17FF | 0x1800..=0x18AF)
}

fn tagged(name: &str) -> String {
    let tags = name.chars().filter_map(|c| char::from_u32(0xE0000 + u32::from(c)));
    tags.chain([TAG_END]).collect()
}

#[cfg(test)]
pub(crate) mod hostile {
    //! Texts that somebody could send to do harm, for the property tests of everything that draws.

    use proptest::prelude::*;

    /// Fragments that have broken programs of this kind.
    const FRAGMENTS: &[&str] = &[
        "\u{1b}[31m",
        "\u{1b}]0;title\u{7}",
        "\u{9b}5m",
        "\u{7f}",
        "\0",
        "\r\n",
        "\r",
        "\t",
        "\u{8}",
        "\u{202e}evil",
        "\u{2066}",
        "\u{200b}",
        "\u{200d}",
        "\u{200c}",
        "\u{feff}",
        "\u{fe0f}",
        "\u{e0041}\u{e0042}",
        "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "\u{1f3f4}\u{e0067}",
        "👨\u{200d}👩\u{200d}👧",
        "👍🏽",
        "❤\u{fe0f}",
        "🇩🇪",
        "🇩",
        "e\u{301}",
        "\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
        "日本語",
        "ｶﾞ",
        "\u{600}\u{600}\u{600}",
        "क्षत्रिय",
        "می\u{200c}خواهم",
        "\u{115f}",
        "\u{3164}",
        "\u{a0}",
        "\u{2028}",
        "\u{ffff}",
        "\u{e000}",
        "ﷺ",
        "　",
        "a",
        "word",
        " ",
        "  ",
        "\n",
        "\n\n",
    ];

    /// A text made of such fragments and of anything else.
    pub(crate) fn text() -> impl Strategy<Value = String> {
        let fragment = prop_oneof![
            4 => proptest::sample::select(FRAGMENTS).prop_map(str::to_owned),
            1 => "[ -~]{0,12}",
            1 => any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(fragment, 0..24).prop_map(|parts| parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_reading(text: &str, drawn: &str) {
        assert_eq!(for_reading(text), drawn, "{text:?}");
    }

    fn check_approval(text: &str, drawn: &str) {
        assert_eq!(for_approval(text), drawn, "{text:?}");
    }

    #[test]
    fn safe_text_is_not_copied() {
        for text in
            ["", "plain\ttext\n", "Ünïcödé 日本語 🎉", "cafe\u{301}", "👨\u{200d}👩\u{200d}👧"]
        {
            assert!(matches!(for_reading(text), Cow::Borrowed(_)), "{text:?}");
        }
        assert!(matches!(for_approval("cargo test -- --nocapture\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn controls_become_pictures_and_windows_line_ends_plain_ones() {
        check_reading("\u{1b}[31mred\u{7}", "␛[31mred␇");
        check_reading("a\r\nb\rc", "a\nb␍c");
        check_reading("\u{7f}\u{9b}", "␡⟨U+009B⟩");
    }

    #[test]
    fn reordering_is_shown_and_harmless_marks_are_dropped() {
        check_reading("safe\u{202e}txt.exe", "safe⟨U+202E⟩txt.exe");
        check_reading("so\u{ad}ft\u{200b}ly\u{feff}\u{200e}", "softly");
        check_reading("\u{e0041}", "⟨U+E0041⟩");
    }

    #[test]
    fn clusters_that_need_invisible_characters_stay_whole() {
        for text in [
            "👨\u{200d}👩\u{200d}👧",
            "🏳\u{fe0f}\u{200d}🌈",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        ] {
            check_reading(text, text);
        }
        check_reading("a\u{200d}b \u{fe0f}c\u{fe0f}", "ab c");
    }

    #[test]
    fn a_tower_of_marks_is_cut_down() {
        let tower = format!("z{}", "\u{301}".repeat(40));
        check_reading(&tower, &format!("z{}", "\u{301}".repeat(MARKS_MAX)));
    }

    #[test]
    fn for_a_decision_nothing_stays_hidden() {
        check_approval("rm\t-rf /  \nls", "rm␉-rf /␠␠\nls");
        check_approval("a\r\nb", "a␍\nb");
        check_approval("x\u{200b}y\u{a0}z\u{e000}", "x⟨U+200B⟩y⟨U+00A0⟩z⟨U+E000⟩");
        check_approval("👨\u{200d}👩❤\u{fe0f}", "👨⟨U+200D⟩👩❤⟨U+FE0F⟩");
        check_approval("\u{301}e\u{301}", "⟨U+0301⟩e\u{301}");
        check_approval("rm\u{1161} 한 \u{1112}\u{1161}", "rm⟨U+1161⟩ 한 \u{1112}\u{1161}");
    }

    #[test]
    fn one_row_places_get_one_row() {
        assert_eq!(for_line("a\nb\tc\r\n"), "a␊b␉c␊");
        assert_eq!(for_title("a\u{1b}[1m\u{202e}b\u{200b}"), "a[1mb");
    }

    /// Characters that no drawn text may hold, whatever stands around them.
    fn is_forbidden(c: char) -> bool {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(kind(c), Kind::Harmless | Kind::Hidden)
    }

    proptest! {
        #[test]
        fn cleaned_text_is_safe_and_stays_as_it_is(text in hostile::text()) {
            for way in [Way::Read, Way::Line, Way::Title, Way::Decide] {
                let once = run(&text, way);
                prop_assert!(!once.chars().any(is_forbidden), "{once:?}");
                let again = run(&once, way);
                prop_assert_eq!(&again, &once);
            }
            prop_assert!(!for_line(&text).contains(['\n', '\t']));
            let decided = for_approval(&text);
            prop_assert!(decided.chars().all(|c| c == '\n' || kind(c) == Kind::Plain), "{decided:?}");
            let is_seen = |cluster: &str| cluster == "\n" || cluster.width() > 0;
            prop_assert!(decided.graphemes(true).all(is_seen), "{decided:?}");
        }
    }
}
