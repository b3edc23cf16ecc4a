//! A store, a router over it, and requests to it.

use std::sync::Arc;

use axum::{Router, body::Body};
use catalog_mirror_http::{HttpMetrics, HttpSettings, router};
use http::{Method, Request};
use store::MemoryStore;
use testkit::Answer;

use crate::fixture::{LINES, Publication, Published, publish};

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) router: Router,
    pub(crate) demo: Published,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(HttpSettings::default(), Publication::default(), LINES).await
    }

    pub(crate) async fn with(settings: HttpSettings, publication: Publication<'_>, lines: &str) -> Self {
        let store = MemoryStore::new();
        let demo = publish(&store, publication, lines).await;
        let router = router(Arc::new(store.clone()), settings, HttpMetrics::default());
        Self { store, router, demo }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        Answer::to(request, &self.router).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)], content: impl Into<Body>) -> Answer {
        let mut request = Request::builder().method(Method::POST).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        Answer::to(request.body(content.into()).unwrap(), &self.router).await
    }

    pub(crate) async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, fields).await
    }

    /// Status, headers and the beginning of the body, as they are compared with what is promised.
    pub(crate) async fn show(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.get(path, fields).await.show()
    }
}
