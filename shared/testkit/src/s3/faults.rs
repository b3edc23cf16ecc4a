//! What goes wrong, and what was asked.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::http::{HeaderMap, Method};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum S3Call {
    /// `GetObject`.
    Get,
    /// `HeadObject`.
    Head,
    /// `PutObject`.
    Put,
    /// `DeleteObject`.
    Delete,
    /// `ListObjectsV2`.
    List,
    /// `CreateMultipartUpload`.
    Begin,
    /// `UploadPart`.
    Part,
    /// `CompleteMultipartUpload`.
    Complete,
    /// `AbortMultipartUpload`.
    Abort,
    /// Anything else.
    Other,
}

/// How a request goes wrong.
#[derive(Clone, Debug)]
pub enum S3Fault {
    /// This status and error code; nothing is done.
    Status(u16, &'static str),
    /// This status and error code, although it is done.
    Lost(u16, &'static str),
    /// It is done at once, and answered so much later.
    Late(Duration),
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// The body stands still after so many bytes.
    Stall(usize),
    /// The first byte of the body is another one.
    Corrupt,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct S3Request {
    /// What it is for.
    pub call: S3Call,
    /// Its path.
    pub path: String,
    /// Its query.
    pub query: Vec<(String, String)>,
    /// Its header fields.
    pub headers: BTreeMap<String, String>,
}

impl S3Request {
    pub(super) fn new(method: &Method, path: String, query: Vec<(String, String)>, headers: &HeaderMap) -> Self {
        let field = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        };
        let mut request = Self {
            call: S3Call::Other,
            path,
            query,
            headers: headers.iter().map(field).collect(),
        };
        request.call = request.call_of(method);
        request
    }

    fn call_of(&self, method: &Method) -> S3Call {
        let has = |name| self.parameter(name).is_some();
        match (method.as_str(), has("uploadId")) {
            ("GET", _) if has("list-type") => S3Call::List,
            ("GET", false) => S3Call::Get,
            ("HEAD", false) => S3Call::Head,
            ("PUT", false) => S3Call::Put,
            ("PUT", true) => S3Call::Part,
            ("DELETE", false) => S3Call::Delete,
            ("DELETE", true) => S3Call::Abort,
            ("POST", false) if has("uploads") => S3Call::Begin,
            ("POST", true) => S3Call::Complete,
            _ => S3Call::Other,
        }
    }

    /// A header field, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Bucket and name.
    pub(super) fn object(&self) -> (&str, &str) {
        let path = self.path.trim_start_matches('/');
        path.split_once('/').unwrap_or((path, ""))
    }
}

#[derive(Default)]
pub(super) struct Script {
    faults: BTreeMap<S3Call, VecDeque<S3Fault>>,
    pub(super) requests: Vec<S3Request>,
}

impl Script {
    pub(super) fn push(&mut self, call: S3Call, fault: S3Fault) {
        self.faults.entry(call).or_default().push_back(fault);
    }

    pub(super) fn next(&mut self, call: S3Call) -> Option<S3Fault> {
        self.faults.get_mut(&call)?.pop_front()
    }
}
