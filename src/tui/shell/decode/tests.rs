//! The byte corpus: what terminals send, and what it means.

use proptest::prelude::*;

use super::*;
use crate::tui::input::{Mouse, Reply};

const START: Duration = Duration::from_secs(100);
const LONG_AFTER: Duration = Duration::from_secs(200);

/// All that `parts` mean, when they come one after the other without a pause, and then nothing.
fn decoded<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Input> {
    let (mut decoder, mut out) = (Decoder::new(), Vec::new());
    for part in parts {
        decoder.feed(part, START, &mut out);
    }
    decoder.dry(START, &mut out);
    decoder.tick(LONG_AFTER, &mut out);
    assert_eq!(decoder.deadline(), None, "nothing stays open");
    out
}

/// All that `parts` mean, when the terminal falls silent for `gap` after each.
fn decoded_with_gaps<'a>(gap: Duration, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Input> {
    let (mut decoder, mut out, mut now) = (Decoder::new(), Vec::new(), START);
    for part in parts {
        decoder.feed(part, now, &mut out);
        decoder.dry(now, &mut out);
        now += gap;
        if decoder.deadline().is_some_and(|deadline| deadline <= now) {
            decoder.tick(now, &mut out);
        }
    }
    decoder.tick(LONG_AFTER, &mut out);
    out
}

