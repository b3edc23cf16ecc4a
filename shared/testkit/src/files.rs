//! A web server of files in this process.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
};
use axum::http::{HeaderMap, Response, Uri};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};

use crate::registry::{CertificateFault, auth::basic};
use crate::script::Script;
use crate::serving::{BEFORE_CUT, Serving, cut, empty, finish, status};

/// Server on a free port of 127.0.0.1, until it is dropped.
pub struct FileServer {
    serving: Serving,
    shared: SharedFiles,
}

/// Request that a [`FileServer`] received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRequest {
    /// Path of the URL.
    pub path: String,
    /// Value of `Authorization`, if there was one.
    pub authorization: Option<String>,
    /// Status of the answer.
    pub status: u16,
}

/// Answer to one request in place of the file.
#[derive(Clone, Debug)]
pub enum FileAnswer {
    /// This status, without a body.
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// The start of the file up to this position, then the end of the connection.
    Cut(usize),
    /// This text as a web page.
    Page(String),
    /// These bytes without a length and an entity tag.
    Chunked(Bytes),
    /// These bytes with this content coding in the header.
    Coded(&'static str, Bytes),
    /// Headers, and a body that never comes.
    Stall,
}

/// Media types of git's protocol, by the end of the path.
const GIT_TYPES: [(&str, &str); 2] = [
    ("/info/refs", "application/x-git-upload-pack-advertisement"),
    ("/git-upload-pack", "application/x-git-upload-pack-result"),
];

/// Answer to the body of a request.
type FileHandler = Box<dyn Fn(&[u8]) -> Vec<u8> + Send>;

type SharedFiles = Arc<Mutex<FileState>>;

#[derive(Default)]
struct FileState {
    /// Content and entity tag by path.
    files: BTreeMap<String, (Bytes, Option<String>)>,
    /// Services that answer in place of a file, by path.
    handlers: BTreeMap<String, FileHandler>,
    /// Answers of the next requests, by path.
    script: Script<String, FileAnswer, FileRequest>,
    authorization: Option<String>,
}

impl FileServer {
    /// Starts a server without TLS.
    pub async fn start() -> Self {
        Self::run(None).await
    }

    /// Starts a server with a certificate for 127.0.0.1 from a CA that is made for it.
    pub async fn tls() -> Self {
        let names = ["127.0.0.1".to_owned()];
        Self::run(Some((&names[..], CertificateFault::None))).await
    }

    async fn run(tls: Option<(&[String], CertificateFault)>) -> Self {
        let shared = SharedFiles::default();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let serving = Serving::start(Ipv4Addr::LOCALHOST.into(), router, tls).await;
        Self { serving, shared }
    }

    /// Returns the address as in URLs, `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        self.serving.host()
    }

    /// Returns the CA of the certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        self.serving.ca_pem()
    }

    /// Returns the URL of a path with a leading slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.serving.url)
    }

    /// Stores a file with an entity tag that depends on its content.
    pub fn put(&self, path: &str, content: impl Into<Bytes>) {
        let content = content.into();
        let tag = format!("\"{}\"", crate::image::digest(&content));
        self.lock()
            .files
            .insert(path.to_owned(), (content, Some(tag)));
    }

    /// Stores a file with this entity tag, whatever its content is, or without one.
    pub fn put_tagged(&self, path: &str, content: impl Into<Bytes>, tag: Option<&str>) {
        let tag = tag.map(ToOwned::to_owned);
        self.lock()
            .files
            .insert(path.to_owned(), (content.into(), tag));
    }

    /// Answers every request of a path with what `handler` makes of its body.
    pub fn handle(&self, path: &str, handler: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) {
        self.lock()
            .handlers
            .insert(path.to_owned(), Box::new(handler));
    }

    /// Requires these credentials for every request.
    pub fn require(&self, user: &str, password: &str) {
        self.lock().authorization = Some(basic(user, password));
    }

    /// Adds an answer for the next request of a path. Several are used one after another.
    pub fn script(&self, path: &str, answer: FileAnswer) {
        self.lock().script.push(path.to_owned(), answer);
    }

    /// Returns all requests in the order of their arrival.
    pub fn requests(&self) -> Vec<FileRequest> {
        self.lock().script.requests.clone()
    }

    /// Returns the statuses of all answers in their order.
    pub fn statuses(&self) -> Vec<u16> {
        self.lock()
            .script
            .requests
            .iter()
            .map(|request| request.status)
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, FileState> {
        self.shared.lock()
    }
}

async fn answer(
    State(shared): State<SharedFiles>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let mut state = shared.lock();
    let path = uri.path().to_owned();
    let text = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let authorization = text(AUTHORIZATION);
    let response = if state.authorization.is_some() && state.authorization != authorization {
        empty(401)
    } else {
        state.answer(&path, text(IF_NONE_MATCH).as_deref(), &body)
    };
    state.script.requests.push(FileRequest {
        path,
        authorization,
        status: response.status().as_u16(),
    });
    response
}

impl FileState {
    fn answer(&mut self, path: &str, known: Option<&str>, body: &[u8]) -> Response<Body> {
        let scripted = self.script.next(path);
        let cut_at = match scripted {
            Some(FileAnswer::Status(code)) => return empty(code),
            Some(FileAnswer::Redirect(to)) => {
                return finish(status(302).header(LOCATION, to), Body::empty());
            }
            Some(FileAnswer::Page(text)) => {
                return finish(status(200).header(CONTENT_TYPE, "text/html"), text);
            }
            Some(FileAnswer::Coded(coding, bytes)) => {
                return finish(status(200).header(CONTENT_ENCODING, coding), bytes);
            }
            Some(FileAnswer::Chunked(bytes)) => {
                let chunks = stream::iter([Ok::<_, io::Error>(bytes)]);
                return finish(status(200), Body::from_stream(chunks));
            }
            Some(FileAnswer::Stall) => {
                return finish(
                    status(200),
                    Body::from_stream(stream::pending::<io::Result<Bytes>>()),
                );
            }
            Some(FileAnswer::Cut(at)) => Some(at),
            None => None,
        };
        let handler = self.handlers.get(path);
        let handled = handler.map(|handler| (Bytes::from(handler(body)), None));
        let Some((content, tag)) = handled.as_ref().or(self.files.get(path)) else {
            return empty(404);
        };
        if tag.is_some() && tag.as_deref() == known {
            return empty(304);
        }
        let mut response = status(200).header(CONTENT_LENGTH, content.len());
        if let Some(tag) = tag {
            response = response.header(ETAG, tag);
        }
        if let Some((_, media_type)) = GIT_TYPES.iter().find(|(end, _)| path.ends_with(end)) {
            response = response.header(CONTENT_TYPE, *media_type);
        }
        let body = match cut_at {
            Some(at) => cut(content, at, BEFORE_CUT),
            None => Body::from(content.clone()),
        };
        finish(response, body)
    }
}
