//! Files line by line, whatever they hold: lines of any length, content that is no text.

use std::io::{self, BufRead};

use crate::tools::output::{LINE_BYTES_MAX, clip_line};

/// How much of a file is looked at to tell text from other content.
pub(crate) const SNIFFED_BYTES: usize = 8 * 1024;

/// What a file holds, by how it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Image,
    Binary,
}

impl Content {
    /// The kind of what begins like this.
    pub(crate) fn of(start: &[u8]) -> Self {
        let start = start.get(..SNIFFED_BYTES).unwrap_or(start);
        let magic: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"\xFF\xD8\xFF", b"GIF87a", b"GIF89a"];
        let is_webp = start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP");
        if is_webp || magic.iter().any(|magic| start.starts_with(magic)) {
            Self::Image
        } else if start.contains(&0) {
            Self::Binary
        } else {
            Self::Text
        }
    }
}

/// Reads lines and keeps of each no more than is shown.
pub(crate) struct LineReader<R> {
    reader: R,
    kept: Vec<u8>,
    bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, kept: Vec::new(), bytes: 0 }
    }

    /// How much has been read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Goes over the next line; whether there was one.
    pub(crate) fn skip(&mut self) -> io::Result<bool> {
        Ok(self.advance(0)?.is_some())
    }

    /// The next line without its end, clipped; `None` at the end.
    pub(crate) fn read(&mut self) -> io::Result<Option<String>> {
        // Two bytes more, for a line end.
        let Some(mut bytes) = self.advance(LINE_BYTES_MAX + 2)? else { return Ok(None) };
        for end in [b'\n', b'\r'] {
            if self.kept.len() as u64 == bytes && self.kept.last() == Some(&end) {
                self.kept.pop();
                bytes -= 1;
            }
        }
        Ok(Some(clip_line(&self.kept, bytes)))
    }

    /// Goes over the next line, keeps the first `bytes_kept` of it and says how long it is.
    fn advance(&mut self, bytes_kept: usize) -> io::Result<Option<u64>> {
        self.kept.clear();
        let mut length = 0;
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', chunk).map(|at| at + 1);
            let taken = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let room = bytes_kept - self.kept.len();
            self.kept.extend(taken.iter().take(room));
            let consumed = taken.len();
            length += consumed as u64;
            self.bytes += consumed as u64;
            self.reader.consume(consumed);
            if end.is_some() || consumed == 0 {
                return Ok((length > 0).then_some(length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_whatever_the_chunks() {
        let text = "one\r\n\ntwo ä\n\r\nlast";
        for capacity in 1..8 {
            let mut reader =
                LineReader::new(io::BufReader::with_capacity(capacity, text.as_bytes()));
            let mut lines = Vec::new();
            while let Some(line) = reader.read().unwrap() {
                lines.push(line);
            }
            assert_eq!(lines, ["one", "", "two ä", "", "last"], "capacity {capacity}");
            assert_eq!(reader.bytes(), text.len() as u64);
        }
    }

    #[test]
    fn a_line_without_end_is_kept_in_part_and_can_be_skipped() {
        let long = "x".repeat(LINE_BYTES_MAX + 100) + "\r\nnext";
        let mut reader = LineReader::new(long.as_bytes());
        let line = reader.read().unwrap().unwrap();
        assert!(line.ends_with("x [102 more bytes]"), "{line}");
        let mut reader = LineReader::new(long.as_bytes());
        assert!(reader.skip().unwrap());
        assert_eq!(reader.read().unwrap().as_deref(), Some("next"));
        assert!(!reader.skip().unwrap());
    }

    #[test]
    fn content_is_told_by_how_it_begins() {
        assert_eq!(Content::of(b""), Content::Text);
        assert_eq!(Content::of("ä\u{fffd}".as_bytes()), Content::Text);
        assert_eq!(Content::of(b"ELF\0"), Content::Binary);
        assert_eq!(Content::of(b"\x89PNG\r\n\x1a\n\0"), Content::Image);
        assert_eq!(Content::of(b"RIFF\x01\0\0\0WEBP"), Content::Image);
    }
}
