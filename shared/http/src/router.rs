use std::{sync::Arc, time::Instant};

use axum::{Router, body::Body, extract::Request};
use http::{Method, Response, request::Parts};
use reader::PublishedCatalogs;
use tracing::Instrument;

use crate::{
    app::App,
    error::ApiError,
    metrics::HttpMetrics,
    refusal::{self, is_registry, mark_registry},
    respond::RoutedRequest,
    routes::{Match, RouteCall, find, unmatched},
    settings::HttpSettings,
};

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
        let started = Instant::now();
        let path = request.uri.path();
        let matched = find(path);
        // At debug level: formatting a span costs more than a 304 does. Lines at higher levels carry these fields themselves.
        let span = tracing::debug_span!(
            "request",
            method = request.method.as_str(),
            route = matched.map_or("unmatched", |matched| matched.route.path),
            catalog = matched.and_then(|matched| matched.params.catalog()),
            path,
        );
        let result = match matched {
            Some(matched) => self.serve(request, matched).instrument(span.clone()).await,
            None => Err(unmatched(path)),
        };
        let response = match result {
            Ok(mut response) => {
                if is_registry(path) {
                    mark_registry(response.headers_mut());
                }
                response
            }
            Err(error) => span.in_scope(|| self.refuse(request, matched, &error)),
        };
        let took = started.elapsed();
        self.metrics
            .answered(matched.map(|matched| matched.number), response.status(), took);
        tracing::debug!(
            parent: &span,
            status = response.status().as_u16(),
            duration_us = took.as_micros(),
            "answered request"
        );
        response
    }

    async fn serve(self: &Arc<Self>, request: &Parts, matched: Match<'_>) -> Result<Response<Body>, ApiError> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(ApiError::Method);
        }
        let call = RouteCall::new(self, request, matched.params);
        let representation = (matched.route.handler)(call).await?;
        let routed = RoutedRequest {
            method: &request.method,
            headers: &request.headers,
            route: matched.route,
            number: matched.number,
        };
        self.respond(routed, representation).await
    }

    /// Answers an error. Failures of the server are logged, once, here: the client learns only that there was one.
    fn refuse(&self, request: &Parts, matched: Option<Match<'_>>, error: &ApiError) -> Response<Body> {
        let path = request.uri.path();
        if error.kind().status.is_server_error() {
            let error: &dyn std::error::Error = error;
            let route = matched.map_or("unmatched", |matched| matched.route.path);
            tracing::error!(error, route, path, "cannot answer request");
        }
        refusal::respond(&request.method, path, error, self.settings.retry_after)
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
