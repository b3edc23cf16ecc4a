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

use crate::{answer::Answer, wrong::Wrong};

/// Far above what any answer may take, and below the 30 s after which a server closes who takes nothing.
const PATIENCE: Duration = Duration::from_secs(25);

/// A request without a body.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) fields: Vec<(HeaderName, String)>,
}

impl Ask {
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

/// How connections are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) server: SocketAddr,
    /// HTTP/2 with prior knowledge (RFC 9113, section 3.3), else HTTP/1.1.
    pub(crate) http2: bool,
    /// How many bytes the kernel takes on behalf of a reader who does not; its own default if not said.
    pub(crate) buffer: Option<u32>,
}

/// One connection, kept alive, and made again once it is closed.
pub(crate) struct Client {
    line: Line,
    sender: Option<Sender>,
}

enum Sender {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    pub(crate) const fn new(line: Line) -> Self {
        Self { line, sender: None }
    }

    /// The whole answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Result<Answer, Wrong> {
        let answered = async {
            let (head, body) = self.open(ask).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Answer::new(ask, head, body)
        };
        timeout(PATIENCE, answered).await.map_err(|_| Wrong::Late(PATIENCE))?
    }

    /// The head of the answer; its body is still to be read.
    pub(crate) async fn open(&mut self, ask: &Ask) -> Result<Response<Incoming>, Wrong> {
        let kept = self.sender.take().filter(|sender| !sender.is_closed());
        let mut sender = match kept {
            Some(sender) => sender,
            None => connect(self.line).await?,
        };
        let response = sender.send(self.request(ask)).await;
        self.sender = Some(sender);
        Ok(response?)
    }

    /// Closes the connection, whatever is under way on it.
    pub(crate) fn hang_up(&mut self) {
        self.sender = None;
    }

    /// HTTP/1.1 names the host in a field (RFC 9112, section 3.2), HTTP/2 in the target (RFC 9113, section 8.3.1).
    fn request(&self, ask: &Ask) -> Request<Empty<Bytes>> {
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

async fn connect(line: Line) -> Result<Sender, Wrong> {
    let stream = async {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = line.buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(line.server).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let io = TokioIo::new(stream.await.map_err(Wrong::Connect)?);
    // What ends a connection shows in the request that it ends.
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
