//! A scripted chat completions server on loopback: plays answers byte by byte, in any pieces, with
//! gates, and records what it was asked. For tests inside the process and for those that start the
//! program.

mod reply;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::base::tasks::Tasks;

pub use reply::Reply;

/// The head of a request is never longer in a test.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A server that gives each request to come the next answer. It ends when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    stage: Arc<Stage>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Stage {
    answers: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Received>>,
    /// How many clients went away before their answer had ended.
    hang_ups: watch::Sender<usize>,
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// `POST` or `GET`.
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Received {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }
}

impl ModelServer {
    /// Starts on a free port with an answer for each request to come. A request beyond them gets
    /// the status 500.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(answers: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let stage = Arc::new(Stage {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            hang_ups: watch::Sender::new(0),
        });
        let server = Self { address: listener.local_addr()?, stage, tasks: Tasks::new() };
        let (stage, tasks) = (Arc::clone(&server.stage), server.tasks.clone());
        server.tasks.spawn("model server", async move {
            let end = tasks.cancel_token().clone();
            loop {
                let accepted = tokio::select! {
                    biased;
                    // Neither wait loses anything.
                    () = end.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((socket, _)) = accepted else { return };
                let (stage, end) = (Arc::clone(&stage), end.clone());
                tasks.spawn("model connection", async move {
                    tokio::select! {
                        biased;
                        // The connection is cut, which is what the end of a server is.
                        () = end.cancelled() => {}
                        _ended = stage.serve(socket) => {}
                    }
                });
            }
        });
        Ok(server)
    }

    /// Where its interface begins.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds the answer to a further request.
    pub fn then(&self, answer: Reply) {
        self.stage.answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
    }

    /// What it was asked, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.stage.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a client has gone away before its answer had ended.
    pub async fn hung_up(&self) {
        let mut hang_ups = self.stage.hang_ups.subscribe();
        // The sender lives as long as this, so there is no error to see.
        let _seen = hang_ups.wait_for(|count| *count > 0).await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.tasks.cancel_token().cancel();
    }
}

impl Stage {
    async fn serve(&self, mut socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let request = read_request(&mut socket).await?;
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let answer = answer.unwrap_or_else(|| Reply::status(500).bytes("no answer is scripted"));
        if answer.play(&mut socket).await.is_err() {
            self.hang_ups.send_modify(|count| *count += 1);
        }
        Ok(())
    }
}

async fn read_request(socket: &mut TcpStream) -> io::Result<Received> {
    let mut bytes = Vec::new();
    let head_len = loop {
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > HEAD_BYTES_MAX || socket.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let mut body = bytes.split_off(head_len + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut request = Received {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers: headers
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect(),
        body: String::new(),
    };
    let len = request.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    while body.len() < len {
        if socket.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(request)
}
