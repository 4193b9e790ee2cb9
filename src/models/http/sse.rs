//! Server-sent events out of bytes, as the standard has them and as servers write them.
//!
//! Own code, because the library for it ends the stream at an unknown field, at a line without a
//! colon and at a byte that is no UTF-8, has no limit, and would lose the message of a llama.cpp
//! server, which reports an error in the middle of an answer in a field named `error`.

use std::borrow::Cow;

/// The longest event that is taken in; an answer of 8 MB in one piece is already a fault, but one
/// that others have survived.
pub(crate) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An event with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// What it was sent as.
    pub(crate) kind: Kind,
    /// Its data; bytes that are no UTF-8 are replaced.
    pub(crate) data: Cow<'a, str>,
}

/// What an event was sent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything but an error; the data says what.
    #[default]
    Message,
    /// An error, by its event name or its field.
    Error,
}

/// Whether more events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Yes.
    More,
    /// No, the answer has ended.
    Done,
}

/// An event is longer than [`EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Events out of bytes that come in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The bytes of a line whose end has not come.
    line: Vec<u8>,
    /// The data of the event so far, each line with a line end.
    data: Vec<u8>,
    kind: Kind,
    /// The last byte was a carriage return; a line feed now belongs to it.
    after_return: bool,
    /// A line has been read, so that no byte order mark can come any more.
    begun: bool,
}

