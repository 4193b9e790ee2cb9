//! Where a Zstandard frame ends, and how much it says to hold, by its headers alone (RFC 8878, section
//! 3.1.1). Nothing is decompressed, and nothing of what is found is believed: only the decoder knows
//! whether a frame is sound.

use crate::store::frames::fault::FrameFault;

/// What one frame may say to hold: more than any record, and no more than memory takes at once.
pub const FRAME_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What all frames of one log may say to hold. A log is read into memory as a whole, and a few bytes can
/// say to hold a thousand times as many: far more than any turn comes to, and what a machine still has.
pub const LOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The first bytes of every frame.
pub(super) const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
pub(super) const CHECKSUM_BYTES: usize = 4;
const BLOCK_HEADER_BYTES: usize = 3;
/// What a block holds at most, of whatever kind it is.
const BLOCK_BYTES_MAX: usize = 128 * 1024;

/// How far a frame's headers lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// To its end.
    Whole(Frame),
    /// To the end of the bytes, which the frame goes beyond.
    Cut,
}

/// A frame of which all bytes are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How many bytes it takes.
    pub size: usize,
    /// How many bytes it says to hold.
    pub content: usize,
}

/// Follows the frame that begins with the first of these bytes.
///
/// # Errors
/// [`FrameFault`] if no frame begins there, or one that this program does not write.
pub fn walk(bytes: &[u8]) -> Result<Walk, FrameFault> {
    let mut steps = Steps { rest: bytes };
    Ok(steps.frame(bytes.len())?.map_or(Walk::Cut, Walk::Whole))
}

/// The bytes that have not been passed. Whatever runs out of them gives nothing.
struct Steps<'a> {
    rest: &'a [u8],
}

