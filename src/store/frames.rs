//! Lines as Zstandard frames: each batch is one frame of whole lines with a checksum of its content,
//! and the first frame of a log is its first record alone. Works on bytes and touches no file.
//!
//! A frame counts once the decoder has taken all of it: a frame that was cut delivers content before
//! its error, and so does one whose checksum is wrong. What a crash in the middle of a write leaves is
//! the last frame cut short, or zeros in the place of its end, if only of its checksum's; everything else
//! that cannot be read is damage.

pub mod fault;
pub mod salvage;
pub mod walk;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name,
};

use crate::store::frames::fault::{Broken, FrameFault};
use crate::store::frames::walk::{
    CHECKSUM_BYTES, FRAME_BYTES_MAX, Frame, LOG_BYTES_MAX, MAGIC, Walk, walk,
};

/// Of what a session appends, 2 KB a batch, this makes 40 % in 30 µs; level 1 makes 41 % in the same time,
/// 9 and 12 make 38 % in five and twelve times that. Of a log that is written at once it makes 22 %.
const LEVEL: i32 = 3;

/// How many decoders wait for their next log: more threads than read logs at once.
const DECODERS_MAX: usize = 16;

pub use salvage::salvage;

/// Decoders that are used again: making one takes three times as long as a log of one frame does.
#[derive(Default)]
pub struct Decoders(Mutex<Vec<DCtx<'static>>>);

impl Decoders {
    fn with<T>(&self, work: impl FnOnce(&mut DCtx<'static>) -> T) -> T {
        let mut decoder = self.idle().pop().unwrap_or_else(DCtx::create);
        let done = work(&mut decoder);
        let mut idle = self.idle();
        if idle.len() < DECODERS_MAX {
            idle.push(decoder);
        }
        done
    }

    fn idle(&self) -> MutexGuard<'_, Vec<DCtx<'static>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Decoders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoders").field(&self.idle().len()).finish()
    }
}

/// The bytes of a log, as far as they are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The lines of all whole frames.
    pub text: Vec<u8>,
    /// How many bytes the whole frames take; the torn ones follow.
    pub whole: usize,
}

/// The first frame of a log, as far as its first bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum First {
    /// It holds this line, with its end.
    Line(Vec<u8>),
    /// It goes on.
    GoesOn,
}

/// The bytes of a log that begins with these whole lines.
///
/// # Errors
/// As [`encode`].
pub fn begin(lines: &[u8]) -> Result<Vec<u8>, FrameFault> {
    let first = memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
    let (first, rest) = lines.split_at(first);
    let mut bytes = encode(first)?;
    bytes.extend(encode(rest)?);
    Ok(bytes)
}

/// These whole lines as a frame; as several, if one cannot hold them. The same lines are the same bytes.
///
/// # Errors
/// [`FrameFault::TooLong`] for a line that no frame can hold, and what the encoder says.
pub fn encode(lines: &[u8]) -> Result<Vec<u8>, FrameFault> {
    encode_within(lines, usize::try_from(FRAME_BYTES_MAX).unwrap_or(usize::MAX))
}

fn encode_within(mut lines: &[u8], bytes_max: usize) -> Result<Vec<u8>, FrameFault> {
    let mut frames = Vec::new();
    while !lines.is_empty() {
        let fits = lines
            .get(..bytes_max)
            .map_or(lines.len(), |head| memchr::memrchr(b'\n', head).map_or(0, |end| end + 1));
        if fits == 0 {
            let line = memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
            return Err(FrameFault::TooLong { declared: line as u64 });
        }
        let (head, rest) = lines.split_at(fits);
        compress(head, &mut frames)?;
        lines = rest;
    }
    Ok(frames)
}

/// Adds one frame.
fn compress(content: &[u8], frames: &mut Vec<u8>) -> Result<(), FrameFault> {
    let unmade = |code| FrameFault::Unmade(get_error_name(code));
    let bound = compress_bound(content.len());
    frames.try_reserve_exact(bound).map_err(|_| FrameFault::NoMemory { bytes: bound })?;
    let mut encoder = CCtx::try_create().ok_or(FrameFault::NoMemory { bytes: bound })?;
    encoder.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(unmade)?;
    encoder.set_parameter(CParameter::ChecksumFlag(true)).map_err(unmade)?;
    let mut frame = Vec::new();
    frame.try_reserve_exact(bound).map_err(|_| FrameFault::NoMemory { bytes: bound })?;
    encoder.compress2(&mut frame, content).map_err(unmade)?;
    frames.extend_from_slice(&frame);
    Ok(())
}

