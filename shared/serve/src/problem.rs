use http::{
    HeaderMap, HeaderValue, Response,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER},
};
use layout::CachePolicy;
use serde::Serialize;
use utoipa::ToSchema;

use axum::body::Body;

use crate::{denial::Denial, error::Error, settings::Settings};

/// What went wrong (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of the problem; it never changes its meaning.
    #[serde(rename = "type")]
    #[schema(example = "urn:problem-type:catalog-mirror:unknown-catalog")]
    kind: String,
    /// The status in words.
    #[schema(example = "Not Found")]
    title: &'static str,
    /// The status of the response.
    #[schema(example = 404)]
    status: u16,
    /// What is wrong with this request.
    #[schema(example = "no catalog \"demo\" is served here")]
    detail: String,
}

impl Problem {
    fn new(error: &Error) -> Self {
        let status = error.status();
        Self {
            kind: format!("urn:problem-type:catalog-mirror:{}", error.word()),
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: error.detail(),
        }
    }
}

/// The answer that tells a client of an error.
pub(crate) fn respond(error: &Error, settings: &Settings) -> Response<Body> {
    let mut body = serde_json::to_vec(&Problem::new(error)).expect("a problem is four plain fields");
    body.push(b'\n');
    let mut response = Response::new(Body::empty());
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    // A cache that remembers an error would keep telling it after it has gone.
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static(CachePolicy::NoStore.cache_control()),
    );
    add_hint(headers, error, settings);
    *response.body_mut() = Body::from(body);
    response
}

/// What a client can do about it: other methods, other ranges, later.
fn add_hint(headers: &mut HeaderMap, error: &Error, settings: &Settings) {
    match error {
        Error::Method => {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        Error::Range(length) => {
            let range = HeaderValue::try_from(format!("bytes */{length}")).expect("digits are visible ASCII");
            headers.insert(CONTENT_RANGE, range);
        }
        Error::Store(_)
        | Error::Locate { .. }
        | Error::Corrupt { .. }
        | Error::Untrusted { .. }
        | Error::Denied(Denial::Busy) => {
            headers.insert(RETRY_AFTER, HeaderValue::from(settings.retry_after.as_secs()));
        }
        Error::CatalogName(_)
        | Error::Parameter(_)
        | Error::SinceParameter(_)
        | Error::Since
        | Error::UnknownSince(_)
        | Error::UnknownPath
        | Error::UnknownCatalog(_)
        | Error::UnknownPackage(_)
        | Error::UnknownObject
        | Error::NotAcceptable
        | Error::TooLarge
        | Error::PreconditionFailed
        | Error::Registry(_)
        | Error::Denied(Denial::Unauthorized | Denial::UriTooLong | Denial::Content) => {}
    }
}
