//! Questions to the API behind the server, and the check of the host that comes before all others.

use axum::body::Body;
use http::{Method, Response, StatusCode, Version, header::HOST, request::Parts, uri::Authority};

/// Answers of the HTTP API behind the server, which knows no paths and no form of errors.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// True for a path that is answered without credentials.
    pub is_open: fn(&str) -> bool,
    /// Returns the answer to a request that the router does not get: 400 without exactly one valid `Host`, 401 without right
    /// credentials, 413 for a GET with content, 414 for a path that is too long, 429 for too many passwords at a time.
    pub refuse: fn(&Method, &str, StatusCode) -> Response<Body>,
}

/// Checks the `Host` field of a request (RFC 9112, section 3.2): an HTTP/1.1 request needs exactly one, with a host. Two
/// different readings of the host by a proxy and by this server are a known way to poison caches.
///
/// HTTP/1.0 may lack the field, and HTTP/2 carries the host in the URI.
pub(crate) fn has_valid_host(request: &Parts) -> bool {
    let mut values = request.headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (None, _) => request.version != Version::HTTP_11,
        (Some(value), None) => is_host(value.as_bytes()),
        (Some(_), Some(_)) => false,
    }
}

/// True for an authority without user information. An empty host is allowed: the target then has no authority.
fn is_host(value: &[u8]) -> bool {
    value.is_empty() || Authority::try_from(value).is_ok_and(|authority| !authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(version: Version, hosts: &[&str]) -> bool {
        let request = hosts.iter().fold(Request::builder().version(version), |request, host| {
            request.header(HOST, *host)
        });
        has_valid_host(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn has_valid_host_wants_exactly_one_valid_host() {
        for hosts in [&["mirror.lab"][..], &["mirror.lab:8080"], &["[::1]:80"], &[""]] {
            assert!(check(Version::HTTP_11, hosts), "{hosts:?}");
        }
        for hosts in [&[][..], &["a", "a"], &["a b/c"], &["a/b"], &["user@a"], &["a:b:c"]] {
            assert!(!check(Version::HTTP_11, hosts), "{hosts:?}");
            // Other versions may lack the field.
            assert_eq!(check(Version::HTTP_10, hosts), hosts.is_empty(), "{hosts:?}");
            assert_eq!(check(Version::HTTP_2, hosts), hosts.is_empty(), "{hosts:?}");
        }
    }
}
