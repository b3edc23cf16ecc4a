//! Faults and requests of the S3 server.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{HeaderMap, Method};

/// S3 operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum S3Call {
    /// `GetObject`: reads an object or a range.
    Get,
    /// `HeadObject`: reads the metadata of an object.
    Head,
    /// `PutObject`: writes an object in one request.
    Put,
    /// `DeleteObject`: removes one object.
    Delete,
    /// `ListObjectsV2`: lists a page of names.
    List,
    /// Any other request, answered with 501.
    Other,
}

/// Fault of one response of the server.
#[derive(Clone, Debug)]
pub enum S3Fault {
    /// Answers with this status and error code without doing the operation.
    Status(u16, &'static str),
    /// Does the operation, but answers with this status and error code.
    Lost(u16, &'static str),
    /// Does the operation at once and answers after this time.
    Late(Duration),
    /// Breaks the connection after this many bytes of the body.
    Cut(usize),
    /// Sends no more after this many bytes of the body.
    Stall(usize),
    /// Changes the first byte of the body.
    Corrupt,
}

/// Request as the server received it.
#[derive(Clone, Debug)]
pub struct S3Request {
    /// Operation, from the method and the query.
    pub call: S3Call,
    /// Decoded path of the request target.
    pub path: String,
    /// Decoded parameters of the query, in order.
    pub query: Vec<(String, String)>,
    /// Header fields by lower-case name.
    pub headers: BTreeMap<String, String>,
}

impl S3Request {
    pub(super) fn new(
        method: &Method,
        path: String,
        query: Vec<(String, String)>,
        headers: &HeaderMap,
    ) -> Self {
        let mut fields = BTreeMap::new();
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            fields.insert(name.to_string(), value);
        }
        let has = |name| query.iter().any(|(found, _)| found == name);
        let call = match method.as_str() {
            _ if has("uploads") || has("uploadId") => S3Call::Other,
            "GET" if has("list-type") => S3Call::List,
            "GET" => S3Call::Get,
            "HEAD" => S3Call::Head,
            "PUT" => S3Call::Put,
            "DELETE" => S3Call::Delete,
            _ => S3Call::Other,
        };
        Self {
            call,
            path,
            query,
            headers: fields,
        }
    }

    /// Returns a header field by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the bucket and the name of the object.
    pub(super) fn object(&self) -> (&str, &str) {
        let path = self.path.trim_start_matches('/');
        path.split_once('/').unwrap_or((path, ""))
    }
}