impl Steps<'_> {
    fn frame(&mut self, all: usize) -> Result<Option<Frame>, FrameFault> {
        self.magic()?;
        let Some(declared) = self.header()? else { return Ok(None) };
        let Some(possible) = self.blocks()? else { return Ok(None) };
        if declared > possible {
            return Err(FrameFault::Overstated { declared, possible });
        }
        let content = usize::try_from(declared).map_err(|_| FrameFault::TooLong { declared })?;
        let checksum = self.take(CHECKSUM_BYTES);
        Ok(checksum.map(|_| Frame { size: all - self.rest.len(), content }))
    }

    fn magic(&mut self) -> Result<(), FrameFault> {
        let found = self.rest.get(..MAGIC.len()).unwrap_or(self.rest);
        if !MAGIC.starts_with(found) {
            return Err(FrameFault::NoFrame);
        }
        self.rest = self.rest.get(MAGIC.len()..).unwrap_or_default();
        Ok(())
    }

    /// How many bytes the frame says to hold.
    fn header(&mut self) -> Result<Option<u64>, FrameFault> {
        let Some(flags) = self.take(1) else { return Ok(None) };
        let is_single = flags & 0b10_0000 != 0;
        if flags & 0b1000 != 0 {
            return Err(FrameFault::Reserved);
        }
        if flags & 0b11 != 0 {
            return Err(FrameFault::Dictionary);
        }
        if flags & 0b100 == 0 {
            return Err(FrameFault::NoChecksum);
        }
        let (width, least) = match flags >> 6 {
            0 if is_single => (1, 0),
            0 => return Err(FrameFault::NoLength),
            1 => (2, 256),
            2 => (4, 0),
            _ => (8, 0),
        };
        if !is_single && self.take(1).is_none() {
            return Ok(None);
        }
        let declared = self.take(width).map(|length| length.saturating_add(least));
        match declared {
            Some(declared) if declared > FRAME_BYTES_MAX => Err(FrameFault::TooLong { declared }),
            declared => Ok(declared),
        }
    }

    /// How many bytes the blocks can hold at most.
    fn blocks(&mut self) -> Result<Option<u64>, FrameFault> {
        let mut possible = 0;
        loop {
            let Some(header) = self.take(BLOCK_HEADER_BYTES) else { return Ok(None) };
            let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
            if size > BLOCK_BYTES_MAX {
                return Err(FrameFault::Reserved);
            }
            let (bytes, holds) = match header >> 1 & 0b11 {
                0 => (size, size),
                // One byte, repeated.
                1 => (1, size),
                2 => (size, BLOCK_BYTES_MAX),
                _ => return Err(FrameFault::Reserved),
            };
            let Some(rest) = self.rest.get(bytes..) else { return Ok(None) };
            self.rest = rest;
            possible += holds as u64;
            if header & 1 != 0 {
                return Ok(Some(possible));
            }
        }
    }

    /// The next few bytes as a number, the least first.
    fn take(&mut self, count: usize) -> Option<u64> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::frames::encode;
    use proptest::prelude::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        encode(content).expect("encoded")
    }

    fn check_refused(frame: &[u8], why: &FrameFault) {
        assert_eq!(walk(frame).as_ref(), Err(why));
    }

    #[test]
    fn a_frame_is_followed_to_its_end_whatever_follows() {
        let noise: Vec<u8> = (0..400_000_u64).map(|at| (at * at % 251) as u8).collect();
        for content in [&b"\n"[..], b"{}\n", &[b'x'; 300], &[b'y'; 10_000], &noise] {
            let content = [content, b"\n"].concat();
            let frame = frame(&content);
            let whole = Walk::Whole(Frame { size: frame.len(), content: content.len() });
            assert_eq!(walk(&frame), Ok(whole));
            assert_eq!(walk(&[&frame[..], b"more"].concat()), Ok(whole));
            for cut in [0, 1, 3, 4, 5, 6, 9, frame.len() / 2, frame.len() - 1] {
                assert_eq!(walk(&frame[..cut.min(frame.len() - 1)]), Ok(Walk::Cut), "{cut}");
            }
        }
    }

    #[test]
    fn what_this_program_does_not_write_is_refused_by_its_header() {
        let frame = frame(b"{}\n");
        let with = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[at] = byte;
            frame
        };
        check_refused(b"{}\n", &FrameFault::NoFrame);
        check_refused(b"\x28\xb5\x2f\xfe", &FrameFault::NoFrame);
        // Frames to be skipped, and those of the seventh version.
        check_refused(b"\x50\x2a\x4d\x18\0\0\0\0", &FrameFault::NoFrame);
        check_refused(b"\x27\xb5\x2f\xfd", &FrameFault::NoFrame);
        let flags = frame[4];
        check_refused(&with(4, flags | 0b1000), &FrameFault::Reserved);
        check_refused(&with(4, flags | 0b1), &FrameFault::Dictionary);
        check_refused(&with(4, flags & !0b100), &FrameFault::NoChecksum);
        check_refused(&with(4, flags & !0b10_0000), &FrameFault::NoLength);
        check_refused(&with(5, 200), &FrameFault::Overstated { declared: 200, possible: 3 });
        // The third kind of block, and one that is too long.
        check_refused(&with(6, frame[6] | 0b110), &FrameFault::Reserved);
        check_refused(&with(8, 0xff), &FrameFault::Reserved);
    }

    #[test]
    fn a_frame_that_says_to_hold_more_than_the_limit_is_refused_before_anything_is_made_for_it() {
        let said = |declared: u64| {
            [&MAGIC[..], &[0b1110_0100], &declared.to_le_bytes(), &[1, 0, 0, 0]].concat()
        };
        for declared in [FRAME_BYTES_MAX + 1, u64::MAX] {
            check_refused(&said(declared), &FrameFault::TooLong { declared });
        }
        let declared = FRAME_BYTES_MAX;
        check_refused(&said(declared), &FrameFault::Overstated { declared, possible: 0 });
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_followed_without_leaving_them(
            bytes in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            let bytes = [&MAGIC[..], &[0b10_0100], &bytes].concat();
            if let Ok(Walk::Whole(frame)) = walk(&bytes) {
                prop_assert!(frame.size <= bytes.len());
                prop_assert!(frame.content as u64 <= FRAME_BYTES_MAX);
            }
        }
    }
}
