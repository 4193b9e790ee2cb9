//! Where the caret may go: grapheme clusters, words and lines of a text in which a chip is one piece.

use unicode_segmentation::UnicodeSegmentation;

use crate::tui::editor::chips;

/// The piece before `at`: a chip, or a grapheme cluster.
pub(super) fn before(raw: &str, at: usize) -> usize {
    let head = raw.get(..at).unwrap_or(raw);
    let piece = match head.chars().next_back() {
        None => 0,
        Some(c) if chips::is_chip(c) => c.len_utf8(),
        Some(_) => {
            let after_chip = head.rfind(chips::is_chip).map_or(0, |chip| chip + chips::CHIP_BYTES);
            let open = head.get(after_chip..).unwrap_or_default();
            open.graphemes(true).next_back().map_or(0, str::len)
        }
    };
    head.len() - piece
}

/// The end of the piece at `at`.
pub(super) fn after(raw: &str, at: usize) -> usize {
    at + pieces(raw.get(at..).unwrap_or_default()).next().map_or(0, str::len)
}

/// The start of the piece that holds `at`.
pub(super) fn floor(raw: &str, at: usize) -> usize {
    // A cluster never reaches over a line end, so that only the line has to be looked at.
    let mut ceiling = at.min(raw.len());
    while !raw.is_char_boundary(ceiling) {
        ceiling -= 1;
    }
    let start = line_start(raw, ceiling);
    let mut place = start;
    for piece in pieces(raw.get(start..).unwrap_or_default()) {
        if place + piece.len() > ceiling {
            break;
        }
        place += piece.len();
    }
    place
}

/// The start of the word before `at`, over whatever space lies between.
pub(super) fn word_before(raw: &str, at: usize) -> usize {
    let kinds: Vec<(usize, Kind)> = kinds(raw.get(..at).unwrap_or(raw)).collect();
    let mut rest = kinds.iter().rev().skip_while(|(_, kind)| *kind == Kind::Space).peekable();
    let Some(&&(mut start, kind)) = rest.peek() else { return 0 };
    if kind == Kind::Chip {
        return start;
    }
    for (place, _) in rest.take_while(|(_, next)| *next == kind) {
        start = *place;
    }
    start
}

/// The end of the word after `at`, over whatever space lies between.
pub(super) fn word_after(raw: &str, at: usize) -> usize {
    let tail = raw.get(at..).unwrap_or_default();
    let mut rest = kinds(tail).skip_while(|(_, kind)| *kind == Kind::Space);
    let Some((start, kind)) = rest.next() else { return raw.len() };
    if kind == Kind::Chip {
        return at + start + chips::CHIP_BYTES;
    }
    at + rest.find(|(_, next)| *next != kind).map_or(tail.len(), |(place, _)| place)
}

/// The start of the line.
pub(super) fn line_start(raw: &str, at: usize) -> usize {
    raw.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |end| end + 1)
}

/// The end of the line.
pub(super) fn line_end(raw: &str, at: usize) -> usize {
    raw.get(at..).and_then(|tail| tail.find('\n')).map_or(raw.len(), |end| at + end)
}

/// The start of the line, or the end of the line before from there.
pub(super) fn line_start_or_before(raw: &str, at: usize) -> usize {
    let start = line_start(raw, at);
    if start == at { before(raw, at) } else { start }
}

/// The end of the line, or the start of the next line from there.
pub(super) fn line_end_or_after(raw: &str, at: usize) -> usize {
    let end = line_end(raw, at);
    if end == at { after(raw, at) } else { end }
}

/// Chips and grapheme clusters, in order.
pub(super) fn pieces(raw: &str) -> impl Iterator<Item = &str> {
    raw.split_inclusive(chips::is_chip).flat_map(|part| {
        let chip = part.chars().next_back().filter(|c| chips::is_chip(*c));
        let text = part.len() - chip.map_or(0, char::len_utf8);
        let (text, chip) = part.split_at_checked(text).unwrap_or((part, ""));
        text.graphemes(true).chain(Some(chip).filter(|chip| !chip.is_empty()))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Sign,
    Chip,
}

fn kinds(raw: &str) -> impl Iterator<Item = (usize, Kind)> {
    pieces(raw).scan(0, |at, piece| {
        let start = *at;
        *at += piece.len();
        let kind = match piece.chars().next() {
            Some(c) if chips::is_chip(c) => Kind::Chip,
            Some(c) if c.is_whitespace() => Kind::Space,
            Some(c) if c.is_alphanumeric() || c == '_' => Kind::Word,
            Some(_) | None => Kind::Sign,
        };
        Some((start, kind))
    })
}
