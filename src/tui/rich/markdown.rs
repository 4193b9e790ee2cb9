//! Markdown as rows: headings, lists, tables that fit, quotes, links with their target, code.
//!
//! A line end inside a paragraph ends the row, as chat is written; blank lines between items and
//! inside them are kept as one, and top-level blocks stand apart. None of this depends on what
//! follows a block, so a text that is still growing is laid out block by block (`rich::stream`).

mod canvas;
mod code_block;
mod cut;
mod frames;
mod inline;
mod layout;
mod table;

use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use self::cut::Cuts;
pub(super) use self::cut::{Cut, Resume};
use self::layout::Layout;
use super::Row;
use super::code::{self, Highlighter};

/// The rows of a text at a width.
#[must_use]
pub fn rows(source: &str, width: u16, highlighter: &Highlighter) -> Vec<Row> {
    let (resume, definitions) = (&Resume::default(), &Definitions::default());
    lay(&Part { text: source, skip: 0, base: 0, width, highlighter, resume, definitions }).rows
}

/// A code block of a text, for copying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBlock {
    /// The language as its fence names it; empty if it does not.
    pub language: String,
    /// The code, without what the list or quotation around it puts before its lines.
    pub text: String,
    /// Where it stands in the source.
    pub source: Range<usize>,
}

/// The code blocks of a text, in their order.
#[must_use]
pub fn code_blocks(source: &str) -> Vec<CodeBlock> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut inside = false;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                inside = true;
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => code::language(info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                blocks.push(CodeBlock { language, text: String::new(), source: range });
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(text) if inside => {
                if let Some(block) = blocks.last_mut() {
                    block.text.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
}

/// Where the links go that name their target elsewhere in the text: by label, in lower case.
pub(super) type Definitions = HashMap<String, String>;

/// What is laid out: a text, or the open end of one behind the lines that put it in its place.
pub(super) struct Part<'a> {
    /// The context and what follows it.
    pub(super) text: &'a str,
    /// The bytes of the context. What begins in it is not drawn.
    pub(super) skip: usize,
    /// Where in the whole text the byte after the context stands.
    pub(super) base: usize,
    pub(super) width: u16,
    pub(super) highlighter: &'a Highlighter,
    /// Where the layout goes on; the context in it is already part of `text`.
    pub(super) resume: &'a Resume,
    /// Definitions that stand before the part.
    pub(super) definitions: &'a Definitions,
}

/// What comes out.
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// Where a part that begins later could begin.
    pub(super) cuts: Cuts,
    /// The definitions in the part: label, target and the byte at which they end.
    pub(super) definitions: Vec<(String, String, usize)>,
}

