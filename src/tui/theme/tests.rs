//! What the built-in themes promise.

use super::*;
use crate::tui::theme::colour::contrast;
use crate::tui::theme::read::{ColoursFile, hex};

const DEPTHS: [Depth; 4] = [Depth::None, Depth::Sixteen, Depth::TwoFiftySix, Depth::Full];

fn theme(ground: Ground, depth: Depth) -> Theme {
    Theme::built_in(ground, depth).expect("the built-in themes are right")
}

/// Lines are no text.
const LINES: [&str; 1] = ["line"];
/// What text is drawn on, besides the terminal's own ground.
const SURFACES: [&str; 2] = ["raised", "cursor"];

#[test]
fn the_built_in_themes_can_be_read_in_any_number_of_colours() {
    for depth in DEPTHS {
        for ground in [Ground::Dark, Ground::Light] {
            theme(ground, depth);
        }
    }
}

#[test]
fn text_has_a_contrast_of_four_and_a_half_on_every_ground() {
    for (name, text) in [("dark", DARK), ("light", LIGHT)] {
        let file: ColoursFile = toml::from_str(text).unwrap();
        let of = |name: &str| hex(&file.colours[name].rgb).unwrap();
        let texts = file.colours.keys().map(String::as_str);
        for colour in texts.filter(|colour| !LINES.contains(colour) && !SURFACES.contains(colour)) {
            for ground in &file.grounds {
                let found = contrast(of(colour), hex(ground).unwrap());
                assert!(found >= 4.5, "{name}: {colour} on {ground} has {found:.2}");
            }
        }
        let pairs = [("text", "cursor"), ("text", "raised"), ("red", "raised"), ("cyan", "raised")];
        let marks = ["red", "yellow", "green", "cyan", "orange"].map(|mark| (mark, "cursor"));
        for (colour, ground) in pairs.into_iter().chain(marks) {
            let found = contrast(of(colour), of(ground));
            assert!(found >= 4.5, "{name}: {colour} on {ground} has {found:.2}");
        }
    }
}

#[test]
fn without_colours_only_attributes_are_left() {
    let theme = theme(Ground::Dark, Depth::None);
    let parts = Ui::NAMED.iter().map(|(part, _)| theme.ui(*part));
    let marks = Mark::NAMED.iter().map(|(mark, _)| theme.mark(*mark));
    let roles = ROLES.iter().map(|(role, _)| theme.text(rich::Style::from(*role)));
    for style in parts.chain(marks).chain(roles) {
        assert_eq!((style.fg, style.bg), (None, None));
    }
    let asked = rich::Style { fg: Some(rich::Colour::Indexed(1)), ..rich::Style::default() };
    assert_eq!(theme.text(asked).fg, None);
    assert!(theme.ui(Ui::Cursor).add_modifier.contains(Modifier::REVERSED));
}

#[test]
fn sixteen_colours_are_the_terminals_own() {
    let theme = theme(Ground::Light, Depth::Sixteen);
    let heading = theme.text(rich::Style::from(rich::Role::Heading));
    assert_eq!((heading.fg, heading.bg), (Some(Color::Indexed(4)), None));
    assert_eq!(theme.ui(Ui::Toast).bg, None);
}

#[test]
fn what_is_told_by_its_ground_is_told_in_any_number_of_colours() {
    let told = [Ui::Cursor, Ui::CursorResting, Ui::Chip, Ui::Pill, Ui::Toast, Ui::ToastProblem];
    for (depth, ground) in
        DEPTHS.into_iter().flat_map(|depth| [(depth, Ground::Dark), (depth, Ground::Light)])
    {
        let theme = theme(ground, depth);
        for part in told {
            let style = theme.ui(part);
            let attributes = Modifier::REVERSED | Modifier::UNDERLINED;
            let is_told = style.bg.is_some() || style.add_modifier.intersects(attributes);
            assert!(is_told, "{part:?} in {depth:?} on {ground:?} looks like any text");
        }
    }
}

#[test]
fn the_ground_is_known_by_its_brightness() {
    for (hex_text, ground) in [
        ("#000000", Ground::Dark),
        ("#002b36", Ground::Dark),
        ("#3b4252", Ground::Dark),
        ("#fdf6e3", Ground::Light),
        ("#ffffff", Ground::Light),
    ] {
        assert_eq!(Ground::of(hex(hex_text).unwrap()), ground, "{hex_text}");
    }
}

#[test]
fn a_style_that_cannot_be_read_says_why() {
    let check = |styles: &str, expected: &str| {
        let problem = read::theme(styles, DARK, Depth::Full).expect_err("it is wrong");
        assert_eq!(problem.to_string(), expected);
    };
    check(&STYLES.replace("day = \"muted | dim\"", ""), "no style for day");
    check(&STYLES.replace("day = ", "dai = "), "nothing is called dai");
    check(
        &STYLES.replace("day = \"muted", "day = \"pink"),
        "day = \"pink | dim\": no colour and no modifier is called \"pink\"",
    );
}
