//! What can still be had of frames of which some are damaged: every whole and sound one, wherever it
//! begins, and the beginning of a last one that was cut.

use zstd::zstd_safe::DCtx;

use crate::store::frames::fault::FrameFault;
use crate::store::frames::walk::{CHECKSUM_BYTES, Walk, walk};
use crate::store::frames::{Decoders, decompress, delivered, next_frame, recover, whole_lines};

/// A piece of the bytes of a log, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// What a frame holds.
    Text {
        /// Where the frame begins.
        offset: u64,
        /// Its content.
        text: Vec<u8>,
    },
    /// Bytes that are no sound frame.
    Lost {
        /// Where they begin.
        offset: u64,
        /// How many there are.
        bytes: u64,
        /// What is wrong with them; nothing, if they were torn off a write.
        why: Option<FrameFault>,
        /// The whole lines that they hold all the same, for which nothing vouches.
        text: Vec<u8>,
    },
}

/// All that can be had of these bytes.
#[must_use]
pub fn salvage(bytes: &[u8], decoders: &Decoders) -> Vec<Piece> {
    decoders.with(|decoder| salvage_with(bytes, decoder))
}

fn salvage_with(bytes: &[u8], decoder: &mut DCtx<'_>) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(rest @ [_, ..]) = bytes.get(at..) {
        let offset = at as u64;
        let why = match sound(rest, decoder) {
            Ok((size, text)) => {
                pieces.push(Piece::Text { offset, text });
                at += size;
                continue;
            }
            Err(why) => why,
        };
        let next = next_frame(rest, decoder);
        let why = match (why, next) {
            (None, Some(_)) => Some(FrameFault::Swallowing),
            (why, _) => why,
        };
        let lost = next.unwrap_or(rest.len());
        let text = match why {
            Some(_) => unproven(rest.get(..lost).unwrap_or_default(), decoder),
            None => recover(rest),
        };
        pieces.push(Piece::Lost { offset, bytes: lost as u64, why, text });
        at += lost;
    }
    pieces
}

/// The whole lines that a damaged frame delivers before its damage is seen. Its checksum is left out: with
/// a wrong one the decoder may keep the last of them back.
fn unproven(damaged: &[u8], decoder: &mut DCtx<'_>) -> Vec<u8> {
    let end = match walk(damaged) {
        Ok(Walk::Whole(frame)) => frame.size.saturating_sub(CHECKSUM_BYTES),
        Ok(Walk::Cut) | Err(_) => damaged.len(),
    };
    whole_lines(delivered(damaged.get(..end).unwrap_or_default(), decoder))
}

/// The size and the content of the frame with which the bytes begin; no reason, if it is only cut.
fn sound(bytes: &[u8], decoder: &mut DCtx<'_>) -> Result<(usize, Vec<u8>), Option<FrameFault>> {
    match walk(bytes) {
        Ok(Walk::Whole(frame)) => {
            let mut text = Vec::new();
            decompress(decoder, bytes, frame, &mut text).map_err(Some)?;
            Ok((frame.size, text))
        }
        Ok(Walk::Cut) => Err(None),
        Err(why) => Err(Some(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::frames::encode;

    fn frame(text: &str) -> Vec<u8> {
        encode(text.as_bytes()).expect("a frame can be made")
    }

    fn text(offset: usize, text: &str) -> Piece {
        Piece::Text { offset: offset as u64, text: text.as_bytes().to_vec() }
    }

    fn salvaged(bytes: &[u8]) -> Vec<Piece> {
        salvage(bytes, &Decoders::default())
    }

    #[test]
    fn behind_a_damaged_frame_the_sound_ones_are_found() {
        let (first, second, third) =
            (frame("{\"a\":1}\n"), frame("{\"b\":2}\n"), frame("{\"c\":3}\n"));
        let whole = [first.clone(), second.clone(), third.clone()].concat();
        let third_at = first.len() + second.len();
        for damaged in first.len()..third_at {
            let mut bytes = whole.clone();
            *bytes.get_mut(damaged).expect("inside") ^= 0xff;
            let pieces = salvaged(&bytes);
            assert_eq!(pieces.first(), Some(&text(0, "{\"a\":1}\n")), "byte {damaged}");
            assert_eq!(pieces.last(), Some(&text(third_at, "{\"c\":3}\n")), "byte {damaged}");
            let [_, Piece::Lost { offset, bytes, text, .. }, _] = pieces.as_slice() else {
                panic!("byte {damaged}: {pieces:?}");
            };
            assert_eq!((*offset, *bytes), (first.len() as u64, second.len() as u64));
            assert!(text.is_empty() || text.ends_with(b"\n"), "byte {damaged}: {text:?}");
            if damaged >= third_at - CHECKSUM_BYTES {
                assert_eq!(text, b"{\"b\":2}\n", "all but the checksum is sound");
            }
        }
    }

    #[test]
    fn before_its_damage_a_frame_of_many_blocks_gives_whole_lines() {
        let numbers: Vec<_> = (0..60_000).map(|number| format!("{{\"n\":{number}}}")).collect();
        let lines = numbers.join("\n") + "\n";
        let mut bytes = [frame("{\"a\":1}\n"), frame(&lines), frame("{\"c\":3}\n")].concat();
        let middle = bytes.len() / 2;
        *bytes.get_mut(middle).expect("inside") ^= 0xff;
        let pieces = salvaged(&bytes);
        let [_, Piece::Lost { why: Some(_), text, .. }, Piece::Text { .. }] = pieces.as_slice()
        else {
            panic!("{pieces:?}");
        };
        assert!(text.len() <= lines.len() && text.ends_with(b"\n"));
        let block = lines.as_bytes().get(..64 * 1024).expect("longer");
        assert!(text.starts_with(block), "what stands before the damage is as it was");
    }

    #[test]
    fn a_cut_frame_at_the_end_gives_what_it_delivers_and_is_told() {
        let numbers: Vec<_> = (0..60_000).map(|number| format!("{{\"n\":{number}}}")).collect();
        let lines = numbers.join("\n") + "\n";
        let (first, cut) = (frame("{\"a\":1}\n"), frame(&lines));
        let cut = cut.get(..cut.len() - 7).expect("longer");
        let pieces = salvaged(&[&first, cut].concat());
        let [_, Piece::Lost { why: None, bytes, text, .. }] = pieces.as_slice() else {
            panic!("{pieces:?}");
        };
        assert!(!text.is_empty() && lines.as_bytes().starts_with(text) && text.ends_with(b"\n"));
        assert_eq!(*bytes, cut.len() as u64);
    }

    #[test]
    fn of_what_is_no_frame_at_all_nothing_is_had_and_all_of_it_is_told() {
        let lost =
            Piece::Lost { offset: 0, bytes: 8, why: Some(FrameFault::NoFrame), text: Vec::new() };
        assert_eq!(salvaged(b"{\"a\":1}\n"), [lost]);
        assert_eq!(salvaged(b""), []);
    }
}
