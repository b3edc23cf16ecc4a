use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text, registry::Registry};

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page `/metrics` with the metrics of all parts of a program.
pub struct MetricsPage {
    registry: Registry,
    refresh: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for MetricsPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsPage").finish_non_exhaustive()
    }
}

impl MetricsPage {
    /// Returns the page of a registry. `refresh` is called before each answer, for metrics such as ages, which are computed when
    /// the page is asked for.
    pub fn new(registry: Registry, refresh: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            registry,
            refresh: Box::new(refresh),
        }
    }

    fn text(&self) -> Result<String, fmt::Error> {
        (self.refresh)();
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }

    /// Returns the route `/metrics`, which encodes the registry for each request.
    pub fn route(self) -> Router {
        let page = Arc::new(Mutex::new(self));
        let answer = move || {
            let page = page.lock().unwrap_or_else(PoisonError::into_inner).text();
            async move {
                page.map(|page| ([(CONTENT_TYPE, OPENMETRICS)], page))
                    .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
                    .into_response()
            }
        };
        Router::new().route("/metrics", get(answer))
    }
}
