//! Requests that are refused before anything is looked up, by whoever stands before the router.

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header::WWW_AUTHENTICATE};

use crate::{error::Error, problem, registry, settings::Settings};

/// Why a request does not even get to the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// Without credentials, or with wrong ones.
    #[error("this mirror answers only to those with a name and password, or a token")]
    Unauthorized,
    /// Too many credentials are being verified at the moment.
    #[error("too many passwords are being verified at the moment; try again later")]
    Busy,
    /// A path and query above the limit.
    #[error("the path and the query are too long")]
    UriTooLong,
    /// A request with content.
    #[error("requests have no content here")]
    Content,
}

/// Whether a path answers everybody, also where only some may read: whoever restarts a server, or sends it work, has no
/// credentials, and these say nothing but whether it lives.
pub fn answers_all(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// The answer to a denied request: a problem, or an error of a registry, as its path asks for.
pub fn deny(method: &Method, path: &str, denial: Denial) -> Response<Body> {
    let below = registry::is_below(path);
    let (error, settings) = (Error::Denied(denial), Settings::default());
    let mut response = if below {
        registry::respond(&error, &settings)
    } else {
        problem::respond(&error, &settings)
    };
    if below {
        registry::mark(&mut response);
    }
    if denial == Denial::Unauthorized {
        challenge(response.headers_mut(), below);
    }
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Clients of registries take a Bearer challenge for the address of a service that hands out tokens (CNCF
/// distribution, "Token Authentication Specification"), so below `/v2/` there is only Basic (RFC 7617); a token serves
/// as its password.
fn challenge(headers: &mut HeaderMap, registry: bool) {
    let basic = HeaderValue::from_static("Basic realm=\"catalog-mirror\", charset=\"UTF-8\"");
    headers.insert(WWW_AUTHENTICATE, basic);
    if !registry {
        headers.append(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"catalog-mirror\""),
        );
    }
}

impl Denial {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::Content => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Busy => "too-many-logins",
            Self::UriTooLong => "uri-too-long",
            Self::Content => "content-too-large",
        }
    }

    /// OCI distribution specification, "Error Codes".
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Busy => "TOOMANYREQUESTS",
            Self::UriTooLong | Self::Content => "UNSUPPORTED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_challenged_with_basic_alone() {
        for (path, challenges, content_type) in [
            ("/catalogs", 2, "application/problem+json"),
            ("/v2/", 1, "application/json"),
            ("/v2/demo/tags/list", 1, "application/json"),
        ] {
            let response = deny(&Method::GET, path, Denial::Unauthorized);
            assert_eq!(response.status(), 401);
            let found: Vec<_> = response.headers().get_all(WWW_AUTHENTICATE).iter().collect();
            assert_eq!(found.len(), challenges, "{path}");
            assert!(found[0].to_str().unwrap().starts_with("Basic "), "{path}");
            assert_eq!(response.headers()["content-type"], content_type);
            assert_eq!(response.headers()["cache-control"], "no-store");
        }
    }

    #[test]
    fn who_is_busy_says_when_to_come_again() {
        let response = deny(&Method::HEAD, "/v2/", Denial::Busy);
        assert_eq!(response.status(), 429);
        assert!(response.headers().contains_key("retry-after"));
    }
}
