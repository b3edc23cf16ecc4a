//! What a request has to be before it gets to the router, and what its answer has to be afterwards.

use std::sync::Arc;

use axum::{Router, body::Body};
use http::{
    HeaderValue, Method, Request, Response, Version,
    header::{CACHE_CONTROL, CONNECTION},
    request::Parts,
};
use hyper::body::Incoming;
use serve::{Denial, answers_all, deny};
use tower::ServiceExt;

use crate::{limits::Limits, readers::Guard};

/// All that requests have in common.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) router: Router,
    pub(crate) limits: Arc<Limits>,
    pub(crate) guard: Option<Arc<Guard>>,
}

impl Front {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let content = !hyper::body::Body::is_end_stream(request.body());
        // No route takes content, so it is not even read.
        let (request, _) = request.into_parts();
        let version = request.version;
        let mut response = match self.objection(&request, content).await {
            Some(denial) => deny(&request.method, request.uri.path(), denial),
            None => self.pass(request).await,
        };
        if content && version < Version::HTTP_2 {
            // Where the next request begins is not known without reading.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn objection(&self, request: &Parts, content: bool) -> Option<Denial> {
        let uri = &request.uri;
        if uri
            .path_and_query()
            .is_some_and(|text| text.as_str().len() > self.limits.uri)
        {
            return Some(Denial::UriTooLong);
        }
        // Content of a GET may be an attempt to smuggle another request past a proxy (RFC 9110, section 9.3.1). Other
        // methods are refused as such.
        if content && matches!(request.method, Method::GET | Method::HEAD) {
            return Some(Denial::Content);
        }
        match &self.guard {
            Some(guard) if !answers_all(uri.path()) => guard.objection(&request.headers).await,
            _ => None,
        }
    }

    async fn pass(&self, request: Parts) -> Response<Body> {
        let Ok(mut response) = self
            .router
            .clone()
            .oneshot(Request::from_parts(request, Body::empty()))
            .await;
        if self.guard.is_some() {
            keep_private(&mut response);
        }
        response
    }
}

/// An answer that was meant for who asked for it. `public` would let a shared cache keep it for everybody, although the
/// request had credentials (RFC 9111, section 3.5).
fn keep_private(response: &mut Response<Body>) {
    let Some(policy) = response
        .headers()
        .get(CACHE_CONTROL)
        .and_then(|value| value.to_str().ok())
    else {
        return;
    };
    if let Some(rest) = policy.strip_prefix("public") {
        let private = HeaderValue::try_from(format!("private{rest}")).expect("it was a field value before");
        response.headers_mut().insert(CACHE_CONTROL, private);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_public_is_private() {
        for (before, after) in [
            ("public, max-age=60", "private, max-age=60"),
            ("no-store", "no-store"),
            ("private", "private"),
        ] {
            let mut response = Response::new(Body::empty());
            response
                .headers_mut()
                .insert(CACHE_CONTROL, HeaderValue::from_static(before));
            keep_private(&mut response);
            assert_eq!(response.headers()[CACHE_CONTROL], after);
        }
    }

    /// Nothing that the contract serves may stay public by being written otherwise.
    #[test]
    fn every_policy_of_the_contract_is_one_of_these() {
        use layout::CachePolicy;
        for policy in [CachePolicy::Immutable, CachePolicy::Pointer, CachePolicy::NoStore] {
            let text = policy.cache_control();
            assert!(text.starts_with("public, ") || text == "no-store", "{text}");
        }
    }
}
