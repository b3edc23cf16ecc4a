use std::{convert::Infallible, sync::Arc};

use axum::{Router, body::Body, extract::Request, response::IntoResponse};
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use model::{CachePolicy, Encoding, Sha256};
use olm::SearchIndex;
use quick_cache::sync::Cache;
use reader::{PublishedCatalogs, PublishedState, WeightedCache};
use tracing::Instrument;

use crate::error::{self, ApiError, is_registry, mark_registry};
use crate::metrics::{HttpMetrics, UNMATCHED};
use crate::rfc9110::{Modified, Tag};
use crate::routes::{Images, Match, RouteCall, find, unmatched};
use crate::settings::{HttpSettings, METHODS};

/// Returns the whole HTTP contract over the catalogs of a store. It matches paths itself, as one fallback: `Router::nest` puts it below a
/// prefix, and other routes can be merged into it.
pub fn router(catalogs: PublishedCatalogs, settings: HttpSettings, metrics: HttpMetrics) -> Router {
    let app = Arc::new(App::new(catalogs, settings, metrics));
    Router::new().fallback(move |request: Request| {
        let app = Arc::clone(&app);
        async move {
            let (request, _) = request.into_parts();
            app.answer(&request).await
        }
    })
}

impl App {
    async fn answer(self: &Arc<Self>, request: &Parts) -> Response<Body> {
        let started = self.catalogs.now();
        let path = request.uri.path();
        let matched = find(path);
        let route = matched.as_ref().map_or(UNMATCHED, |matched| matched.value.path);
        // At debug level: formatting a span costs more than a 304 does. Lines at higher levels carry these fields themselves.
        let span = tracing::debug_span!(
            "request",
            method = request.method.as_str(),
            route,
            catalog = matched.as_ref().and_then(|matched| matched.params.get("catalog")),
            path,
        );
        let result = match &matched {
            Some(matched) => self.serve(request, matched).instrument(span.clone()).await,
            None => without_slash(request).ok_or_else(|| unmatched(request)),
        };
        let refuse = |error: ApiError| {
            // Once, and only here: the client learns no more than that the server failed.
            if error.kind().status.is_server_error() {
                tracing::error!(error = model::text::chain(&error), route, path, "cannot answer request");
            }
            error::respond(&request.method, path, &error)
        };
        let mut response = result.unwrap_or_else(|error| span.in_scope(|| refuse(error)));
        mark_registry(path, response.headers_mut());
        self.settings.origins.allow(request, response.headers_mut());
        let took = self.catalogs.now().saturating_sub(started);
        self.metrics.answered(route, response.status(), took);
        tracing::debug!(
            parent: &span,
            status = response.status().as_u16(),
            duration_us = took.as_micros(),
            "answered request"
        );
        response
    }

    async fn serve(self: &Arc<Self>, request: &Parts, matched: &Match<'_>) -> Result<Response<Body>, ApiError> {
        if request.method == Method::OPTIONS {
            // RFC 9110, section 9.3.7. A browser also asks before a GET with fields of its own.
            return Ok((StatusCode::NO_CONTENT, [(header::ALLOW, METHODS)]).into_response());
        }
        if !is_read(&request.method) {
            return Err(ApiError::Method);
        }
        let call = RouteCall {
            app: self,
            request,
            matched,
        };
        let representation = (matched.value.handler)(call).await?;
        call.respond(representation).await
    }
}