impl Decoder {
    /// Takes the next bytes in and hands out the events that they complete, until `sink` has
    /// enough.
    ///
    /// # Errors
    /// [`TooLong`], or what `sink` says; nothing more can be read then.
    pub(crate) fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        if let Some(first) = bytes.first() {
            if self.after_return && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
            }
            self.after_return = false;
        }
        while let Some((line, rest)) = self.next_line(bytes) {
            bytes = rest;
            let blank = if self.line.is_empty() {
                self.take_line(line)
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let blank = self.take_line(&whole);
                whole.clear();
                self.line = whole;
                blank
            };
            self.check_length()?;
            if blank && self.hand_out(&mut sink)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.line.extend_from_slice(bytes);
        self.check_length()?;
        Ok(Flow::More)
    }

    /// Hands out the event that has no blank line after it because the bytes ended.
    ///
    /// # Errors
    /// What `sink` says.
    pub(crate) fn end<E>(
        &mut self,
        mut sink: impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        let line = std::mem::take(&mut self.line);
        self.take_line(&line);
        self.hand_out(&mut sink)
    }

    /// The bytes up to the next line end, and those behind it.
    fn next_line<'a>(&mut self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (line, rest) = bytes.split_at(memchr::memchr2(b'\n', b'\r', bytes)?);
        let rest = match rest {
            [b'\r'] => {
                self.after_return = true;
                &[]
            }
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
        Some((line, rest))
    }

    /// Says whether the line is blank, which ends an event.
    fn take_line(&mut self, mut line: &[u8]) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return true;
        }
        // Some servers send a bare JSON line where an event belongs, mostly an error.
        let bare = line.starts_with(b"{");
        let colon = if bare { None } else { memchr::memchr(b':', line) };
        let (field, value) = match colon {
            Some(at) => line.split_at(at),
            None => (line, [].as_slice()),
        };
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => self.push_data(value),
            b"error" => {
                self.kind = Kind::Error;
                self.push_data(value);
            }
            b"event" if value == b"error" => self.kind = Kind::Error,
            _ if bare => self.push_data(line),
            _ => {}
        }
        false
    }

    fn push_data(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.data.push(b'\n');
    }

    fn hand_out<E>(
        &mut self,
        sink: &mut impl FnMut(Event<'_>) -> Result<Flow, E>,
    ) -> Result<Flow, E> {
        let kind = std::mem::take(&mut self.kind);
        let Some(data) = self.data.strip_suffix(b"\n") else {
            return Ok(Flow::More);
        };
        let flow = if data.is_empty() {
            Ok(Flow::More)
        } else {
            sink(Event { kind, data: String::from_utf8_lossy(data) })
        };
        self.data.clear();
        flow
    }

    fn check_length(&self) -> Result<(), TooLong> {
        let line_bytes_max = EVENT_BYTES_MAX + "data: ".len();
        if self.data.len() > EVENT_BYTES_MAX || self.line.len() > line_bytes_max {
            return Err(TooLong);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Events = Vec<(Kind, String)>;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Events, TooLong> {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for piece in pieces {
            decoder.feed(piece, |event| {
                events.push((event.kind, event.data.into_owned()));
                Ok::<_, TooLong>(Flow::More)
            })?;
        }
        decoder.end(|event| {
            events.push((event.kind, event.data.into_owned()));
            Ok::<_, TooLong>(Flow::More)
        })?;
        Ok(events)
    }

    fn check_events(bytes: &[u8], events: &[(Kind, &str)]) {
        let expected = events.iter().map(|(kind, data)| (*kind, (*data).to_owned())).collect();
        assert_eq!(decode([bytes]), Ok(expected), "{}", bytes.escape_ascii());
        assert_eq!(decode(bytes.chunks(1)), decode([bytes]));
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = format!("data: a{end}data: b{end}{end}data:c{end}{end}");
            check_events(stream.as_bytes(), &[(Kind::Message, "a\nb"), (Kind::Message, "c")]);
        }
    }

    #[test]
    fn comments_unknown_fields_and_empty_events_are_nothing() {
        check_events(
            b": ping\n\n\nid: 7\nretry: soon\nnonsense\n\ndata\n\ndata:\n\ndata: x\n: in between\n\n",
            &[(Kind::Message, "x")],
        );
    }

    #[test]
    fn a_byte_order_mark_goes_and_a_bad_byte_is_replaced() {
        check_events(b"\xEF\xBB\xBFdata: a\xFFb\n\n", &[(Kind::Message, "a\u{fffd}b")]);
    }

    #[test]
    fn an_error_is_known_by_its_event_its_field_or_its_bare_json() {
        check_events(
            b"event: error\ndata: 1\n\nevent: other\ndata: 2\n\nerror: {\"message\":\"m\"}\n\n{\"error\":\"e\"}\n\n",
            &[
                (Kind::Error, "1"),
                (Kind::Message, "2"),
                (Kind::Error, r#"{"message":"m"}"#),
                (Kind::Message, r#"{"error":"e"}"#),
            ],
        );
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        check_events(b"data: [DONE]", &[(Kind::Message, "[DONE]")]);
        check_events(b"data: [DONE]\n", &[(Kind::Message, "[DONE]")]);
    }

    #[test]
    fn an_event_of_the_greatest_length_is_read_and_a_longer_one_is_not() {
        let data = vec![b'x'; EVENT_BYTES_MAX - 1];
        let event = |data: &[u8]| [b"data:", data, b"\n\n"].concat();
        let whole = decode(event(&data).chunks(4096)).expect("fits");
        assert_eq!(whole.iter().map(|(_, data)| data.len()).collect::<Vec<_>>(), [data.len()]);
        let longer = [data.as_slice(), b"x"].concat();
        assert_eq!(decode(event(&longer).chunks(4096)), Err(TooLong));
        let line = event(&[b'x'; 4096]);
        let endless = std::iter::repeat_n(line.strip_suffix(b"\n").expect("a line"), 2_100);
        assert_eq!(decode(endless), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in proptest::collection::vec("(data: ?|event: ?|: |error:|x)?[a-z\u{e9}\u{1f600}]{0,3}", 0..12),
            ends in proptest::collection::vec("(\n|\r|\r\n|\n\n|\r\r|\r\n\r\n)", 12),
            cuts in proptest::collection::vec(0_usize..80, 0..6),
        ) {
            let stream: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode(pieces), decode([bytes]));
        }
    }
}
