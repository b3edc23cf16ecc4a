use std::{sync::Arc, time::Instant};

use axum::{Router, body::Body, extract::Request};
use http::{Method, Response, request::Parts};
use store::Store;

use crate::{
    app::App,
    error::Error,
    metrics::Metrics,
    problem, registry,
    respond::Asked,
    route::{Route, Target},
    settings::Settings,
};

/// The whole HTTP contract over a store. It reads paths itself, as one fallback: `Router::nest` puts it below a
/// prefix, and other routes can be added to it.
pub fn router(store: Arc<dyn Store>, settings: Settings, metrics: Metrics) -> Router {
    let app = Arc::new(App::new(store, settings, metrics));
    Router::new().fallback(move |request: Request| {
        let app = Arc::clone(&app);
        async move { app.answer(&request.into_parts().0).await }
    })
}

impl App {
    async fn answer(self: &Arc<Self>, request: &Parts) -> Response<Body> {
        let started = Instant::now();
        let target = Target::parse(request.uri.path());
        let route = target.as_ref().map_or(Route::Unknown, Target::label);
        let result = match target {
            Ok(target) => self.serve(request, route, target).await,
            Err(error) => Err(error),
        };
        let mut response = result.unwrap_or_else(|error| self.refuse(request, route, &error));
        if registry::is_below(request.uri.path()) {
            registry::mark(&mut response);
        }
        let took = started.elapsed();
        self.metrics.answered(route, response.status(), took);
        tracing::debug!(
            method = request.method.as_str(),
            path = request.uri.path(),
            status = response.status().as_u16(),
            duration_us = took.as_micros(),
            "answered"
        );
        response
    }

    async fn serve(
        self: &Arc<Self>,
        request: &Parts,
        route: Route,
        target: Target<'_>,
    ) -> Result<Response<Body>, Error> {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(Error::Method);
        }
        let query = request.uri.query().unwrap_or_default();
        let representation = self.represent(target, query, &request.headers).await?;
        let asked = Asked {
            method: &request.method,
            headers: &request.headers,
            route,
        };
        self.respond(asked, representation).await
    }

    fn refuse(&self, request: &Parts, route: Route, error: &Error) -> Response<Body> {
        if error.status().is_server_error() {
            let error: &dyn std::error::Error = error;
            tracing::error!(
                error,
                route = route.as_str(),
                path = request.uri.path(),
                "cannot answer"
            );
        }
        let mut response = if registry::is_below(request.uri.path()) {
            registry::respond(error, &self.settings)
        } else {
            problem::respond(error, &self.settings)
        };
        if request.method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is moved into a box for every request.
    #[test]
    fn the_future_of_a_request_is_small() {
        let store = Arc::new(store::MemoryStore::new());
        let app = Arc::new(App::new(store, Settings::default(), Metrics::default()));
        let (request, ()) = http::Request::new(()).into_parts();
        let size = size_of_val(&app.answer(&request));
        assert!(size <= 2048, "{size} bytes");
    }
}
