//! The cache of the data centre, in front of the router.

use axum::{Router, body::Body};
use http::{HeaderMap, Method, Request, StatusCode, header};
use tower::ServiceExt;
use worker::{Cache, Context, EncodeBody, worker_sys::web_sys};

use crate::{answer, bucket::WHOLE_MAX};

/// Answers a request from the cache, or from the router and into the cache.
pub(crate) async fn answer(
    asked: &worker::Request,
    context: &Context,
    router: Router,
) -> worker::Result<web_sys::Response> {
    let request = answer::request(asked)?;
    let Some(key) = key(&request) else {
        let Ok(response) = router.oneshot(request).await;
        return answer::response(response).await;
    };
    let cache = Cache::default();
    if let Ok(Some(hit)) = cache.get(&key, false).await {
        return Ok(renamed(hit, CODING_OF_KEPT, header::CONTENT_ENCODING.as_str())?.into());
    }
    let Ok(response) = router.oneshot(request).await;
    let keeps = response.status() == StatusCode::OK && is_kept(response.headers());
    let response = answer::response(response).await?;
    if keeps {
        let copy = response.clone()?.into();
        let kept = renamed(copy, header::CONTENT_ENCODING.as_str(), CODING_OF_KEPT)?;
        context.wait_until(async move {
            if let Err(error) = cache.put(key, kept).await {
                tracing::warn!(?error, "cannot keep an answer in the edge cache");
            }
        });
    }
    Ok(response)
}

/// Field that holds `Content-Encoding` while an answer is in the cache. The runtime would decode
/// the body on its way out and encode it again, to other bytes under the same tag.
const CODING_OF_KEPT: &str = "x-kept-content-encoding";

fn renamed(response: worker::Response, from: &str, to: &str) -> worker::Result<worker::Response> {
    let headers = response.headers().clone();
    if let Some(coding) = headers.get(from)? {
        headers.delete(from)?;
        headers.set(to, &coding)?;
    }
    Ok(response
        .with_headers(headers)
        .with_encode_body(EncodeBody::Manual))
}

/// Returns the URL under which the cache has the whole answer. `None` if it has none. The cache
/// does not know `Vary` (Workers, "Cache"), so the codings that a client accepts are part of the
/// URL.
fn key(request: &Request<Body>) -> Option<String> {
    if request.method() != Method::GET {
        return None;
    }
    let fields = request.headers();
    for name in fields.keys() {
        // The router evaluates conditions and ranges, which ask for less than the whole answer.
        if *name == header::RANGE || name.as_str().starts_with("if-") {
            return None;
        }
    }
    let mut codings = String::new();
    if let Some(accepted) = fields.get(header::ACCEPT_ENCODING) {
        for &byte in accepted.as_bytes() {
            if byte.is_ascii_alphanumeric() || b"*,;=.".contains(&byte) {
                codings.push(char::from(byte));
            }
        }
    }
    let mark = if request.uri().query().is_some() {
        '&'
    } else {
        '?'
    };
    Some(format!("{}{mark}{codings}", request.uri()))
}

/// True for an answer that caches may keep, and that is small enough to be kept in memory on its
/// way there.
fn is_kept(head: &HeaderMap) -> bool {
    let control = head
        .get(header::CACHE_CONTROL)
        .and_then(|value| value.to_str().ok());
    control.is_some_and(|control| control.contains("max-age="))
        && answer::content_length(head).is_some_and(|length| length <= WHOLE_MAX)
}
