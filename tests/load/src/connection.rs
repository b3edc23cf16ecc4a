use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, header::HOST};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpSocket, time::timeout};

use crate::{answer::Answer, violation::Violation};

/// Maximum time for one answer. It is below the 30 s after which the server closes a connection that takes no bytes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Request without a body.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpec {
    pub(crate) method: Method,
    /// Path and query of the target.
    pub(crate) path: String,
    pub(crate) fields: Vec<(HeaderName, String)>,
}

impl RequestSpec {
    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }
}

/// Options of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionOptions {
    pub(crate) server: SocketAddr,
    /// HTTP/2 with prior knowledge (RFC 9113, section 3.3), else HTTP/1.1.
    pub(crate) http2: bool,
    /// Size of the kernel's receive buffer, in bytes; `None` keeps the default. A small one makes a slow client block the server.
    pub(crate) buffer: Option<u32>,
}

/// Connection that is kept alive, and opened again after it was closed.
pub(crate) struct Connection {
    line: ConnectionOptions,
    sender: Option<Sender>,
}

enum Sender {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    pub(crate) const fn new(line: ConnectionOptions) -> Self {
        Self { line, sender: None }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(&mut self, ask: &RequestSpec) -> Result<Answer, Violation> {
        let answered = async {
            let (head, body) = self.open(ask).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Answer::new(ask, head, body)
        };
        timeout(ANSWER_TIMEOUT, answered)
            .await
            .map_err(|_| Violation::Late(ANSWER_TIMEOUT))?
    }

    /// Sends a request and returns the head of the answer; the body is still to be read.
    pub(crate) async fn open(&mut self, ask: &RequestSpec) -> Result<Response<Incoming>, Violation> {
        let kept = self.sender.take().filter(|sender| !sender.is_closed());
        let mut sender = match kept {
            Some(sender) => sender,
            None => connect(self.line).await?,
        };
        let response = sender.send(self.request(ask)).await;
        self.sender = Some(sender);
        Ok(response?)
    }

    /// Closes the connection and drops the answer that is being read.
    pub(crate) fn hang_up(&mut self) {
        self.sender = None;
    }

    /// Builds the request. HTTP/1.1 names the host in a field (RFC 9112, section 3.2), HTTP/2 in the target (RFC 9113, section
    /// 8.3.1).
    fn request(&self, ask: &RequestSpec) -> Request<Empty<Bytes>> {
        let (server, path) = (self.line.server, &ask.path);
        let mut request = Request::builder().method(&ask.method);
        request = if self.line.http2 {
            request.uri(format!("http://{server}{path}"))
        } else {
            request.uri(path).header(HOST, server.to_string())
        };
        for (name, value) in &ask.fields {
            request = request.header(name, value);
        }
        request.body(Empty::new()).expect("paths and fields are ours")
    }
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_closed(),
            Self::Two(sender) => sender.is_closed(),
        }
    }

    async fn send(&mut self, request: Request<Empty<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

async fn connect(line: ConnectionOptions) -> Result<Sender, Violation> {
    let stream = async {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = line.buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(line.server).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let io = TokioIo::new(stream.await.map_err(Violation::Connect)?);
    // The task's error is dropped: it also ends the request, which reports it.
    if line.http2 {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
        tokio::spawn(connection);
        Ok(Sender::Two(sender))
    } else {
        let (sender, connection) = http1::handshake(io).await?;
        tokio::spawn(connection);
        Ok(Sender::One(sender))
    }
}
