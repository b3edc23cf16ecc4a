//! A store, a router over it, and requests to it.

use std::sync::Arc;

use api::{BaseUrl, HttpMetrics, HttpSettings, LargeBodies, offload};
use axum::{Router, body::Body};
use http::{Method, Request, StatusCode};
use reader::{PublishedCatalogs, ReaderSettings};
use store::Store;
use storekit::MemoryStore;
use testkit::Answer;

use crate::fixture::{LINES, Publication, Published, publish};
use crate::openapi;

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) router: Router,
    pub(crate) demo: Published,
}

/// Returns settings with which larger bodies are redirected to their object, or sent up to `max`
/// bytes without one.
pub(crate) fn redirecting(above: u64, max: u64) -> HttpSettings {
    let to: Arc<BaseUrl> = Arc::new("https://cdn.example/mirror/".parse().unwrap());
    HttpSettings {
        large: Some(LargeBodies { above, max, to }),
        ..HttpSettings::default()
    }
}

/// Memory for caches, so that answers come from memory or are streamed, and true if the plain
/// `all.json` is stored too.
pub(crate) const SITUATIONS: [(u64, bool); 4] =
    [(64 << 20, false), (64 << 20, true), (0, false), (0, true)];

/// Returns a router over a store, with empty caches.
pub(crate) fn router<S: Store + Clone>(
    store: &S,
    reader: ReaderSettings,
    http: HttpSettings,
) -> Router {
    let catalogs = PublishedCatalogs::new(
        Arc::new(store.clone()),
        ReaderSettings { offload, ..reader },
    );
    api::router(catalogs, http, HttpMetrics::default())
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::of(Publication::default(), LINES).await
    }

    pub(crate) async fn of(publication: Publication<'_>, lines: &str) -> Self {
        let store = MemoryStore::new();
        let demo = publish(&store, publication, lines).await;
        let router = router(&store, ReaderSettings::default(), HttpSettings::default());
        Self {
            store,
            router,
            demo,
        }
    }

    /// Returns one of the [`SITUATIONS`].
    pub(crate) async fn situated((cache_bytes, identity): (u64, bool)) -> Self {
        let publication = Publication {
            identity,
            ..Publication::default()
        };
        Self::of(publication, LINES).await.caching(cache_bytes)
    }

    /// Returns the world with empty caches, whose reader has these settings.
    pub(crate) fn reading(self, settings: ReaderSettings) -> Self {
        let router = router(&self.store, settings, HttpSettings::default());
        Self { router, ..self }
    }

    /// Returns the world with empty caches, which may take this much memory, in bytes.
    pub(crate) fn caching(self, cache_bytes: u64) -> Self {
        self.reading(ReaderSettings {
            cache_bytes,
            ..ReaderSettings::default()
        })
    }

    /// Returns the world with empty caches, whose router has these settings.
    pub(crate) fn serving(self, settings: HttpSettings) -> Self {
        let router = router(&self.store, ReaderSettings::default(), settings);
        Self { router, ..self }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(&method).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut answer = Answer::to(request.body(Body::empty()).unwrap(), &self.router).await;
        // On each answer of a mirror without users, also on errors.
        for field in [
            "access-control-allow-origin",
            "access-control-expose-headers",
        ] {
            let value = answer.headers.remove(field);
            assert!(
                method == Method::OPTIONS || value.unwrap() == "*",
                "{method} {path}"
            );
        }
        openapi::check(&method, path, &answer);
        answer
    }

    pub(crate) async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, fields).await
    }

    pub(crate) async fn status(&self, path: &str) -> StatusCode {
        self.get(path, &[]).await.status
    }

    /// Status, headers and the beginning of the body, as they are compared with what is promised.
    pub(crate) async fn show(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.get(path, fields).await.show()
    }
}

/// Returns how a problem is shown. `field` is the header field that not all problems have.
pub(crate) fn problem(status: u16, kind: &str, detail: &str, field: &str) -> String {
    let status = StatusCode::from_u16(status).unwrap();
    let (code, title) = (status.as_u16(), status.canonical_reason().unwrap());
    let kind = format!("urn:problem-type:catalog-mirror:{kind}");
    let detail = serde_json::json!(detail);
    let body =
        format!(r#"{{"detail":{detail},"status":{code},"title":"{title}","type":"{kind}"}}"#);
    let length = format!("content-length: {}", body.len() + 1);
    let mut fields = vec![
        "cache-control: no-store",
        &length,
        "content-type: application/problem+json",
        field,
    ];
    fields.retain(|field| !field.is_empty());
    fields.sort_unstable();
    format!("{status}\n{}\n\n{body}", fields.join("\n"))
}