fn shown(inputs: &[Input]) -> String {
    let one = |input: &Input| match input {
        Input::Key(key) => key.to_string(),
        Input::Text(text) => format!("text {text:?}"),
        Input::Paste(text) => format!("paste {text:?}"),
        Input::Mouse(Mouse { kind, column, row, mods }) if *mods == Mods::NONE => {
            format!("{kind:?} {column},{row}")
        }
        Input::Mouse(Mouse { kind, column, row, .. }) => format!("{kind:?} {column},{row} held"),
        Input::FocusGained => "focus".to_owned(),
        Input::FocusLost => "no focus".to_owned(),
        Input::Reply(Reply::DeviceAttributes) => "attributes".to_owned(),
        Input::Reply(Reply::KeyboardFlags(flags)) => format!("flags {flags}"),
        Input::Reply(Reply::Foreground(c)) => format!("fg {} {} {}", c.red, c.green, c.blue),
        Input::Reply(Reply::Background(c)) => format!("bg {} {} {}", c.red, c.green, c.blue),
    };
    inputs.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// `bytes` mean `expected`, in one piece and byte by byte.
fn check(bytes: &(impl AsRef<[u8]> + ?Sized), expected: &str) {
    let bytes = bytes.as_ref();
    assert_eq!(shown(&decoded([bytes])), expected, "{}", bytes.escape_ascii());
    assert_eq!(shown(&decoded(bytes.chunks(1))), expected, "cut: {}", bytes.escape_ascii());
}

#[test]
fn keys_of_seven_bits() {
    check("a", "a");
    check("?", "?");
    check(" ", "Space");
    check("\r", "Enter");
    check("\n", "Ctrl-J");
    check("\t", "Tab");
    check("\x7f", "Backspace");
    check("\x08", "Backspace");
    check("\0", "Ctrl-Space");
    check("\x01", "Ctrl-A");
    check("\x03", "Ctrl-C");
    check("\x1a", "Ctrl-Z");
    check("\x1c", "Ctrl-\\");
    check("\x1f", "Ctrl-/");
    check("\x1b", "Esc");
    check("\x1b\x1b", "Esc | Esc");
}

#[test]
fn alt_comes_as_an_escape_before_the_key() {
    check("\x1bb", "Alt-B");
    check("\x1bB", "Alt-Shift-B");
    check("\x1b\r", "Alt-Enter");
    check("\x1b\x7f", "Alt-Backspace");
    check("\x1b\x02", "Ctrl-Alt-B");
    check("\x1b ", "Alt-Space");
    check("\x1bé", "Alt-É");
    check("\x1b\x1bb", "Esc | Alt-B");
    check("\x1b\x1b[A", "Alt-Up");
    check("\x1b\x1bOA", "Alt-Up");
    check("\x1b\x1b[3~", "Alt-Delete");
}

#[test]
fn beginnings_of_sequences_are_keys_when_nothing_follows() {
    check("\x1b[", "Alt-[");
    check("\x1bO", "Alt-Shift-O");
    check("\x1b]", "Alt-]");
    check("\x1bP", "Alt-Shift-P");
    check("\x1b_", "Alt-_");
    check("\x1b]x", "Alt-] | x");
    check("\x1bPx", "Alt-Shift-P | x");
    check("\x1b[\r", "Alt-[ | Enter");
    check("\x1bO\r", "Alt-Shift-O | Enter");
    check("\x1b\x1b[", "Esc | Alt-[");
    check("\x1b^\x1bX", "Alt-^ | Alt-Shift-X");
}

#[test]
fn cursor_and_function_keys_of_xterm_and_vt() {
    check("\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F", "Up | Down | Right | Left | Home | End");
    check("\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF", "Up | Down | Right | Left | Home | End");
    check(
        "\x1b[1~\x1b[2~\x1b[3~\x1b[4~\x1b[5~\x1b[6~",
        "Home | Insert | Delete | End | PgUp | PgDn",
    );
    check("\x1bOP\x1bOQ\x1bOR\x1bOS", "F1 | F2 | F3 | F4");
    check("\x1b[15~\x1b[17~\x1b[21~\x1b[23~\x1b[24~", "F5 | F6 | F10 | F11 | F12");
    check("\x1b[1;5A\x1b[1;3D\x1b[1;2C", "Ctrl-Up | Alt-Left | Shift-Right");
    check("\x1b[1;6H\x1b[3;5~\x1b[5;3~", "Ctrl-Shift-Home | Ctrl-Delete | Alt-PgUp");
    check("\x1b[1;2P\x1b[1;2R\x1b[15;5~", "Shift-F1 | Shift-F3 | Ctrl-F5");
    check("\x1b[Z\x1b[1;2Z", "Shift-Tab | Shift-Tab");
    check("\x1bO5A\x1bO1;5A", "Ctrl-Up | Ctrl-Up");
}

#[test]
fn keys_of_rxvt_and_the_linux_console() {
    check("\x1b[[A\x1b[[E", "F1 | F5");
    check("\x1b[11~\x1b[14~\x1b[7~\x1b[8~", "F1 | F4 | Home | End");
    check("\x1b[a\x1b[d\x1bOa\x1bOd", "Shift-Up | Shift-Left | Ctrl-Up | Ctrl-Left");
    check("\x1b[3$\x1b[3^\x1b[3@", "Shift-Delete | Ctrl-Delete | Ctrl-Shift-Delete");
    check("\x1b[25~\x1b[28~\x1b[34~", "F13 | F15 | F20");
}

#[test]
fn keys_of_the_keypad_in_application_mode() {
    check("\x1bOM\x1bOp\x1bOy\x1bOk\x1bOm\x1bOX", "Enter | 0 | 9 | + | - | =");
}

#[test]
fn keys_of_modify_other_keys() {
    check("\x1b[27;2;13~", "Shift-Enter");
    check("\x1b[27;5;13~", "Ctrl-Enter");
    check("\x1b[27;5;9~", "Ctrl-Tab");
    check("\x1b[27;6;88~", "Ctrl-Shift-X");
    check("\x1b[27;5;44~", "Ctrl-,");
    check("\x1b[27;6;63~", "Ctrl-?");
    check("\x1b[27;2;65~", "A");
    check("\x1b[27;5;106~", "Ctrl-J");
}

#[test]
fn keys_of_the_kitty_protocol() {
    check("\x1b[27u", "Esc");
    check("\x1b[13;2u", "Shift-Enter");
    check("\x1b[97;5u", "Ctrl-A");
    check("\x1b[97;6u\x1b[97:65;6u", "Ctrl-Shift-A | Ctrl-Shift-A");
    check("\x1b[47:63;6u", "Ctrl-?");
    check("\x1b[45:95;6u", "Ctrl-/");
    check("\x1b[1089::99;5u", "Ctrl-C");
    check("\x1b[105;5u\x1b[109;5u\x1b[91;5u", "Tab | Enter | Esc");
    check("\x1b[97;3u\x1b[97;9u\x1b[97;33u", "Alt-A | Super-A | Alt-A");
    check("\x1b[97;69u", "Ctrl-A");
    check("\x1b[127;2u", "Backspace");
    check("\x1b[57376u\x1b[57398;5u", "F13 | Ctrl-F35");
    check("\x1b[57414u\x1b[57400u\x1b[57423u", "Enter | 1 | Home");
    check("\x1b[13~", "F3");
    check("\x1b[97;;97u", "a");
    check("\x1b[0;;20320:22909u", "text \"你好\"");
}

#[test]
fn repeats_are_presses_and_releases_are_nothing() {
    check("\x1b[97;5:2u\x1b[1;1:2A", "Ctrl-A | Up");
    check("\x1b[97;5:3u\x1b[1;1:3A\x1b[3;1:3~\x1b[57441;2:3u", "");
    check("\x1b[57358u\x1b[57428u\x1b[57441;2u", "");
}

#[test]
fn text_of_any_script() {
    check("é", "é");
    check("😀", "😀");
    check("你好", "text \"你好\"");
    check("e\u{301}", "text \"e\\u{301}\"");
    check("한국어\x1b[D", "text \"한국어\" | Left");
    check("jj", "text \"jj\"");
    check("ab\t", "text \"ab\" | Tab");
    check("ab\r", "text \"ab\" | Enter");
}

#[test]
fn what_is_no_text_is_swallowed() {
    check(b"\xff\xfea", "a");
    check(b"\x80\x9bA", "A");
    check(b"\xc3a", "a");
    check(b"\xc3\x1b[A", "Up");
    check(b"\xe4\xbda", "a");
    check(b"\xf5\x80\x80\x80", "");
    check(b"\xed\xa0\x80", "");
    check("\u{85}\u{9b}A", "A");
    check(b"\xe4\xbd", "");
}

#[test]
fn unknown_and_broken_sequences_never_become_text() {
    check("\x1b[=99;12za", "a");
    check("\x1b[1 qa", "a");
    check("\x1b[>1;10;0ca", "a");
    check("\x1b[99~a", "a");
    check("\x1b[17;29;0;1;0;1_a", "a");
    check("\x1bOE\x1b[Ea", "a");
    check("\x1b[12\x01", "Ctrl-A");
    check("\x1b[12\x1b[A", "Up");
    check("\x1b[12", "");
    check("\x1b[201~a", "a");
    check(&format!("\x1b[{}ua", "1".repeat(1_000)), "a");
    check("\x1b[99999999999;5ua", "a");
}

#[test]
fn answers_never_become_text() {
    check("\x1b[?62;22c", "attributes");
    check("\x1b[?0u\x1b[?5u", "flags 0 | flags 5");
    check("\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", "bg 30 30 46");
    check("\x1b]10;rgb:ff/f/fff\x07", "fg 255 255 255");
    check("\x1b]11;rgba:0000/8000/ffff/ffff\x07", "bg 0 128 255");
    check("\x1b]11;rgb:0/0\x07\x1b]12;rgb:0/0/0\x07\x1b]52;c;aGk=\x07a", "a");
    check("\x1bP>|xterm(390)\x1b\\\x1bP1$r0m\x1b\\\x1bP!|00000000\x1b\\a", "a");
    check("\x1b_Gi=1;OK\x1b\\a", "a");
    check("\x1b[?2026;2$y\x1b[?997;1n\x1b[8;24;80t\x1b[4;600;800ta", "a");
    check("\x1b[24;80R\x1b[1;80R\x1b[1;1R\x1b[?1;1Ra", "a");
    check("\x1b]11;rgb:0\x1b[A", "Up");
    check("\x1b]11;rgb:0\ra", "Enter | a");
    check(&format!("\x1b]52;c;{}\x07a", "x".repeat(100_000)), "a");
}

#[test]
fn the_mouse() {
    check("\x1b[<0;1;1M\x1b[<0;1;1m", "Press(Left) 0,0 | Release(Left) 0,0");
    check("\x1b[<2;1000;500M", "Press(Right) 999,499");
    check("\x1b[<33;3;4M", "Drag(Middle) 2,3");
    check("\x1b[<64;5;6M\x1b[<65;5;6M", "WheelUp 4,5 | WheelDown 4,5");
    check("\x1b[<66;5;6M\x1b[<67;5;6M", "WheelLeft 4,5 | WheelRight 4,5");
    check("\x1b[<16;5;6M", "Press(Left) 4,5 held");
    check("\x1b[<35;5;6M\x1b[<128;5;6M\x1b[<0;0;0M\x1b[<0;99999;1Ma", "a");
    check("\x1b[M !!\x1b[M#!!", "Press(Left) 0,0 | Release(Left) 0,0");
    check(b"\x1b[M`\xff!", "WheelUp 222,0");
    check("\x1b[32;5;6M\x1b[35;5;6M", "Press(Left) 4,5 | Release(Left) 4,5");
}

#[test]
fn focus() {
    check("\x1b[I\x1b[O", "focus | no focus");
}

#[test]
fn a_paste_is_one_event_whatever_it_holds() {
    check("\x1b[200~hello\x1b[201~", "paste \"hello\"");
    check("\x1b[200~a\r\rb\r\nc\n\x1b[201~x", "paste \"a\\n\\nb\\nc\\n\" | x");
    check("\x1b[200~\tif x:\x1b[201~", "paste \"\\tif x:\"");
    check("\x1b[200~\x1b[A\x03\x1b]0;x\x07\x1b[201~", "paste \"\\u{1b}[A\\u{3}\\u{1b}]0;x\\u{7}\"");
    check(b"\x1b[200~a\xffb\x1b[201~", "paste \"a\u{fffd}b\"");
    check("\x1b[200~\x1b[201~", "");
    check("\x1b[200~\x1b[201\x1b[201~", "paste \"\\u{1b}[201\"");
}

#[test]
fn reports_inside_of_a_paste_are_no_part_of_it() {
    check("\x1b[200~a\x1b[Ib\x1b[<35;6;7Mc\x1b[201~", "paste \"abc\" | focus");
    check("\x1b[200~ab\x1b[<0;1;1Mc\x1b[O\x1b[201~", "paste \"abc\" | Press(Left) 0,0 | no focus");
}

#[test]
fn line_ends_that_tmux_sends_as_keys_stay_in_a_paste() {
    check("\x1b[200~A\x1b[27;5;106~B\x1b[106;5uC\x1b[201~", "paste \"A\\nB\\nC\"");
}

#[test]
fn a_paste_without_its_end_is_told_after_a_second_of_silence() {
    let (mut decoder, mut out) = (Decoder::new(), Vec::new());
    decoder.feed(b"\x1b[200~abc", START, &mut out);
    decoder.dry(START, &mut out);
    let deadline = decoder.deadline().expect("the end is waited for");
    assert_eq!(deadline, START + Duration::from_secs(1));
    decoder.tick(START + Duration::from_millis(999), &mut out);
    assert_eq!(out, []);
    decoder.tick(deadline, &mut out);
    decoder.feed(b"q", deadline, &mut out);
    decoder.dry(deadline, &mut out);
    assert_eq!(shown(&out), "paste \"abc\" | q");
}

#[test]
fn a_huge_paste_is_told_in_parts_that_cut_no_character() {
    let text = "aé".repeat(2 * 1024 * 1024);
    let bytes = format!("\x1b[200~{text}\x1b[201~");
    let parts = decoded(bytes.as_bytes().chunks(4096));
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Input::Paste(text) => text.as_str(),
            other => panic!("no paste: {other:?}"),
        })
        .collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.concat() == text, "nothing is lost");
}

