//! Requests that a follower passes on to the leader.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{
            AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use fetch::{FetchResponse, RequestSpec};
use futures_util::stream;

use super::{
    follower::{AnswerPlace, Follower},
    link::LeaderLink,
};

/// Header of a request that was passed on. It is not passed on again.
const FORWARDED: HeaderName = HeaderName::from_static("catalog-mirror-forwarded");

/// Maximum number of bytes of a request's content, as for a query of GraphQL.
const CONTENT_MAX: usize = 1 << 20;

/// Headers that belong to one connection (RFC 9110, section 7.6.1), and those that the client writes itself.
const OWN_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HOST,
    CONTENT_LENGTH,
    // The API wants none, so none of it is shown to another process.
    AUTHORIZATION,
];

/// A request that may be sent twice.
struct SavedRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    content: Bytes,
}

/// Answers a request from the store of this replica or, if that is behind, from the leader.
pub(crate) async fn forward(State(follower): State<Arc<Follower>>, request: Request, next: Next) -> Response {
    let is_forwarded = request.headers().contains_key(FORWARDED);
    let catalog = catalog_of(request.uri().path()).map(str::to_owned);
    match catalog.as_deref().map(|catalog| follower.route(catalog)) {
        Some(AnswerPlace::Own) => next.run(request).await,
        Some(AnswerPlace::Forward(leader)) if !is_forwarded => match saved(request).await {
            Ok(request) => request.send(&leader).await,
            Err(refused) => refused,
        },
        Some(_) => unavailable(),
        None => {
            let may_miss = !is_forwarded && matches!(*request.method(), Method::GET | Method::HEAD);
            let Some(leader) = may_miss.then(|| follower.leader_of_missing()).flatten() else {
                return next.run(request).await;
            };
            let saved = SavedRequest {
                method: request.method().clone(),
                uri: request.uri().clone(),
                headers: request.headers().clone(),
                content: Bytes::new(),
            };
            let response = next.run(request).await;
            match response.status() {
                StatusCode::NOT_FOUND => saved.send(&leader).await,
                _ => response,
            }
        }
    }
}

async fn saved(request: Request) -> Result<SavedRequest, Response> {
    let (parts, body) = request.into_parts();
    let content = to_bytes(body, CONTENT_MAX).await;
    Ok(SavedRequest {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        content: content.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE.into_response())?,
    })
}

impl SavedRequest {
    async fn send(self, leader: &LeaderLink) -> Response {
        let mut headers = self.headers;
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(name)));
        headers.insert(FORWARDED, HeaderValue::from_static("1"));
        let request = RequestSpec {
            headers,
            body: (!self.content.is_empty()).then_some(self.content),
            ..RequestSpec::default()
        };
        match leader.forward(self.method.clone(), &self.uri, request).await {
            Ok(response) => answer(response, &self.method),
            Err(error) => {
                tracing::warn!(
                    path = self.uri.path(),
                    error = format!("{error:#}"),
                    "cannot forward a request"
                );
                unavailable()
            }
        }
    }
}

fn answer(from: FetchResponse, method: &Method) -> Response {
    let (status, mut headers) = (from.status(), from.headers().clone());
    for name in OWN_HEADERS.iter().filter(|name| **name != CONTENT_LENGTH) {
        headers.remove(name);
    }
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => Body::from_stream(stream::try_unfold(from, |mut from| async move {
            match from.chunk().await {
                Ok(Some(chunk)) => Ok(Some((chunk, from))),
                Ok(None) => Ok(None),
                Err(failed) => Err(failed.error),
            }
        })),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn unavailable() -> Response {
    let headers = [(RETRY_AFTER, HeaderValue::from_static("1"))];
    let text = "this replica does not have the current state of the catalog\n";
    (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
}

/// Returns the catalog of a path: `/catalogs/NAME/...` or `/v2/NAME/...`.
fn catalog_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/catalogs/").or_else(|| path.strip_prefix("/v2/"))?;
    let name = rest.split('/').next()?;
    (!name.is_empty() && name != "_catalog").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_is_in_paths_of_catalogs_and_of_their_images() {
        for (path, catalog) in [
            ("/catalogs/a/api/v1/all", Some("a")),
            ("/catalogs/a.b", Some("a.b")),
            ("/v2/a/manifests/latest", Some("a")),
            ("/v2/", None),
            ("/v2/_catalog", None),
            ("/catalogs", None),
            ("/packages/sha256/aa", None),
        ] {
            assert_eq!(catalog_of(path), catalog, "{path}");
        }
    }
}