pub(super) fn lay(part: &Part<'_>) -> Page {
    let resolve = |link: BrokenLink<'_>| {
        let target = part.definitions.get(&link.reference.to_lowercase())?;
        Some((CowStr::from(target.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(part.text, options(), Some(resolve));
    let definitions = parser
        .reference_definitions()
        .iter()
        .map(|(label, link)| (label.to_lowercase(), link.dest.to_string(), link.span.end))
        .collect();
    let mut layout = Layout::new(part);
    for (event, range) in parser.into_offset_iter() {
        layout.take(event, range);
    }
    let (rows, cuts) = layout.finish();
    Page { rows, cuts, definitions }
}

#[cfg(test)]
pub(super) mod fixtures {
    //! Markdown to test with.

    use std::sync::{Arc, LazyLock};

    use proptest::prelude::*;

    use super::Highlighter;
    use crate::base::sanitize::hostile;

    /// Loads the languages once for all tests.
    pub(crate) static HIGHLIGHTER: LazyLock<Arc<Highlighter>> = LazyLock::new(Arc::default);

    /// Something of everything.
    pub(crate) const SAMPLE: &str = "\
# Heading with `code`

A paragraph with **bold**, *italic* and ~~struck~~ text, a [link](https://example.org/a) and
<https://example.org>. Second line.

- first item, so long that it is wrapped at forty
- second
  1. nested
  2. also

- [x] done
- [ ] open

> Quote of *someone*
>
> - with a list

> [!WARNING]
> Take care.

| Name | Value | What it means |
|:-----|------:|:-------------:|
| a    | 1     | the first one |
| long name | 12345 | 日本語 text and more of it |

```rust
fn main() {
    println!(\"a line that is rather long, longer than forty columns\");
}
```

    indented

<div>html</div>

![picture](img.png) [bad](javascript:x)
***
Setext
---
end";

    /// What Markdown is made of, to be put together in any order.
    const FRAGMENTS: &[&str] = &[
        "# ",
        "\n",
        "\n\n",
        "\n",
        "- ",
        "* ",
        "1. ",
        "7) ",
        "  ",
        "    ",
        "> ",
        "```",
        "```rust\n",
        "~~~",
        "**",
        "*",
        "_",
        "`",
        "~~",
        "[",
        "](",
        ")",
        "[x](http://y)",
        "![",
        "<b>",
        "<div>\n",
        "<!-- ",
        "-->",
        "|",
        "|a|b|\n|-|-|\n",
        "| - |",
        "---",
        "===",
        "***\n",
        "\\",
        "&amp;",
        "text",
        "word ",
        "\t",
        "\r\n",
        "[ ] ",
        "[x] ",
        "> [!NOTE]\n",
        "<br>",
        "日本",
        "-\n",
        "+",
        "\n  - a\n",
        "\n   ",
        "fn f() {\n",
        "}",
    ];

    fn fragment() -> impl Strategy<Value = String> {
        prop_oneof![
            8 => proptest::sample::select(FRAGMENTS).prop_map(str::to_owned),
            1 => "[a-z ]{1,20}",
            1 => hostile::text(),
        ]
    }

    /// A text of such pieces, definitions among them.
    pub(crate) fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            40 => fragment(),
            1 => Just("\n[x]: http://z 'title'\n".to_owned()),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Mods, Role, Style};
    use super::*;
    use crate::base::text;

    fn drawn(source: &str, width: u16) -> String {
        let rows = rows(source, width, &fixtures::HIGHLIGHTER);
        rows.iter().map(Row::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn everything_has_its_look_at_80_columns() {
        insta::assert_snapshot!(drawn(fixtures::SAMPLE, 80), @r#"
        # Heading with code

        A paragraph with bold, italic and struck text, a link <https://example.org/a>
        and
        https://example.org. Second line.

        • first item, so long that it is wrapped at forty
        • second
          1. nested
          2. also

        • [x] done
        • [ ] open

        ▌ Quote of someone
        ▌
        ▌ • with a list

        ▌ Warning
        ▌ Take care.

        Name      │ Value │       What it means
        ──────────┼───────┼───────────────────────────
        a         │     1 │       the first one
        long name │ 12345 │ 日本語 text and more of it

          rust
          fn main() {
              println!("a line that is rather long, longer than forty columns");
          }

          indented

        <div>html</div>

        image: picture <img.png> bad <javascript:x>

        ────────────────────────────────────────────────────────────────────────────────

        ## Setext

        end
        "#);
    }

    #[test]
    fn everything_has_its_look_at_40_columns() {
        insta::assert_snapshot!(drawn(fixtures::SAMPLE, 40), @r#"
        # Heading with code

        A paragraph with bold, italic and struck
        text, a link <https://example.org/a> and
        https://example.org. Second line.

        • first item, so long that it is wrapped
          at forty
        • second
          1. nested
          2. also

        • [x] done
        • [ ] open

        ▌ Quote of someone
        ▌
        ▌ • with a list

        ▌ Warning
        ▌ Take care.

        Name      │ Value │    What it means
        ──────────┼───────┼─────────────────────
        a         │     1 │    the first one
        long name │ 12345 │ 日本語 text and more
                  │       │        of it

          rust
          fn main() {
              println!("a line that is rather
        ↳ long, longer than forty columns");
          }

          indented

        <div>html</div>

        image: picture <img.png> bad
        <javascript:x>

        ────────────────────────────────────────

        ## Setext

        end
        "#);
    }

    #[test]
    fn everything_has_its_look_at_12_columns() {
        insta::assert_snapshot!(drawn(fixtures::SAMPLE, 12), @r#"
        # Heading
        with code

        A paragraph
        with bold,
        italic and
        struck text,
        a link
        <https://exa
        mple.org/a>
        and
        https://exam
        ple.org.
        Second line.

        • first
          item, so
          long that
          it is
          wrapped at
          forty
        • second
          1. nested
          2. also

        • [x] done
        • [ ] open

        ▌ Quote of
        ▌ someone
        ▌
        ▌ • with a
        ▌   list

        ▌ Warning
        ▌ Take care.

        Name: a
        Value: 1
        What it
        means: the
        first one
        ────────────
        Name: long
        name
        Value: 12345
        What it
        means: 日本
        語 text and
        more of it

          rust
          fn main()
        ↳ {
              printl
        ↳ n!("a line
        ↳ that is
        ↳ rather
        ↳ long,
        ↳ longer
        ↳ than forty
        ↳ columns");
          }

          indented

        <div>html</d
        iv>

        image:
        picture
        <img.png>
        bad
        <javascript:
        x>

        ────────────

        ## Setext

        end
        "#);
    }

    /// The pieces of the rows that have another style than plain text.
    fn check_styles(source: &str, expected: &[(&str, Style)]) {
        let rows = rows(source, 80, &fixtures::HIGHLIGHTER);
        let spans = rows.iter().flat_map(Row::spans);
        let found: Vec<_> = spans
            .filter(|span| span.style != Style::default())
            .map(|span| (span.text, span.style))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn text_is_styled_by_what_it_means() {
        let (bold, italic, underline) = (Mods::BOLD, Mods::ITALIC, Mods::UNDERLINE);
        let style = |role: Role, mods: Mods| Style::from(role).with(mods);
        check_styles(
            "**b** *i **both*** `c` ~~s~~",
            &[
                ("b", style(Role::Strong, bold)),
                ("i ", style(Role::Emphasis, italic)),
                ("both", style(Role::Emphasis, italic | bold)),
                ("c", Role::Code.into()),
                ("s", style(Role::Text, Mods::STRIKE)),
            ],
        );
        check_styles(
            "# H\n- x\n> q\n",
            &[
                ("# ", style(Role::Muted, bold)),
                ("H", style(Role::Heading, bold)),
                ("• ", Role::ListMark.into()),
                ("▌ ", Role::Quote.into()),
            ],
        );
        check_styles(
            "[a](http://b) [c](file:///d)",
            &[
                ("a", style(Role::Link, underline)),
                (" <http://b>", Role::LinkTarget.into()),
                ("c", style(Role::Warning, underline)),
                (" <file:///d>", Role::Warning.into()),
            ],
        );
    }

    #[test]
    fn a_link_shows_where_it_goes_unless_its_text_says_so() {
        assert_eq!(
            drawn("<http://a> [http://a](http://a) <b@c.de>", 80),
            "http://a http://a b@c.de"
        );
        assert_eq!(drawn("[http://a](http://evil)", 80), "http://a <http://evil>");
        assert_eq!(drawn("[x][r]\n\n[r]: http://a 'title'", 80), "x <http://a>");
        assert_eq!(drawn("[x](<http://a/\u{202e}b>)", 80), "x <http://a/⟨U+202E⟩b>");
    }

    #[test]
    fn hostile_text_is_drawn_safely_wherever_it_stands() {
        assert_eq!(drawn("&#27;[31m &#x202e;", 40), "␛[31m ⟨U+202E⟩");
        let source = "# \u{1b}[31m\n\n- \u{202e}x\n\n`\u{7}`\n\n```\u{9b}\n\u{1b}]0;x\u{7}\n```\n\n<b \u{1b}>\n\n|\u{7f}|\n|-|\n";
        assert_eq!(
            drawn(source, 40),
            "# ␛[31m\n\n• ⟨U+202E⟩x\n\n␇\n\n  ⟨U+009B⟩\n  ␛]0;x␇\n\n<b ␛>\n\n␡\n─",
        );
    }

    #[test]
    fn blank_lines_in_lists_are_kept_as_one() {
        assert_eq!(drawn("text\n- a\n- b\n\n\n- c\n\n  d\n", 40), "text\n• a\n• b\n\n• c\n\n  d");
        assert_eq!(drawn("text\n\n3. a\n3. b", 40), "text\n\n3. a\n4. b");
    }

    #[test]
    fn nesting_beyond_the_width_moves_markers_into_the_text() {
        assert_eq!(drawn("- a\n  - b\n    - c word\n", 11), "• a\n  ◦ b\n  • c word");
    }

    #[test]
    fn a_table_without_room_is_drawn_value_by_value() {
        let table = "|Name|Text|\n|-|-|\n|a|long word|\n|b||";
        assert_eq!(drawn(table, 20), "Name │ Text\n─────┼──────────\na    │ long word\nb    │");
        assert_eq!(drawn(table, 9), "Name: a\nText:\nlong word\n─────────\nName: b\nText:",);
    }

    #[test]
    fn every_row_knows_its_place_in_the_source() {
        let source = "one two three\n\n```\nfn a\nfn b\n```\n";
        let rows = rows(source, 9, &fixtures::HIGHLIGHTER);
        let places: Vec<_> = rows
            .iter()
            .map(|row| {
                let range = row.source();
                source.get(range.start as usize..range.end as usize).unwrap()
            })
            .collect();
        assert_eq!(places, ["one two", "three", "", "fn a", "fn b"]);
    }

    #[test]
    fn a_paragraph_of_a_blank_that_is_text_begins_where_it_stands() {
        let starts: Vec<_> = rows("a\n\n\u{a0}\n", 9, &fixtures::HIGHLIGHTER)
            .iter()
            .map(|row| row.source().start)
            .collect();
        assert_eq!(starts, [0, 3, 3]);
    }

    #[test]
    fn code_blocks_are_found_without_what_stands_before_their_lines() {
        let source = "```rust,ignore\na\n  b\n```\n- x\n  ~~~\n  c\n  ~~~\n\n> \u{20}   d\n";
        let found: Vec<_> =
            code_blocks(source).into_iter().map(|block| (block.language, block.text)).collect();
        let block = |language: &str, text: &str| (language.to_owned(), text.to_owned());
        assert_eq!(found, [block("rust", "a\n  b\n"), block("", "c\n"), block("", "d\n")]);
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_width_and_sources_go_forward(
            source in fixtures::text(), width in 1..=200u16,
        ) {
            let mut start = 0;
            for row in rows(&source, width, &fixtures::HIGHLIGHTER) {
                prop_assert!(row.width() <= width, "{row:?}");
                prop_assert_eq!(usize::from(row.width()), text::width(row.text()), "{:?}", row);
                prop_assert!(!row.text().contains(char::is_control));
                prop_assert!(row.source().start >= start, "{row:?} after {start}");
                prop_assert!(row.source().end as usize <= source.len());
                start = row.source().start;
            }
        }
    }
}
