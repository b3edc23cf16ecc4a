//! Errors of requests, and the answers to them: a problem document (RFC 9457), or below `/v2/` an
//! error list as registries send it.

use axum::{body::Body, response::IntoResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use model::{CachePolicy, Key, Sha256};
use olm::{SEARCH_LIMIT_MAX, TooManyTerms};
use reader::ReaderError;
use serde_json::json;
use work::NoMemory;

use crate::settings::METHODS;

/// Any reason why a request is not answered with what it asks for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// A published state that cannot be read, or that is not there.
    #[error(transparent)]
    State(#[from] ReaderError),
    /// A query parameter that the route does not have, and those that it has.
    #[error("there is no query parameter {0:?} here: only {1}")]
    Parameter(String, &'static str),
    /// A query parameter of a route that has none.
    #[error("there is no query parameter {0:?} here, nor any other one")]
    NoParameters(String),
    /// A search for more words than are looked up.
    #[error(transparent)]
    TooManyTerms(#[from] TooManyTerms),
    /// A published state without texts for search.
    #[error(
        "this state of the catalog was published without an index for search: publish it again (`catalog-mirror poll --force`)"
    )]
    NoSearch,
    /// A published state without the days on which the mirror first saw its bundles.
    #[error(
        "this state of the catalog was published before days were recorded: the next publication records them"
    )]
    NoDays,
    /// A package without an icon that can be shown.
    #[error("the package has no icon that can be shown")]
    NoIcon,
    /// A channel that the package does not have.
    #[error("the package has no such channel")]
    UnknownChannel,
    /// A `since` that is not a content hash.
    #[error(
        "the query parameter since must be the content hash of an earlier state: 64 lower-case hex digits"
    )]
    Since,
    /// A `since` that the catalog does not remember.
    #[error(
        "the state {0} of this catalog is not kept, or was never published: take the whole catalog and its content-hash again"
    )]
    UnknownSince(Sha256),
    /// A path that no route matches.
    #[error("nothing is served at this path")]
    UnknownPath,
    /// An object that is not stored.
    #[error("there is no such object")]
    UnknownObject,
    /// A method that the route does not answer.
    #[error("only GET and HEAD are answered here")]
    Method,
    /// An `Accept-Encoding` that refuses all codings.
    #[error(
        "none of the content codings that are offered here (zstd, gzip, identity) is acceptable"
    )]
    NotAcceptable,
    /// A body above the size that this deployment can send, without an object to redirect to.
    #[error(
        "in this content coding the answer is too large to be sent from here; ask for another one"
    )]
    TooLarge,
    /// An `If-Match` or `If-Unmodified-Since` that does not hold.
    #[error("the representation is not the one that the request names")]
    PreconditionFailed,
    /// A `Range` outside the representation, whose length in bytes this is.
    #[error("the representation has only {0} bytes")]
    Range(u64),
    /// A manifest that the repository does not have.
    #[error("the catalog has no manifest {0:?}")]
    UnknownManifest(String),
    /// A blob that the repository does not have.
    #[error("the catalog has no such blob")]
    UnknownBlob,
    /// A digest that is not a well-formed sha256.
    #[error("{0:?} is not the digest of a sha256")]
    Digest(String),
    /// A page size that is not a number.
    #[error("{0:?} is not a number of results")]
    Page(String),
    /// A number of packages that an answer to a search cannot have.
    #[error("limit is a number from 0 to {SEARCH_LIMIT_MAX}, not {0:?}")]
    Limit(String),
    /// Credentials that are missing or wrong.
    #[error("this mirror answers only with a name and password, or a token")]
    Unauthorized,
    /// More password checks at a time than the server allows.
    #[error("too many passwords are being verified at the moment; try again later")]
    TooManyLogins,
    /// A path and query above the server's limit.
    #[error("the path and the query are too long")]
    UriTooLong,
    /// A GET or HEAD with content.
    #[error("requests have no content here")]
    Content,
    /// An HTTP/1.1 request without exactly one valid `Host` field (RFC 9112, section 3.2).
    #[error("an HTTP/1.1 request needs exactly one Host field, with a host and at most a port")]
    Host,
    /// A server that has not polled each of its catalogs yet.
    #[error("the first polls of the catalogs have not ended yet; try again later")]
    NotReady,
    /// An answer for which there was no memory in time.
    #[error("too many answers are being made and sent at the moment; try again later")]
    Memory(#[from] NoMemory),
    /// A failure of [`crate::Locate::locate`] to make the URL of a redirect to an object.
    #[error("the URL of {0} cannot be made")]
    Locate(Key, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Answer to an error, in the terms of each of the two APIs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorKind {
    /// Status that tells a client what to do.
    pub(crate) status: StatusCode,
    /// Stable end of the problem's `type` (RFC 9457, section 3.1.1).
    pub(crate) problem: &'static str,
    /// Error code below `/v2/` (OCI distribution specification, "Error Codes").
    /// `PAGINATION_NUMBER_INVALID`, `UNAVAILABLE` and `UNKNOWN` are those of the CNCF registry.
    pub(crate) code: &'static str,
}

impl ApiError {
    /// Returns the answer to the error.
    pub(crate) const fn kind(&self) -> ErrorKind {
        let (status, problem, code) = match self {
            Self::State(ReaderError::CatalogName(_)) => {
                (StatusCode::BAD_REQUEST, "bad-catalog-name", "NAME_INVALID")
            }
            Self::Parameter(..) | Self::NoParameters(_) => {
                (StatusCode::BAD_REQUEST, "unknown-parameter", "UNKNOWN")
            }
            Self::TooManyTerms(_) => (StatusCode::BAD_REQUEST, "too-many-words", "UNKNOWN"),
            Self::Since => (StatusCode::BAD_REQUEST, "bad-content-hash", "UNKNOWN"),
            Self::Host => (StatusCode::BAD_REQUEST, "bad-host", "UNSUPPORTED"),
            Self::Digest(_) => (StatusCode::BAD_REQUEST, "bad-digest", "DIGEST_INVALID"),
            Self::Page(_) | Self::Limit(_) => (
                StatusCode::BAD_REQUEST,
                "bad-page",
                "PAGINATION_NUMBER_INVALID",
            ),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "UNAUTHORIZED"),
            Self::UnknownPath => (StatusCode::NOT_FOUND, "unknown-path", "UNSUPPORTED"),
            Self::State(ReaderError::UnknownCatalog(_)) => {
                (StatusCode::NOT_FOUND, "unknown-catalog", "NAME_UNKNOWN")
            }
            Self::State(ReaderError::UnknownPackage(_)) => {
                (StatusCode::NOT_FOUND, "unknown-package", "UNKNOWN")
            }
            Self::NoSearch => (StatusCode::NOT_FOUND, "no-search", "UNKNOWN"),
            Self::NoDays => (StatusCode::NOT_FOUND, "no-days", "UNKNOWN"),
            Self::NoIcon => (StatusCode::NOT_FOUND, "no-icon", "UNKNOWN"),
            Self::UnknownChannel => (StatusCode::NOT_FOUND, "unknown-channel", "UNKNOWN"),
            Self::UnknownObject => (StatusCode::NOT_FOUND, "unknown-object", "BLOB_UNKNOWN"),
            Self::UnknownManifest(_) => (
                StatusCode::NOT_FOUND,
                "unknown-manifest",
                "MANIFEST_UNKNOWN",
            ),
            Self::UnknownBlob => (StatusCode::NOT_FOUND, "unknown-blob", "BLOB_UNKNOWN"),
            // 410 and not 404: the catalog exists, and the client has to start again with the whole
            // of it.
            Self::UnknownSince(_) => (StatusCode::GONE, "unknown-state", "UNKNOWN"),
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "UNSUPPORTED",
            ),
            Self::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, "not-acceptable", "UNKNOWN"),
            // 406 and not 413, which is about the request: another content coding may fit.
            Self::TooLarge => (StatusCode::NOT_ACCEPTABLE, "too-large", "UNKNOWN"),
            Self::PreconditionFailed => (
                StatusCode::PRECONDITION_FAILED,
                "precondition-failed",
                "UNKNOWN",
            ),
            Self::Content => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "content-too-large",
                "UNSUPPORTED",
            ),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "uri-too-long", "UNSUPPORTED"),
            Self::Range(_) => (
                StatusCode::RANGE_NOT_SATISFIABLE,
                "range-not-satisfiable",
                "RANGE_INVALID",
            ),
            Self::TooManyLogins => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-logins",
                "TOOMANYREQUESTS",
            ),
            Self::State(ReaderError::Busy) => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-requests",
                "TOOMANYREQUESTS",
            ),
            Self::NotReady => (StatusCode::SERVICE_UNAVAILABLE, "not-ready", "UNAVAILABLE"),
            // 503 and not 429, because the client itself need not have asked for much.
            Self::Memory(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too-many-answers",
                "UNAVAILABLE",
            ),
            // Damage too is a 503: a repair or the next poll repairs it, so caches go on serving
            // what they have (`stale-if-error`).
            Self::State(
                ReaderError::Store(_) | ReaderError::Corrupt { .. } | ReaderError::Untrusted { .. },
            )
            | Self::Locate(..) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "store-unavailable",
                "UNAVAILABLE",
            ),
        };
        ErrorKind {
            status,
            problem,
            code,
        }
    }

    /// Returns the text for the client. It repeats what the client sent and tells nothing of the
    /// inside of the server.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::State(ReaderError::CatalogName(source)) => source.to_string(),
            Self::NotReady | Self::Memory(_) => self.to_string(),
            error if error.kind().status.is_server_error() => {
                "the catalog cannot be read at the moment; try again later".to_owned()
            }
            error => error.to_string(),
        }
    }
}

