use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use crate::{answer::Answer, violation::Violation};

/// Maximum time for one answer. It is below the 30 s after which the server closes a connection
/// that takes no bytes.
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
    /// Size of the kernel's receive buffer, in bytes; `None` keeps the default. A small one makes a
    /// slow client block the server.
    pub(crate) buffer: Option<usize>,
}

/// Connection that is kept alive, and opened again after it was closed.
pub(crate) struct Connection {
    line: ConnectionOptions,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Connection {
    pub(crate) fn new(line: ConnectionOptions) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_recv_buffer_size(line.buffer);
        let client = Client::builder(TokioExecutor::new())
            .http2_only(line.http2)
            .build(connector);
        Self { line, client }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn ask(&self, ask: &RequestSpec) -> Result<Answer, Violation> {
        let answered = async {
            let (head, body) = self.open(ask).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Answer::new(ask, head, body)
        };
        let answered = timeout(ANSWER_TIMEOUT, answered).await;
        answered.unwrap_or(Err(Violation::Late(ANSWER_TIMEOUT)))
    }

    /// Sends a request and returns the head of the answer; the body is still to be read.
    pub(crate) async fn open(&self, ask: &RequestSpec) -> Result<Response<Incoming>, Violation> {
        let target = format!("http://{}{}", self.line.server, ask.path);
        let mut request = Request::builder().method(&ask.method).uri(target);
        for (name, value) in &ask.fields {
            request = request.header(name, value);
        }
        let request = request
            .body(Empty::new())
            .expect("paths and fields are ours");
        let sent = self.client.request(request).await;
        sent.map_err(|error| match error.is_connect() {
            true => Violation::Connect(error),
            false => Violation::Unsent(error),
        })
    }

    /// Closes the connection and drops the answer that is being read.
    pub(crate) fn hang_up(&mut self) {
        *self = Self::new(self.line);
    }
}
