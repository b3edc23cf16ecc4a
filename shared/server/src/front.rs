use axum::body::Body;
use http::{Method, Response, StatusCode};

/// What the server asks of the API behind it: it knows no paths and no form of errors.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// True for a path that is answered without credentials.
    pub is_open: fn(&str) -> bool,
    /// True for a request whose content the router reads, within limits of its own. The content of all others is dropped.
    pub takes_content: fn(&Method, &str) -> bool,
    /// Returns the answer to a request that the router does not get: 400 without exactly one valid `Host`, 401 without right
    /// credentials, 413 for a GET with content, 414 for a path that is too long, 429 for too many passwords at a time.
    pub refuse: fn(&Method, &str, StatusCode) -> Response<Body>,
}

impl Default for Front {
    /// Returns a front whose paths all want credentials, which reads no content, and refuses by a status alone.
    fn default() -> Self {
        Self {
            is_open: |_| false,
            takes_content: |_, _| false,
            refuse: |_, _, status| {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = status;
                response
            },
        }
    }
}