#[test]
fn a_piece_with_line_ends_is_a_paste_without_marks() {
    check("AAA\rBBB\rCCC", "paste \"AAA\\nBBB\\nCCC\"");
    check("rm -rf x\r", "paste \"rm -rf x\\n\"");
    check("\tif x:\n\t\ty\n", "paste \"\\tif x:\\n\\t\\ty\\n\"");
    check("one\ttwo", "paste \"one\\ttwo\"");
    check("one\rtwo\x1b[A", "paste \"one\\ntwo\" | Up");
}

#[test]
fn a_paste_without_marks_goes_on_over_short_gaps() {
    let parts = [&b"first line"[..], b"\rsecond", b" line\rthird", b"\r"];
    let text = "text \"first line\" | paste \"\\nsecond line\\nthird\\n\"";
    assert_eq!(shown(&decoded_with_gaps(Duration::from_millis(20), parts)), text);
    let slow = decoded_with_gaps(Duration::from_millis(100), parts);
    let in_parts =
        "text \"first line\" | paste \"\\nsecond\" | paste \" line\\nthird\" | paste \"\\n\"";
    assert_eq!(shown(&slow), in_parts);
}

#[test]
fn enter_after_typing_sends() {
    let typed = [&b"o"[..], b"k", b"\r"];
    assert_eq!(shown(&decoded_with_gaps(Duration::from_millis(5), typed)), "o | k | Enter");
    let committed = ["你好世界".as_bytes(), b"\r"];
    let sent = decoded_with_gaps(Duration::from_millis(200), committed);
    assert_eq!(shown(&sent), "text \"你好世界\" | Enter");
}