/// The lines of a log, frame by frame.
///
/// # Errors
/// [`Broken`] with the first frame that is damaged.
pub fn decode(bytes: &[u8], decoders: &Decoders) -> Result<Decoded, Broken> {
    decoders.with(|decoder| decode_with(bytes, decoder))
}

fn decode_with(bytes: &[u8], decoder: &mut DCtx<'_>) -> Result<Decoded, Broken> {
    let (mut text, mut whole, mut line) = (Vec::new(), 0, 1);
    // As much as is asked for below, at once; if that is not to be had, it is told there.
    text.try_reserve_exact(declared(bytes)?).ok();
    while let Some(rest @ [_, ..]) = bytes.get(whole..) {
        let (start, offset) = (text.len(), whole as u64);
        let broken = move |why| Broken { line, offset, why };
        let found = match walk(rest) {
            Ok(Walk::Whole(frame)) => {
                decompress(decoder, rest, frame, &mut text).map(|()| Some(frame))
            }
            Ok(Walk::Cut) => Ok(None),
            Err(why) => Err(why),
        };
        match found {
            Ok(Some(frame)) => whole += frame.size,
            Ok(None) if !holds_a_frame(rest) => break,
            Ok(None) => return Err(broken(FrameFault::Swallowing)),
            Err(_) if ends_unwritten(rest) && !holds_a_frame(rest) => break,
            Err(_) if unchecked(rest, decoder).is_some() => break,
            Err(why) => return Err(broken(why)),
        }
        let lines = text.get(start..).unwrap_or_default();
        let count = memchr::memchr_iter(b'\n', lines).count() as u64;
        if !lines.ends_with(b"\n") {
            return Err(broken(FrameFault::Lines));
        }
        if start == 0 && count != 1 {
            return Err(broken(FrameFault::First));
        }
        line += count;
    }
    Ok(Decoded { text, whole })
}

/// The first record of a log, of which these are the first bytes.
///
/// # Errors
/// What is wrong with the first frame.
pub fn first(bytes: &[u8], decoders: &Decoders) -> Result<First, FrameFault> {
    let frame = match walk(bytes) {
        Ok(Walk::Whole(frame)) => frame,
        Ok(Walk::Cut) => return Ok(First::GoesOn),
        // Nothing of it has reached the device.
        Err(_) if ends_unwritten(bytes) => return Ok(First::GoesOn),
        Err(why) => return Err(why),
    };
    let mut line = Vec::new();
    decoders.with(|decoder| decompress(decoder, bytes, frame, &mut line))?;
    let ends = memchr::memchr(b'\n', &line);
    if ends.map(|end| end + 1) == Some(line.len()) {
        Ok(First::Line(line))
    } else {
        Err(FrameFault::First)
    }
}

/// The whole lines that a torn frame delivers. Nothing vouches for them but that each is what it should
/// be, which is for the caller to see.
#[must_use]
pub fn recover(torn: &[u8]) -> Vec<u8> {
    let mut decoder = DCtx::create();
    whole_lines(match walk(torn) {
        Ok(Walk::Cut) => delivered(torn, &mut decoder),
        Ok(Walk::Whole(_)) | Err(_) => unchecked(torn, &mut decoder).unwrap_or_default(),
    })
}

fn whole_lines(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1));
    text
}

/// What the beginning of a cut or damaged frame holds, as far as it decodes.
fn delivered(frame: &[u8], decoder: &mut DCtx<'_>) -> Vec<u8> {
    let (mut text, mut piece) = (Vec::new(), vec![0; DCtx::out_size()]);
    // What another frame left in the middle.
    if decoder.reset(ResetDirective::SessionOnly).is_err() {
        return text;
    }
    let mut input = InBuffer::around(frame);
    while (text.len() as u64) < FRAME_BYTES_MAX {
        let before = input.pos();
        let mut output = OutBuffer::around(piece.as_mut_slice());
        let outcome = decoder.decompress_stream(&mut output, &mut input);
        text.extend_from_slice(output.as_slice());
        let is_stuck = output.pos() == 0 && input.pos() == before;
        if outcome.is_err() || is_stuck {
            break;
        }
    }
    decoder.reset(ResetDirective::SessionOnly).ok();
    text
}

