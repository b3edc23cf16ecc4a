//! Faults and requests of the registry.

/// Kind of a request to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// HEAD request for a manifest or index.
    Head,
    /// GET request for a manifest or index.
    Manifest,
    /// GET request for a configuration or layer.
    Blob,
    /// Request to the registry's token service.
    Token,
    /// Any other request: lists of repositories and tags, else answered with 404.
    Other,
}

/// Fault of one response of the registry.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Answers with this status and an optional `Retry-After`.
    Status(u16, Option<String>),
    /// Breaks the connection after this many bytes of the body.
    Cut(usize),
    /// Sends this value as the digest header; an empty one leaves it out.
    Digest(String),
    /// Redirects to this URL with status 307.
    Redirect(String),
    /// Answers with status 200 and this body.
    Body(String),
    /// Answers correctly, but with this value of a header field.
    Header(&'static str, String),
    /// Answers with this status, these header fields and this body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Answers correctly, to let a request pass before the next fault.
    Pass,
}

/// Request as the registry received it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Kind of the request, from its method and path.
    pub kind: Kind,
    /// Path of the request target, not decoded.
    pub path: String,
    /// Query of the request target; empty if it has none.
    pub query: String,
    /// Value of the header field `Range`.
    pub range: Option<String>,
    /// Value of the header field `Authorization`.
    pub authorization: Option<String>,
    /// Host that the client asked for.
    pub host: String,
    /// Value of the header field `Cookie`.
    pub cookie: Option<String>,
    /// Value of the header field `Content-Type`.
    pub content_type: Option<String>,
    /// Body of the request as text, at most its first MiB.
    pub body: String,
}
