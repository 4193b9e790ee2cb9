//! Frames, whole, cut, flipped and followed by what should not be there.

use super::*;

fn decode(bytes: &[u8]) -> Result<Decoded, Broken> {
    super::decode(bytes, &Decoders::default())
}

fn first(bytes: &[u8]) -> Result<First, FrameFault> {
    super::first(bytes, &Decoders::default())
}

/// Three frames, of one, two and one line.
fn log() -> (Vec<u8>, Vec<u8>) {
    let lines = b"{\"first\":1}\n{\"n\":2}\n{\"n\":3}\n".to_vec();
    let mut bytes = begin(&lines).expect("encoded");
    bytes.extend(encode(b"{\"n\":4}\n").expect("encoded"));
    (bytes, [&lines[..], b"{\"n\":4}\n"].concat())
}

/// Where the frames of the log begin, and where the last one ends.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    while let Ok(Walk::Whole(frame)) = walk(&bytes[starts[starts.len() - 1]..]) {
        starts.push(starts[starts.len() - 1] + frame.size);
    }
    starts
}

fn fault(bytes: &[u8]) -> (u64, FrameFault) {
    let broken = decode(bytes).expect_err("damaged");
    (broken.line, broken.why)
}

#[test]
fn what_is_encoded_is_decoded_again_and_its_first_line_alone() {
    let (bytes, lines) = log();
    let whole = bytes.len();
    assert_eq!(decode(&bytes), Ok(Decoded { text: lines, whole }));
    assert_eq!(first(&bytes), Ok(First::Line(b"{\"first\":1}\n".to_vec())));
    assert_eq!(starts(&bytes).len(), 4);
    assert_eq!(decode(b""), Ok(Decoded { text: Vec::new(), whole: 0 }));
    assert_eq!(encode(b""), Ok(Vec::new()));
}

#[test]
fn lines_that_no_frame_can_hold_become_several() {
    let lines = b"12345\n1\n12\n1234567\n";
    let bytes = encode_within(lines, 8).expect("encoded");
    let starts = starts(&bytes);
    assert_eq!(starts.len(), 4, "the second and third line fit into one");
    assert_eq!(encode_within(lines, 7), Err(FrameFault::TooLong { declared: 8 }));
}

#[test]
fn what_a_cut_leaves_is_the_whole_frames_and_a_torn_end() {
    let (bytes, lines) = log();
    let starts = starts(&bytes);
    let ends = [0, 12, 28, 36];
    for cut in 0..=bytes.len() {
        let frames = starts.iter().filter(|start| **start <= cut).count() - 1;
        let expected = Decoded { text: lines[..ends[frames]].to_vec(), whole: starts[frames] };
        assert_eq!(decode(&bytes[..cut]), Ok(expected.clone()), "cut at {cut}");
        for zeros in [1, 2, 3, 4, 5_000] {
            let torn = [&bytes[..cut], &vec![0; zeros]].concat();
            let is_in_checksum = starts.iter().any(|end| {
                (end - CHECKSUM_BYTES.min(*end)..*end).contains(&cut) && cut + zeros == *end
            });
            let is_certain = zeros >= CHECKSUM_BYTES || cut == starts[frames] || is_in_checksum;
            // Too few zeros may be part of the frame; they are never taken for more than it.
            match decode(&torn) {
                Ok(decoded) => assert_eq!(decoded, expected, "cut at {cut}, {zeros} zeros"),
                Err(broken) => assert!(!is_certain, "cut at {cut}, {zeros} zeros: {broken:?}"),
            }
        }
        assert_eq!(first(&bytes[..cut]).is_ok_and(|it| it == First::GoesOn), cut < starts[1]);
    }
}

#[test]
fn zeros_in_the_place_of_the_end_of_the_last_frame_are_torn() {
    let (bytes, lines) = log();
    let starts = starts(&bytes);
    for from in starts[2]..bytes.len() {
        let mut torn = bytes.clone();
        torn[from..].fill(0);
        let expected = Decoded { text: lines[..28].to_vec(), whole: starts[2] };
        assert_eq!(decode(&torn), Ok(expected), "zeros from {from}");
    }
    for from in [starts[1] + 9, starts[2] - 2] {
        let mut damaged = bytes.clone();
        damaged[from..starts[2]].fill(0);
        assert!(decode(&damaged).is_err(), "what follows was written");
    }
}

#[test]
fn a_frame_without_its_checksum_gives_whole_lines_back_and_no_part_of_one() {
    for (content, lines) in [(&b"{\"n\":1}\n{\"n\""[..], &b"{\"n\":1}\n"[..]), (b"{\"n\"", b"")] {
        let mut torn = encode(content).expect("encoded");
        let checksum = torn.len() - CHECKSUM_BYTES;
        torn[checksum..].fill(0);
        assert_eq!(recover(&torn), lines);
    }
}

#[test]
fn a_frame_that_lacks_the_end_of_its_checksum_gives_all_its_lines_back() {
    let (bytes, _) = log();
    let last = starts(&bytes)[2];
    for zeros in 1..CHECKSUM_BYTES {
        let mut torn = bytes[last..].to_vec();
        let written = torn.len() - zeros;
        torn[written..].fill(0);
        assert_eq!(recover(&torn), b"{\"n\":4}\n", "{zeros} zeros");
        // Another checksum, or another text, is no torn write.
        let mut damaged = torn.clone();
        damaged[written - 1] ^= 1;
        assert_eq!((recover(&damaged), decode(&damaged).is_err()), (Vec::new(), true));
    }
}

