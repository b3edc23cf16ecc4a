//! A mirror in memory that serves the example catalog.

use std::{path::Path, sync::Arc};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use image::{Images, Source};
use layout::{Availability, CatalogName, Current, Document, Key, Snapshot};
use poll::{Catalog, Mirror};
use serve::Metrics;
use store::{Condition, MemoryStore, Store};
use testkit::Answer;

use crate::runtime::run;

/// Where the catalogs of the examples are.
pub(crate) const CATALOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogs");

/// A store with one published catalog.
pub(crate) struct Site {
    pub(crate) store: MemoryStore,
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
    pub(crate) router: Router,
}

pub(crate) fn name() -> CatalogName {
    "demo".parse().expect("a name")
}

impl Site {
    /// With the versions of the example catalog published one after the other.
    pub(crate) fn new(versions: &[&str]) -> Self {
        let store = MemoryStore::new();
        for version in versions {
            run(publish(&store, &Path::new(CATALOGS).join(version)));
        }
        let objects = store.objects();
        let current = Current::from_bytes(&objects[&Key::Current(name())]).expect("what was published");
        let key = Key::Snapshot(name(), current.content_hash);
        let snapshot = Snapshot::from_bytes(&objects[&key]).expect("what was published");
        Self {
            router: router(&store),
            current,
            snapshot,
            store,
        }
    }

    pub(crate) fn object(&self, key: &Key) -> Bytes {
        self.store.objects()[key].clone()
    }

    pub(crate) fn put(&self, key: &Key, bytes: impl Into<Bytes>) {
        let put = self.store.put(key, bytes.into(), Condition::Always);
        run(put).expect("memory takes all");
    }

    /// The same store behind a server that has not seen any of it.
    pub(crate) fn restart(&mut self) {
        self.store.take_log();
        self.router = router(&self.store);
    }

    pub(crate) fn get(&self, path: &str, fields: HeaderMap) -> Answer {
        let uri = path.parse().unwrap_or_else(|_| panic!("{path} is a path"));
        self.ask(Method::GET, uri, fields)
    }

    pub(crate) fn ask(&self, method: Method, uri: Uri, fields: HeaderMap) -> Answer {
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, fields);
        let answer = run(Answer::to(request, &self.router));
        self.store.take_log();
        answer
    }
}

fn router(store: &MemoryStore) -> Router {
    serve::router(Arc::new(store.clone()), serve::Settings::default(), Metrics::default())
}

async fn publish(store: &MemoryStore, folder: &Path) {
    let images = Images::new(image::Settings::default()).expect("the default settings work");
    let settings = poll::Settings {
        identity: true,
        ..poll::Settings::default()
    };
    let mirror = Mirror::new(images, Arc::new(store.clone()), settings, poll::Metrics::default());
    let catalog = Catalog {
        name: name(),
        source: Source::Dir(folder.to_owned()),
        availability: Availability::Available,
        interval: None,
        policy: None,
        lookaside: None,
    };
    let report = mirror.turn(&catalog, true).await;
    assert_eq!(report.error_text(), None);
}
