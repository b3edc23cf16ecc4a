//! Checks of a request before the router sees it, and of the caching of its answer.

use std::net::SocketAddr;

use axum::body::Body;
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Version, header, request::Parts,
    uri::Authority,
};
use hyper::body::Incoming;
use tower::ServiceExt;

use crate::connection::SharedParts;
use crate::users::LoginResult;

/// Maximum length of path and query, in bytes: the smallest that RFC 9110, section 4.1, recommends.
/// A longer one is answered with 414.
const TARGET_MAX: usize = 8000;

/// Answers of the HTTP API behind the server, which knows no paths and no form of errors.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// True for a path that is answered without credentials.
    pub is_open: fn(&str) -> bool,
    /// Returns the answer to a request that the router does not get: 400 without exactly one valid
    /// `Host`, 401 without right credentials, 413 for a GET with content, 414 for a path that is
    /// too long, 429 for too many passwords at a time.
    pub refuse: fn(&Method, &str, StatusCode) -> Response<Body>,
}

/// Answer to a request.
pub(crate) struct Answer {
    pub(crate) response: Response<Body>,
    /// User for the access log.
    pub(crate) user: Option<String>,
}

impl SharedParts {
    /// Answers a request: by the router, or with the reason for which its length, content or
    /// credentials deny it.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Answer {
        let Some(front) = &self.server.front else {
            // Clients of gRPC understand its own statuses only, and a proxy has no reason to cache
            // what they post.
            let Ok(response) = self.router.clone().oneshot(request.map(Body::new)).await;
            return Answer {
                response,
                user: None,
            };
        };
        let has_content = !hyper::body::Body::is_end_stream(request.body());
        let (request, body) = request.into_parts();
        let version = request.version;
        let LoginResult { user, refusal } = self.access(&request, front, has_content, peer).await;
        let is_passed_whole = refusal.is_none() && self.server.takes_content;
        let mut response = match refusal {
            Some(status) => (front.refuse)(&request.method, request.uri.path(), status),
            None if is_passed_whole => self.pass(request, Body::new(body)).await,
            None => self.pass(request, Body::empty()).await,
        };
        if has_content && !is_passed_whole && version < Version::HTTP_2 {
            // The next request begins after the content, which was not read.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Answer { response, user }
    }

    /// Returns the user of a request, and the status that refuses it.
    async fn access(
        &self,
        request: &Parts,
        front: &Front,
        has_content: bool,
        peer: SocketAddr,
    ) -> LoginResult {
        let refusal = refusal_of_form(request, has_content);
        // A browser asks by OPTIONS, without credentials, before it sends those of a script (WHATWG
        // Fetch, "CORS-preflight request").
        let is_open = request.method == Method::OPTIONS || (front.is_open)(request.uri.path());
        match &self.server.authenticator {
            Some(users) if refusal.is_none() && !is_open => {
                users.login(&request.headers, peer).await
            }
            _ => LoginResult {
                user: None,
                refusal,
            },
        }
    }

    /// Passes a request to the router, which limits the size of its content and the time for it.
    async fn pass(&self, request: Parts, body: Body) -> Response<Body> {
        let Ok(mut response) = self
            .router
            .clone()
            .oneshot(Request::from_parts(request, body))
            .await;
        if self.server.authenticator.is_some() {
            make_private(&mut response);
        }
        response
    }
}

/// Returns the status that refuses a request for its form, before its credentials are looked at: what
/// proxies and servers read differently is refused for every user.
fn refusal_of_form(request: &Parts, has_content: bool) -> Option<StatusCode> {
    if !has_valid_host(request) {
        return Some(StatusCode::BAD_REQUEST);
    }
    let target = request.uri.path_and_query();
    if target.is_some_and(|target| target.as_str().len() > TARGET_MAX) {
        return Some(StatusCode::URI_TOO_LONG);
    }
    // Content of a GET may hide another request from a proxy (RFC 9110, section 9.3.1). Other
    // methods get 405.
    if has_content && matches!(request.method, Method::GET | Method::HEAD) {
        return Some(StatusCode::PAYLOAD_TOO_LARGE);
    }
    None
}

/// Checks the `Host` field of a request (RFC 9112, section 3.2): an HTTP/1.1 request needs exactly
/// one, with a host. Two different readings of the host by a proxy and by this server are a known
/// way to poison caches.
///
/// HTTP/1.0 may lack the field, and HTTP/2 carries the host in the URI.
fn has_valid_host(request: &Parts) -> bool {
    let mut values = request.headers.get_all(header::HOST).iter();
    match (values.next(), values.next()) {
        (None, _) => request.version != Version::HTTP_11,
        (Some(value), None) => is_host(value.as_bytes()),
        (Some(_), Some(_)) => false,
    }
}

/// True for an authority without user information. An empty host is allowed: the target then has no
/// authority.
fn is_host(value: &[u8]) -> bool {
    value.is_empty()
        || Authority::try_from(value).is_ok_and(|authority| !authority.as_str().contains('@'))
}

/// Replaces `public` by `private` in the cache policy of an answer.
fn make_private(response: &mut Response<Body>) {
    // `public` would let a shared cache give the answer to users without credentials (RFC 9111,
    // section 3.5).
    let policy = response.headers().get(header::CACHE_CONTROL);
    let rest = policy.and_then(|policy| policy.to_str().ok()?.strip_prefix("public"));
    if let Some(rest) = rest {
        let private = HeaderValue::try_from(format!("private{rest}"))
            .expect("the rest was part of a field value");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, private);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, hosts: &[&str]) -> bool {
        let request = hosts
            .iter()
            .fold(Request::builder().version(version), |request, host| {
                request.header(header::HOST, *host)
            });
        has_valid_host(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn has_valid_host_wants_exactly_one_valid_host() {
        for hosts in [
            &["mirror.lab"][..],
            &["mirror.lab:8080"],
            &["[::1]:80"],
            &[""],
        ] {
            assert!(check(Version::HTTP_11, hosts), "{hosts:?}");
        }
        for hosts in [
            &[][..],
            &["a", "a"],
            &["a b/c"],
            &["a/b"],
            &["user@a"],
            &["a:b:c"],
        ] {
            assert!(!check(Version::HTTP_11, hosts), "{hosts:?}");
            // Other versions may lack the field.
            assert_eq!(
                check(Version::HTTP_10, hosts),
                hosts.is_empty(),
                "{hosts:?}"
            );
            assert_eq!(check(Version::HTTP_2, hosts), hosts.is_empty(), "{hosts:?}");
        }
    }

    #[test]
    fn make_private_replaces_public_only() {
        for (before, after) in [
            ("public, max-age=60", "private, max-age=60"),
            ("no-store", "no-store"),
            ("private", "private"),
        ] {
            let mut response = Response::new(Body::empty());
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static(before));
            make_private(&mut response);
            assert_eq!(response.headers()[header::CACHE_CONTROL], after);
        }
    }

    /// `make_private` looks for the first word only, so no policy may be written in another order.
    #[test]
    fn cache_policies_begin_with_public_or_are_no_store() {
        use model::CachePolicy;
        for policy in [
            CachePolicy::Immutable,
            CachePolicy::Pointer,
            CachePolicy::NoStore,
        ] {
            let text = policy.cache_control();
            assert!(text.starts_with("public, ") || text == "no-store", "{text}");
        }
    }
}
