//! Frames of lines: bytes that nobody encoded, and logs that were encoded and then damaged, which may
//! be refused or torn and never say anything that was not written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnstile::store::frames::salvage::Piece;
use turnstile::store::frames::walk::{Walk, walk};
use turnstile::store::frames::{Decoders, First, begin, decode, encode, first, recover, salvage};

/// The first bytes of an input say how the log is written and damaged; the others are its lines.
const ORDERS_BYTES: usize = 16;
/// What a batch holds at most.
const BATCH_LINES_MAX: usize = 7;
/// Bytes that are changed at most: too few to make a frame of.
const FLIPS_MAX: usize = 3;
/// What may be decoded for the bytes that are said to be in all whole frames, and what is reserved for
/// a frame behind them.
const GROWTH: usize = 2;

fuzz_target!(|input: &[u8]| {
    read_anything(input);
    let Some((orders, lines)) = input.split_first_chunk::<ORDERS_BYTES>() else { return };
    let log = Log::of(lines, orders);
    log.check_whole();
    log.check_damaged(orders);
});

/// Reads bytes that nobody encoded.
fn read_anything(bytes: &[u8]) {
    let decoders = Decoders::default();
    let begins = first(bytes, &decoders);
    if let Ok(decoded) = decode(bytes, &decoders) {
        assert!(decoded.whole <= bytes.len());
        assert!(decoded.text.is_empty() || decoded.text.ends_with(b"\n"));
        assert!(decoded.text.capacity() <= declared(bytes) * GROWTH, "memory for what is there");
        match first_line(&decoded.text) {
            Some(line) => assert_eq!(begins, Ok(First::Line(line.to_vec()))),
            None => assert!(!matches!(begins, Ok(First::Line(_))), "{begins:?}"),
        }
    }
    let recovered = recover(bytes);
    assert!(recovered.is_empty() || recovered.ends_with(b"\n"));
    check_pieces(bytes);
}

/// What is saved of bytes are all of them, one after the other, and whole lines where they are none of a
/// sound frame.
fn check_pieces(bytes: &[u8]) {
    let mut end = 0;
    for piece in salvage(bytes, &Decoders::default()) {
        match piece {
            Piece::Text { offset, .. } => {
                let offset = usize::try_from(offset).expect("within the bytes");
                assert!(offset >= end, "it stands before the last piece");
                let frame = walk(&bytes[offset..]).expect("a frame begins there");
                let Walk::Whole(frame) = frame else { panic!("it is whole") };
                end = offset + frame.size;
            }
            Piece::Lost { offset, bytes: lost, text, .. } => {
                assert_eq!(offset, end as u64, "nothing is passed over");
                assert!(text.is_empty() || text.ends_with(b"\n"));
                end += usize::try_from(lost).expect("within the bytes");
            }
        }
    }
    assert_eq!(end, bytes.len(), "nothing is left out");
}

/// How many bytes the frames say to hold, as far as one follows the other.
fn declared(mut bytes: &[u8]) -> usize {
    let mut content = 0;
    while let Ok(Walk::Whole(frame)) = walk(bytes) {
        content += frame.content;
        bytes = bytes.get(frame.size..).unwrap_or_default();
    }
    content
}

fn first_line(text: &[u8]) -> Option<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').next()
}

/// A log that was written batch by batch.
struct Log {
    lines: Vec<u8>,
    bytes: Vec<u8>,
    /// After how many bytes of the file each frame ends, and after how many of its lines.
    ends: Vec<(usize, usize)>,
}

impl Log {
    fn of(text: &[u8], orders: &[u8; ORDERS_BYTES]) -> Self {
        let mut lines: Vec<Vec<u8>> =
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
            last.push(b'\n');
        }
        let mut log = Self { lines: Vec::new(), bytes: Vec::new(), ends: Vec::new() };
        let mut rest = lines.as_slice();
        let mut sizes =
            orders.iter().map(|order| 1 + usize::from(*order) % BATCH_LINES_MAX).cycle();
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1).min(rest.len());
            let (batch, left) = rest.split_at(size);
            log.append(&batch.concat());
            rest = left;
        }
        log
    }

    fn append(&mut self, batch: &[u8]) {
        let frames = if self.bytes.is_empty() { begin(batch) } else { encode(batch) };
        let frames = frames.expect("lines of any kind can be encoded");
        let mut rest = frames.as_slice();
        while let Ok(Walk::Whole(frame)) = walk(rest) {
            let (bytes, lines) = self.ends.last().copied().unwrap_or_default();
            self.ends.push((bytes + frame.size, lines + frame.content));
            rest = &rest[frame.size..];
        }
        assert!(rest.is_empty(), "what was encoded is frames");
        self.bytes.extend(frames);
        self.lines.extend(batch);
    }

    fn check_whole(&self) {
        let decoded = decode(&self.bytes, &Decoders::default()).expect("nothing is damaged");
        assert_eq!(decoded.text, self.lines);
        assert_eq!(decoded.whole, self.bytes.len());
    }

    /// Cut, changed in a few places, and followed by zeros, in every combination.
    fn check_damaged(&self, orders: &[u8; ORDERS_BYTES]) {
        let [kinds, zeros, cut_high, cut_low, rest @ ..] = orders;
        let mut bytes = self.bytes.clone();
        if kinds & 1 != 0 {
            let cut = usize::from(u16::from_be_bytes([*cut_high, *cut_low]));
            bytes.truncate(cut % (bytes.len() + 1));
            let recovered = recover(self.behind_whole_frames(&bytes));
            let (_, lines) = self.whole_frames(bytes.len());
            assert!(self.lines[lines..].starts_with(&recovered), "whole lines and no others");
        }
        let flips = if kinds & 2 != 0 { FLIPS_MAX } else { 0 };
        for flip in rest.chunks_exact(3).take(flips) {
            let [at_high, at_low, mask] = flip else { continue };
            let at = usize::from(u16::from_be_bytes([*at_high, *at_low]));
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= mask;
            }
        }
        if kinds & 4 != 0 {
            bytes.resize(bytes.len() + usize::from(*zeros), 0);
        }
        self.check_said(&bytes);
    }

    /// Whatever was done to the bytes: what they are said to hold was written, and ends with a frame.
    fn check_said(&self, bytes: &[u8]) {
        let decoders = Decoders::default();
        check_pieces(bytes);
        if let Ok(decoded) = decode(bytes, &decoders) {
            let said = decoded.text.len();
            assert!(self.lines.starts_with(&decoded.text), "something else than was written");
            assert!(
                said == 0 || self.ends.iter().any(|(_, lines)| *lines == said),
                "part of a frame"
            );
        }
        if let Ok(First::Line(line)) = first(bytes, &decoders) {
            assert_eq!(Some(line.as_slice()), first_line(&self.lines));
        }
    }

    /// The end of the last frame that lies within so many bytes.
    fn whole_frames(&self, bytes: usize) -> (usize, usize) {
        let within = self.ends.iter().take_while(|(end, _)| *end <= bytes);
        within.last().copied().unwrap_or_default()
    }

    fn behind_whole_frames<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let (end, _) = self.whole_frames(bytes.len());
        bytes.get(end..).unwrap_or_default()
    }
}