/// Returns the redirect to the route that a path with one more slash at its end means. Relative, because the router may be nested.
fn without_slash(request: &Parts) -> Option<Response<Body>> {
    let path = request.uri.path().strip_suffix('/')?;
    if !is_read(&request.method) || is_registry(path) || find(path).is_none() {
        return None;
    }
    let (_, last) = path.rsplit_once('/').filter(|(_, last)| !last.is_empty())?;
    let path_and_query = request.uri.path_and_query()?.as_str();
    let query = path_and_query.strip_prefix(request.uri.path())?;
    let location = HeaderValue::try_from(format!("../{last}{query}")).ok()?;
    let cache = HeaderValue::from_static(CachePolicy::Pointer.cache_control());
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, cache)];
    Some((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}

/// True for the methods that read, the only ones that are answered.
pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Maximum number of states whose fields are remembered: those of a thousand catalogs take less than a megabyte.
const HEADS_MAX: usize = 1024;

/// Maximum memory for earlier images, in bytes: those of a state take a few kilobytes.
const EARLIER_IMAGES_BYTES: u64 = 1 << 20;

/// State of one router that all its requests share: settings, published catalogs, caches and metrics.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) catalogs: PublishedCatalogs,
    pub(crate) settings: HttpSettings,
    pub(crate) metrics: HttpMetrics,
    heads: Cache<Sha256, Arc<StateHead>>,
    /// Images of earlier publications, by the pointer that remembers them and the minute in which they were read.
    pub(crate) earlier_images: WeightedCache<(Sha256, u64), Images>,
    /// Indexes for search, by the hash of their stored documents.
    pub(crate) searches: WeightedCache<Sha256, Arc<SearchIndex>>,
}

/// Fields of answers that follow from a published state. They are made once: the most frequent question formats and hashes
/// nothing.
#[derive(Debug)]
pub(crate) struct StateHead {
    /// Content hash as a line.
    pub(crate) hash_line: Bytes,
    pub(crate) hash_tag: Tag,
    pub(crate) modified: Modified,
    /// Tags of the pointer by the number of the encoding.
    pub(crate) document_tags: [Tag; 3],
    /// Tags of the whole catalog by the number of the encoding.
    pub(crate) all_tags: [Tag; 3],
}

impl StateHead {
    fn new(state: &PublishedState) -> Self {
        let current = state.current();
        let hash_line = Bytes::from(format!("{}\n", current.content_hash));
        Self {
            hash_tag: Tag::of_stored(Sha256::of(&hash_line)),
            hash_line,
            document_tags: Encoding::ALL.map(|encoding| Tag::of_made(state.document_hash(), encoding)),
            modified: Modified::new(current.published_at),
            all_tags: Encoding::ALL.map(|encoding| {
                // Made on the fly, the bytes are those of the content hash.
                let stored = current.all.get(encoding).map(|object| object.digest.sha256);
                Tag::of_stored(stored.unwrap_or(current.content_hash))
            }),
        }
    }
}

impl App {
    pub(crate) fn new(catalogs: PublishedCatalogs, settings: HttpSettings, metrics: HttpMetrics) -> Self {
        // About 64 bytes for each blob of an image.
        let weight = |images: &Images| images.iter().map(|(_, image)| 64 * image.blobs().count() as u64).sum();
        Self {
            // The part that the reader leaves.
            searches: WeightedCache::new(catalogs.cache_bytes() / 16, 1, |index| index.weight()),
            heads: Cache::new(HEADS_MAX),
            earlier_images: WeightedCache::new(EARLIER_IMAGES_BYTES, 1, weight),
            catalogs,
            settings,
            metrics,
        }
    }

    /// Returns the fields of a published state, from memory or into it.
    pub(crate) fn head(&self, state: &PublishedState) -> Arc<StateHead> {
        let make = || Ok::<_, Infallible>(Arc::new(StateHead::new(state)));
        let Ok(head) = self.heads.get_or_insert_with(&state.document_hash(), make);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn future_of_a_request_is_small() {
        // It is moved into a box for every request.
        let store = Arc::new(storekit::MemoryStore::new());
        let catalogs = PublishedCatalogs::new(store, reader::ReaderSettings::default());
        let app = Arc::new(App::new(catalogs, HttpSettings::default(), HttpMetrics::default()));
        let (request, ()) = http::Request::new(()).into_parts();
        let size = size_of_val(&app.answer(&request));
        assert!(size <= 2048, "{size} bytes");
    }
}
