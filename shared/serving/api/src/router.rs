use std::sync::Arc;

use axum::{Router, body::Body, extract::Request, response::IntoResponse};
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use model::CachePolicy;
use reader::PublishedCatalogs;
use tracing::Instrument;

use crate::app::App;
use crate::call::{Match, RouteCall};
use crate::error::{self, ApiError, is_registry, mark_registry};
use crate::metrics::{HttpMetrics, UNMATCHED};
use crate::rfc9110::is_read;
use crate::routes::{find, unmatched};
use crate::settings::{HttpSettings, METHODS};

/// Returns the whole HTTP contract over the catalogs of a store. It matches paths itself, as one
/// fallback: `Router::nest` puts it below a prefix, and other routes can be merged into it.
///
/// A layer in front may choose the state that answers, by a [`PublishedState`](reader::PublishedState)
/// of the path's catalog among the extensions of the request.
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
        let route = matched
            .as_ref()
            .map_or(UNMATCHED, |matched| matched.value.path);
        // At debug level: formatting a span costs more than a 304 does. Lines at higher levels
        // carry these fields themselves.
        let span = tracing::debug_span!(
            "request",
            method = request.method.as_str(),
            route,
            catalog = matched
                .as_ref()
                .and_then(|matched| matched.params.get("catalog")),
            path,
        );
        let result = match &matched {
            Some(matched) => self.serve(request, matched).instrument(span.clone()).await,
            None => without_slash(request).ok_or_else(|| unmatched(request)),
        };
        let mut response = match result {
            Ok(response) => response,
            Err(error) => span.in_scope(|| refuse(request, route, &error)),
        };
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

    async fn serve(
        self: &Arc<Self>,
        request: &Parts,
        matched: &Match<'_>,
    ) -> Result<Response<Body>, ApiError> {
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
        call.check_query()?;
        let representation = (matched.value.handler)(call).await?;
        call.respond(representation).await
    }
}

/// Returns the redirect to the route that a path with one more slash at its end means. Relative,
/// because the router may be nested.
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

/// Returns the answer to a request that failed.
fn refuse(request: &Parts, route: &str, error: &ApiError) -> Response<Body> {
    let path = request.uri.path();
    // Once, and only here: the client learns no more than that the server failed.
    // A metric counts those without memory: there may be thousands.
    if error.kind().status.is_server_error()
        && !matches!(error, ApiError::Memory(_) | ApiError::NotReady)
    {
        tracing::error!(
            error = %model::text::Chain(error),
            route,
            path,
            "cannot answer request"
        );
    }
    error::respond(&request.method, path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn future_of_a_request_is_small() {
        // It is moved into a box for every request.
        let store = Arc::new(storekit::MemoryStore::new());
        let catalogs = PublishedCatalogs::new(store, reader::ReaderSettings::default());
        let app = Arc::new(App::new(
            catalogs,
            HttpSettings::default(),
            HttpMetrics::default(),
        ));
        let (request, ()) = http::Request::new(()).into_parts();
        let size = size_of_val(&app.answer(&request));
        assert!(size <= 2048, "{size} bytes");
    }
}