#[test]
fn escape_is_the_key_after_fifty_milliseconds() {
    let parts = [&b"\x1b"[..], b"[A"];
    assert_eq!(shown(&decoded_with_gaps(Duration::from_millis(49), parts)), "Up");
    let apart = decoded_with_gaps(Duration::from_millis(50), parts);
    assert_eq!(shown(&apart), "Esc | text \"[A\"");
}

#[test]
fn nothing_is_waited_for_when_nothing_is_open() {
    let (mut decoder, mut out) = (Decoder::new(), Vec::new());
    assert_eq!(decoder.deadline(), None);
    decoder.feed(b"x\x1b[A", START, &mut out);
    decoder.dry(START, &mut out);
    assert_eq!(decoder.deadline(), None);
}

/// Sequences of every kind; none is text.
fn sequence() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec![
        b"\x1b[A".to_vec(),
        b"\x1bOP".to_vec(),
        b"\x1b[[A".to_vec(),
        b"\x1b[1;5C".to_vec(),
        b"\x1b[3^".to_vec(),
        b"\x1b[27;5;13~".to_vec(),
        b"\x1b[97:65:99;6:1u".to_vec(),
        b"\x1b[97;1:3u".to_vec(),
        b"\x1b[<0;10;20M".to_vec(),
        b"\x1b[M !!".to_vec(),
        b"\x1b[I".to_vec(),
        b"\x1b[?62;4c".to_vec(),
        b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\".to_vec(),
        b"\x1bP>|kitty(0.40)\x1b\\".to_vec(),
        b"\x1b[200~one\r\x1b[Itwo\x1b[201~".to_vec(),
        b"\x03".to_vec(),
        b"\x7f".to_vec(),
        "\x1bé".as_bytes().to_vec(),
        "é".as_bytes().to_vec(),
    ])
}