/// Value of `Retry-After` (RFC 9110, section 10.2.3), in seconds: a store that restarts is back by
/// then.
const RETRY_AFTER_SECONDS: u64 = 5;

/// Field of every answer below `/v2/`, by which clients recognise a registry.
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// Returns the answer to a request that is refused before the router sees it, by the status that
/// the server has for it.
pub fn refuse(method: &Method, path: &str, status: StatusCode) -> Response<Body> {
    let error = match status {
        StatusCode::UNAUTHORIZED => ApiError::Unauthorized,
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::Content,
        StatusCode::URI_TOO_LONG => ApiError::UriTooLong,
        StatusCode::TOO_MANY_REQUESTS => ApiError::TooManyLogins,
        _ => ApiError::Host,
    };
    respond(method, path, &error)
}

/// Returns the answer to an error, in the form that the path asks for.
pub(crate) fn respond(method: &Method, path: &str, error: &ApiError) -> Response<Body> {
    let kind = error.kind();
    let registry = is_registry(path);
    let (content_type, body) = if registry {
        // OCI distribution specification, "Error Codes".
        let errors = json!({"errors": [{"code": kind.code, "message": error.detail()}]});
        ("application/json", errors.to_string())
    } else {
        let problem = json!({
            "type": format!("urn:problem-type:catalog-mirror:{}", kind.problem),
            "title": kind.status.canonical_reason(),
            "status": kind.status.as_u16(),
            "detail": error.detail(),
        });
        ("application/problem+json", format!("{problem}\n"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    // A cache that keeps an error would go on sending it after its cause has gone.
    let no_store = CachePolicy::NoStore.cache_control();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(no_store));
    add_hints(&mut headers, error, registry);
    mark_registry(path, &mut headers);
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => Body::from(body),
    };
    (kind.status, headers, body).into_response()
}

/// True if a path belongs to the registry, whose errors have another form.
pub(crate) fn is_registry(path: &str) -> bool {
    path == "/v2" || path.starts_with("/v2/")
}

/// Adds the field by which clients recognise a registry, if the path belongs to it.
pub(crate) fn mark_registry(path: &str, headers: &mut HeaderMap) {
    if is_registry(path) {
        headers.insert(API_VERSION, HeaderValue::from_static("registry/2.0"));
    }
}

/// Adds the fields that tell a client how to ask instead.
fn add_hints(headers: &mut HeaderMap, error: &ApiError, registry: bool) {
    if let ApiError::Range(length) = error {
        let range =
            HeaderValue::try_from(format!("bytes */{length}")).expect("digits are visible ASCII");
        headers.insert(header::CONTENT_RANGE, range);
    }
    if matches!(error, ApiError::Method) {
        headers.insert(header::ALLOW, METHODS);
    }
    match error.kind().status {
        StatusCode::UNAUTHORIZED => {
            let basic =
                HeaderValue::from_static("Basic realm=\"catalog-mirror\", charset=\"UTF-8\"");
            headers.insert(header::WWW_AUTHENTICATE, basic);
            // Registry clients take a Bearer challenge for the address of a token service (CNCF
            // distribution, "Token Authentication Specification"), so below `/v2/` there is only
            // Basic (RFC 7617). A token serves as its password.
            if !registry {
                let bearer = HeaderValue::from_static("Bearer realm=\"catalog-mirror\"");
                headers.append(header::WWW_AUTHENTICATE, bearer);
            }
        }
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Problems below `/v2/` alone, where errors have codes in place of these words.
    const OF_REGISTRY: [&str; 3] = ["bad-digest", "unknown-blob", "unknown-manifest"];

    /// Read from the source, because an enum does not list its variants.
    #[test]
    fn page_lists_the_words_of_all_problems() {
        let (_, kinds) = include_str!("error.rs")
            .split_once("const fn kind")
            .unwrap();
        let (kinds, _) = kinds.split_once("\n        ErrorKind {").unwrap();
        let made = kinds.split("StatusCode::").skip(1);
        let made: BTreeSet<&str> = made.filter_map(|kind| kind.split('"').nth(1)).collect();
        let (_, page) = include_str!("../API.md").split_once("## Errors").unwrap();
        let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
        let listed = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        let is_word = |word: &&str| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let expected = made.into_iter().filter(|word| !OF_REGISTRY.contains(word));
        assert_eq!(
            listed.filter(is_word).collect::<BTreeSet<_>>(),
            expected.collect()
        );
    }
}