/// Adds the content of the frame with which the bytes begin, if all of it is sound.
fn decompress(
    decoder: &mut DCtx<'_>,
    bytes: &[u8],
    frame: Frame,
    text: &mut Vec<u8>,
) -> Result<(), FrameFault> {
    let start = text.len();
    text.try_reserve(frame.content).map_err(|_| FrameFault::NoMemory { bytes: frame.content })?;
    text.resize(start + frame.content, 0);
    let content = text.get_mut(start..).unwrap_or_default();
    let frame_bytes = bytes.get(..frame.size).unwrap_or_default();
    let why = match decoder.decompress(content, frame_bytes) {
        Ok(size) if size == frame.content => return Ok(()),
        Ok(_) => "it holds less than it says",
        Err(code) => get_error_name(code),
    };
    text.truncate(start);
    Err(FrameFault::Damaged(why))
}

/// How many bytes all frames say to hold, up to the first that cannot be followed. The blocks of each
/// can hold that much.
fn declared(bytes: &[u8]) -> Result<usize, Broken> {
    let (mut content, mut rest) = (0_usize, bytes);
    while let Ok(Walk::Whole(frame)) = walk(rest) {
        content = content.saturating_add(frame.content);
        let declared = content as u64;
        if declared > LOG_BYTES_MAX {
            // Nothing has been decoded that could be counted.
            let offset = (bytes.len() - rest.len()) as u64;
            return Err(Broken { line: 1, offset, why: FrameFault::LogTooLong { declared } });
        }
        rest = rest.get(frame.size..).unwrap_or_default();
    }
    Ok(content)
}

/// Whether the bytes are the beginning of a frame and then zeros to the end, which is what a crash
/// leaves where the size of a file reached the device before its contents.
fn ends_unwritten(bytes: &[u8]) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let Some((written, zeros)) = bytes.split_at_checked(written) else { return false };
    // A frame may end in a zero by chance, and with a whole checksum of them it does not.
    written.is_empty() || (zeros.len() >= CHECKSUM_BYTES && walk(written) == Ok(Walk::Cut))
}

/// The content of a frame of which the last bytes of the checksum never reached the device, and nothing
/// else, if the bytes are one: it ends less than a checksum behind a boundary of what is written at once.
/// The content is all there then, and says what the checksum should be.
fn unchecked(bytes: &[u8], decoder: &mut DCtx<'_>) -> Option<Vec<u8>> {
    let Ok(Walk::Whole(frame)) = walk(bytes) else { return None };
    let (cut, found) = bytes.split_at_checked(frame.size.checked_sub(CHECKSUM_BYTES)?)?;
    let found: &[u8; CHECKSUM_BYTES] = found.try_into().ok()?;
    let written = found.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if written == CHECKSUM_BYTES {
        return None;
    }
    let content = content_of(cut, frame, decoder)?;
    let again = encode(&content).ok()?;
    let expected = again.last_chunk::<CHECKSUM_BYTES>()?;
    (expected.get(..written) == found.get(..written)).then_some(content)
}

/// All that a frame holds, of which the checksum is cut off.
fn content_of(cut: &[u8], frame: Frame, decoder: &mut DCtx<'_>) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    content.try_reserve_exact(frame.content).ok()?;
    decoder.reset(ResetDirective::SessionOnly).ok()?;
    let mut output = OutBuffer::around(&mut content);
    let mut input = InBuffer::around(cut);
    while input.pos() < cut.len() {
        let before = (input.pos(), output.pos());
        decoder.decompress_stream(&mut output, &mut input).ok()?;
        if before == (input.pos(), output.pos()) {
            break;
        }
    }
    decoder.reset(ResetDirective::SessionOnly).ok()?;
    (content.len() == frame.content).then_some(content)
}

/// Whether a whole and sound frame begins within the bytes, behind their first one. Then what the first
/// frame says of its length is wrong: what was never acknowledged is the last thing in a log.
fn holds_a_frame(bytes: &[u8]) -> bool {
    next_frame(bytes, &mut DCtx::create()).is_some()
}

/// Where the next whole and sound frame begins, behind the first of these bytes.
fn next_frame(bytes: &[u8], decoder: &mut DCtx<'_>) -> Option<usize> {
    let mut starts = memchr::memmem::find_iter(bytes.get(1..).unwrap_or_default(), &MAGIC);
    starts.find_map(|start| {
        let rest = bytes.get(start + 1..).unwrap_or_default();
        let Ok(Walk::Whole(frame)) = walk(rest) else { return None };
        decompress(decoder, rest, frame, &mut Vec::new()).ok().map(|()| start + 1)
    })
}

#[cfg(test)]
mod tests;