/// Where to cut: a part ends before every byte whose number is in the set.
fn cut<'a>(bytes: &'a [u8], cuts: &[bool]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    let mut len = 0;
    for position in 0..bytes.len() {
        len += 1;
        if cuts.get(position % cuts.len().max(1)).copied().unwrap_or(false) {
            let (part, after) = rest.split_at(len);
            parts.push(part);
            rest = after;
            len = 0;
        }
    }
    parts.push(rest);
    parts
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_input(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(
                prop_oneof![
                    sequence(),
                    "[ -~]{0,3}".prop_map(String::into_bytes),
                    prop::collection::vec(any::<u8>(), 0..3),
                ],
                0..20,
            ).prop_map(|pieces| pieces.concat()),
        ],
        cuts in prop::collection::vec(any::<bool>(), 1..50),
    ) {
        prop_assert_eq!(decoded(cut(&bytes, &cuts)), decoded([bytes.as_slice()]));
    }

    #[test]
    fn sequences_survive_short_gaps(
        pieces in prop::collection::vec(sequence(), 0..10),
        cuts in prop::collection::vec(any::<bool>(), 1..50),
    ) {
        // Two single characters side by side are a text without a gap, two keys with one.
        let bytes = pieces.join(&b"\x1b[B"[..]);
        let gap = Duration::from_millis(40);
        let with_gaps = decoded_with_gaps(gap, cut(&bytes, &cuts));
        prop_assert_eq!(with_gaps, decoded([bytes.as_slice()]));
    }

    #[test]
    fn keys_and_texts_never_hold_control_characters(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        for input in decoded([bytes.as_slice()]) {
            match input {
                Input::Key(key) => prop_assert!(key.text().is_none_or(|c| !c.is_control())),
                Input::Text(text) => prop_assert!(!text.contains(char::is_control)),
                _ => {}
            }
        }
    }
}
