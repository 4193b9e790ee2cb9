//! The text of a paragraph, a heading or a cell: emphasis, code, links with where they really go.

use std::ops::Range;

use pulldown_cmark::{CowStr, Tag, TagEnd};

use super::super::flat::Flat;
use super::super::{Mods, Role, Style};
use crate::base::sanitize::{self, Policy};

/// Of a longer target (a `data:` URL holds a whole picture) head and tail are shown, with a count.
const TARGET_BYTES_MAX: usize = 512;
/// Schemes that open something to look at, and nothing else.
const HARMLESS_SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Text in the making, with what is open in it.
pub(super) struct Inline {
    flat: Flat,
    styles: Vec<Style>,
    links: Vec<Link>,
}

struct Link {
    target: String,
    /// Where its text begins.
    at: usize,
}

impl Inline {
    /// Begins a text at `origin` in the source, whose plain parts have this style.
    pub(super) fn begin(origin: usize, style: Style) -> Self {
        let flat = Flat::new(Policy::Reading, origin);
        Self { flat, styles: vec![style], links: Vec::new() }
    }

    /// What has been written, and nothing stays.
    pub(super) fn take(&mut self) -> Flat {
        std::mem::replace(self, Self::begin(0, Style::default())).flat
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    pub(super) fn push(&mut self, text: &str, source: Range<usize>) {
        self.flat.push(text, source, self.style());
    }

    pub(super) fn push_as(&mut self, role: Role, text: &str, source: Range<usize>) {
        self.flat.push(text, source, Style { role, ..self.style() });
    }

    pub(super) fn push_code(&mut self, text: &str, source: Range<usize>) {
        let style = match self.style() {
            style if matches!(style.role, Role::Link | Role::Warning) => style,
            style => Style { role: Role::Code, ..style },
        };
        // Between its backticks, so that places in the source fit.
        let marks = source.len().saturating_sub(text.len());
        let inner = source.start + marks / 2..source.end - (marks - marks / 2);
        self.flat.push(text, inner, style);
    }

    pub(super) fn break_line(&mut self, source: Range<usize>) {
        self.flat.push_own("\n", source.start..source.start + 1, Style::default());
    }

    pub(super) fn start(&mut self, tag: Tag<'_>, source: &Range<usize>) {
        let style = self.style();
        let style = match tag {
            Tag::Emphasis => style.or_role(Role::Emphasis).with(Mods::ITALIC),
            Tag::Strong => style.or_role(Role::Strong).with(Mods::BOLD),
            Tag::Strikethrough => style.with(Mods::STRIKE),
            Tag::Link { dest_url, .. } => self.start_link(dest_url),
            Tag::Image { dest_url, .. } => {
                self.push_as(Role::Muted, "image: ", source.start..source.start);
                self.start_link(dest_url)
            }
            _ => style,
        };
        self.styles.push(style);
    }

    fn start_link(&mut self, target: CowStr<'_>) -> Style {
        let role = if is_harmless(&target) { Role::Link } else { Role::Warning };
        self.links.push(Link { target: target.into_string(), at: self.flat.text().len() });
        Style { role, ..self.style().with(Mods::UNDERLINE) }
    }

    pub(super) fn end(&mut self, tag: TagEnd, source: &Range<usize>) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
        if matches!(tag, TagEnd::Link | TagEnd::Image)
            && let Some(link) = self.links.pop()
        {
            self.show_target(&link, source.end);
        }
    }

    /// Shows where a link goes, unless its text says just that.
    fn show_target(&mut self, link: &Link, end: usize) {
        let target = shortened(&link.target);
        let shown = sanitize::for_line(&target);
        let text = self.flat.text().get(link.at..).unwrap_or_default();
        if text == shown || shown.strip_prefix("mailto:") == Some(text) {
            return;
        }
        let space = if text.is_empty() || text.ends_with([' ', '\n']) { "" } else { " " };
        let role = if is_harmless(&link.target) { Role::LinkTarget } else { Role::Warning };
        let text = format!("{space}<{shown}>");
        self.flat.push_own(&text, end.saturating_sub(1)..end, Style::from(role));
    }
}

/// Whether a target is what it seems: plain ASCII, no scheme that could run something, no name before
/// the host that passes itself off as one.
fn is_harmless(target: &str) -> bool {
    let is_scheme = |scheme: &str| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    let plain = target.bytes().all(|byte| byte.is_ascii_graphic());
    let authority = target.split_once("//").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let known = match target.split_once(':') {
        // A place in a file: `main.rs:12`.
        Some((_, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => true,
        Some((scheme, _)) if is_scheme(scheme) => {
            HARMLESS_SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme))
        }
        _ => true,
    };
    plain && known && !authority.contains('@')
}

fn shortened(target: &str) -> String {
    if target.len() <= TARGET_BYTES_MAX {
        return target.to_owned();
    }
    let (mut head, mut tail) = (TARGET_BYTES_MAX / 2, target.len() - TARGET_BYTES_MAX / 4);
    while !target.is_char_boundary(head) {
        head -= 1;
    }
    while !target.is_char_boundary(tail) {
        tail += 1;
    }
    let head = target.get(..head).unwrap_or_default();
    let tail = target.get(tail..).unwrap_or_default();
    let more = target.len() - head.len() - tail.len();
    format!("{head} … {more} more bytes … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_may_deceive_are_found() {
        for target in
            ["https://a.org/b?c#d", "/path", "#part", "mailto:a@b.org", "HTTP://x", "a b.md"]
        {
            assert_eq!(is_harmless(target), !target.contains(' '), "{target}");
        }
        for target in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "https://bank.org@evil.org/",
            "https://bаnk.org",
            "https://a.org/\u{202e}gpj",
        ] {
            assert!(!is_harmless(target), "{target}");
        }
    }

    #[test]
    fn a_very_long_target_is_shortened_with_a_count() {
        let shown = shortened(&format!("data:{}", "é".repeat(1000)));
        assert!(shown.starts_with("data:é"));
        assert!(shown.contains(" … 1622 more bytes … "), "{shown}");
    }
}
