//! An answer of the scripted server, and how it is played.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::testing::gate::Gate;

/// What the server answers. The connection is closed after it, which is also how a client learns
/// its length, unless it is [`chunked`](Self::chunked).
#[derive(Clone, Debug)]
pub struct Reply {
    /// None closes the connection without a word.
    status: Option<u16>,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
    piece_len: usize,
    chunked: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Bytes(Vec<u8>),
    Gate(Gate),
    /// Silence until the client goes away.
    Hold,
    /// The end of the connection, in the middle of things.
    Cut,
}

impl Reply {
    /// A stream of events.
    #[must_use]
    pub fn stream() -> Self {
        Self::status(200).header("content-type", "text/event-stream")
    }

    /// A status, without a type.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let status = Some(status);
        Self {
            status,
            headers: Vec::new(),
            steps: Vec::new(),
            piece_len: usize::MAX,
            chunked: false,
        }
    }

    /// A JSON document.
    #[must_use]
    pub fn json(status: u16, document: &Value) -> Self {
        let reply = Self::status(status).header("content-type", "application/json");
        reply.bytes(document.to_string())
    }

    /// The connection is closed without a word.
    #[must_use]
    pub fn nothing() -> Self {
        Self { status: None, ..Self::status(200) }
    }

    /// A further header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Bytes of the body as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Bytes(bytes.into()));
        self
    }

    /// An event with this data.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        self.bytes(format!("data: {data}\n\n"))
    }

    /// A piece of text.
    #[must_use]
    pub fn text(self, piece: &str) -> Self {
        self.delta(&json!({"content": piece}))
    }

    /// A piece of reasoning.
    #[must_use]
    pub fn reasoning(self, piece: &str) -> Self {
        self.delta(&json!({"reasoning_content": piece}))
    }

    /// A call of a tool, the `index`th of this answer (from 0), in two fragments.
    #[must_use]
    pub fn call(self, index: usize, id: &str, name: &str, arguments: &Value) -> Self {
        let function = json!({"name": name, "arguments": ""});
        let head = json!({"index": index, "id": id, "type": "function", "function": function});
        let rest = json!({"index": index, "function": {"arguments": arguments.to_string()}});
        self.delta(&json!({"tool_calls": [head]})).delta(&json!({"tool_calls": [rest]}))
    }

    /// The counts, as they come after the finish reason.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        let usage = json!({
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        });
        self.event(&json!({"id": "chatcmpl-1", "choices": [], "usage": usage}).to_string())
    }

    /// Why the answer ends.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
        self.event(&json!({"id": "chatcmpl-1", "choices": [choice]}).to_string())
    }

    /// The end of the stream, by the book.
    #[must_use]
    pub fn done(self) -> Self {
        self.event("[DONE]")
    }

    /// A stop until the gate is open.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// Silence until the client goes away.
    #[must_use]
    pub fn hold(mut self) -> Self {
        self.steps.push(Step::Hold);
        self
    }

    /// The end of the connection; with [`chunked`](Self::chunked) the client can tell that
    /// something is missing.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    /// Writes at most this many bytes at a time.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece_len = bytes.max(1);
        self
    }

    /// Sends every step as an HTTP chunk of its own.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    fn delta(self, delta: &Value) -> Self {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        self.event(&json!({"id": "chatcmpl-1", "choices": [choice]}).to_string())
    }

    /// An error when the client has gone away before the end.
    pub(super) async fn play(self, socket: &mut TcpStream) -> io::Result<()> {
        let Some(status) = self.status else { return Ok(()) };
        let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
        for step in &self.steps {
            match step {
                Step::Bytes(bytes) => self.write(socket, bytes).await?,
                Step::Gate(gate) => tokio::select! {
                    biased;
                    // Neither wait loses anything: nothing but its end comes from the client.
                    () = gate.pass() => {}
                    gone = gone(socket) => return Err(gone),
                },
                Step::Hold => return Err(gone(socket).await),
                Step::Cut => return Ok(()),
            }
        }
        if self.chunked {
            socket.write_all(b"0\r\n\r\n").await?;
        }
        socket.shutdown().await
    }

    async fn write(&self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(self.piece_len) {
            if self.chunked {
                let head = format!("{:x}\r\n", piece.len());
                socket.write_all(&[head.as_bytes(), piece, b"\r\n"].concat()).await?;
            } else {
                socket.write_all(piece).await?;
            }
        }
        Ok(())
    }
}

/// Waits until the client has gone away.
async fn gone(socket: &mut TcpStream) -> io::Error {
    let mut byte = [0];
    loop {
        match socket.read(&mut byte).await {
            Ok(0) => return io::ErrorKind::ConnectionAborted.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}
