//! Answers to errors: a problem document (RFC 9457), or below `/v2/` an error list as registries send it.

use axum::{body::Body, response::IntoResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use model::CachePolicy;
use serde_json::json;

use crate::{error::ApiError, settings::METHODS};

/// Value of `Retry-After` (RFC 9110, section 10.2.3), in seconds: a store that restarts is back by then.
const RETRY_AFTER_SECONDS: u64 = 5;

/// Field of every answer below `/v2/`, by which clients recognise a registry.
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");

/// Returns the answer to a request that is refused before the router sees it, by the status that the server has for it.
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
        let range = HeaderValue::try_from(format!("bytes */{length}")).expect("digits are visible ASCII");
        headers.insert(header::CONTENT_RANGE, range);
    }
    if matches!(error, ApiError::Method) {
        headers.insert(header::ALLOW, METHODS);
    }
    match error.kind().status {
        StatusCode::UNAUTHORIZED => {
            let basic = HeaderValue::from_static("Basic realm=\"catalog-mirror\", charset=\"UTF-8\"");
            headers.insert(header::WWW_AUTHENTICATE, basic);
            // Registry clients take a Bearer challenge for the address of a token service (CNCF distribution, "Token Authentication
            // Specification"), so below `/v2/` there is only Basic (RFC 7617). A token serves as its password.
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