/// A frame that says to hold this many blocks of 128 KiB, each a byte repeated.
fn swollen(blocks: usize) -> Vec<u8> {
    let content = u32::try_from(blocks * 128 * 1024).expect("within a frame");
    let mut frame = [&MAGIC[..], &[0b1010_0100], &content.to_le_bytes()].concat();
    for block in 1..=blocks {
        let header = (128_u32 * 1024) << 3 | 0b10 | u32::from(block == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b'x');
    }
    frame.extend([0; CHECKSUM_BYTES]);
    frame
}

#[test]
fn a_log_that_says_to_hold_more_than_any_is_refused_before_memory_is_taken_for_it() {
    let (bytes, _) = log();
    let frame = swollen(2_048);
    let swollen = [&bytes[..], &frame.repeat(4)].concat();
    let broken = decode(&swollen).expect_err("more than the limit");
    let declared = LOG_BYTES_MAX + 36;
    assert_eq!(broken.why, FrameFault::LogTooLong { declared });
    assert_eq!(broken.offset, (bytes.len() + 3 * frame.len()) as u64);
    assert!(broken.why.is_of_memory());
    // One less is looked into.
    let within = [&bytes[..], &swollen[bytes.len() + frame.len()..]].concat();
    assert!(!decode(&within).expect_err("no checksum").why.is_of_memory());
}

#[test]
fn a_flipped_bit_is_damage_in_its_frame_and_never_another_text() {
    let (bytes, lines) = log();
    let starts = starts(&bytes);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let frame = starts.iter().filter(|start| **start <= bit / 8).count() - 1;
        match decode(&flipped) {
            Err(broken) => {
                assert_eq!((broken.line, broken.offset), ([1, 2, 4][frame], starts[frame] as u64));
            }
            Ok(decoded) if decoded.whole == bytes.len() => assert_eq!(decoded.text, lines),
            Ok(torn) => {
                assert_eq!((frame, torn.whole), (2, starts[2]), "only the last one looks torn");
            }
        }
    }
}

#[test]
fn a_frame_whose_length_is_wrong_does_not_take_the_ones_behind_it_for_its_own() {
    let (mut bytes, _) = log();
    let second = starts(&bytes)[1];
    // The size in the header of its block.
    bytes[second + 7] = 0xff;
    assert_eq!(fault(&bytes), (2, FrameFault::Swallowing));
}

#[test]
fn what_follows_the_frames_and_is_none_is_damage() {
    let (bytes, _) = log();
    for tail in [&b"\n"[..], b"{\"n\":5}\n", b"\x50\x2a\x4d\x18\0\0\0\0", b"x\0\0\0\0\0\0"] {
        assert_eq!(fault(&[&bytes, tail].concat()), (5, FrameFault::NoFrame));
    }
}

#[test]
fn a_frame_holds_whole_lines_and_the_first_one_line() {
    let part = |lines: &[u8]| encode(lines).expect("encoded");
    assert_eq!(fault(&part(b"{}\n{}\n")), (1, FrameFault::First));
    assert_eq!(first(&part(b"{}\n{}\n")), Err(FrameFault::First));
    assert_eq!(fault(&[part(b"{}\n"), part(b"{}\n{")].concat()), (2, FrameFault::Lines));
    assert_eq!(fault(&part(b"{}")), (1, FrameFault::Lines));
}

#[test]
fn whole_lines_of_a_cut_frame_are_recovered_as_far_as_they_decode() {
    // So long that a frame has several blocks, and no two are alike.
    let line = |number: u64| format!("{{\"n\":{}}}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lines: String = (0..40_000).map(line).collect();
    let frame = encode(lines.as_bytes()).expect("encoded");
    let mut longest = 0;
    for cut in (0..frame.len()).step_by(frame.len() / 50) {
        let recovered = recover(&frame[..cut]);
        assert!(lines.as_bytes().starts_with(&recovered), "cut at {cut}");
        assert!(recovered.is_empty() || recovered.ends_with(b"\n"), "cut at {cut}");
        assert!(recovered.len() >= longest, "cut at {cut}");
        longest = recovered.len();
    }
    assert!(longest > lines.len() / 2, "{longest} of {}", lines.len());
    assert_eq!(recover(b""), b"");
    assert_eq!(recover(b"no frame"), b"");
    assert_eq!(recover(&[0; 64]), b"");
}

#[test]
fn a_decoder_that_met_damage_reads_the_next_log_as_a_new_one_would() {
    let ((bytes, text), decoders) = (log(), Decoders::default());
    let whole = bytes.len();
    for at in 0..whole {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        super::decode(&damaged, &decoders).ok();
        let sound = super::decode(&bytes, &decoders);
        assert_eq!(sound.as_ref().map(|it| (&it.text, it.whole)), Ok((&text, whole)), "{at}");
    }
    assert_eq!(format!("{decoders:?}"), "Decoders(1)");
}
