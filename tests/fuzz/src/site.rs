//! A mirror in memory with the example catalog.

use std::{path::Path, sync::Arc};

use api::HttpMetrics;
use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use model::{CatalogName, Current, Document, Key, Snapshot, StoredDocument};
use publish::{Catalog, Mirror, MirrorSettings, PollMetrics, PollOptions};
use source::{Source, Sources};
use store::{Condition, Store};
use storekit::MemoryStore;
use testkit::Answer;

use crate::runtime::run;

/// Folder of the example catalogs.
pub(crate) const CATALOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogs");

/// Store with one published catalog, and its server.
pub(crate) struct Site {
    pub(crate) store: MemoryStore,
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
    pub(crate) router: Router,
}

thread_local! {
    static SITE: Site = Site::new(&["v1", "v2"]);
}

/// Asks a server that no target changes. All of its versions are published.
pub(crate) fn with_site<T>(ask: impl FnOnce(&Site) -> T) -> T {
    SITE.with(ask)
}

pub(crate) fn name() -> CatalogName {
    "demo".parse().expect("a name")
}

impl Site {
    /// Publishes these versions of the example catalog one after another.
    pub(crate) fn new(versions: &[&str]) -> Self {
        let store = MemoryStore::new();
        for version in versions {
            run(publish(&store, &Path::new(CATALOGS).join(version)));
        }
        let objects = store.objects();
        let current =
            Current::from_bytes(&objects[&Key::Current(name())]).expect("what was published");
        let snapshot =
            Snapshot::from_stored(&objects[&current.snapshot.key()]).expect("what was published");
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

    /// Replaces the server by a new one with empty caches.
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
        (
            *request.method_mut(),
            *request.uri_mut(),
            *request.headers_mut(),
        ) = (method, uri, fields);
        let answer = run(Answer::to(request, &self.router));
        self.store.take_log();
        answer
    }
}

fn router(store: &MemoryStore) -> Router {
    let catalogs =
        reader::PublishedCatalogs::new(Arc::new(store.clone()), reader::ReaderSettings::default());
    api::router(
        catalogs,
        api::HttpSettings::default(),
        HttpMetrics::default(),
    )
}

async fn publish(store: &MemoryStore, folder: &Path) {
    let images =
        Sources::new(source::SourceSettings::default()).expect("the default settings work");
    let settings = MirrorSettings {
        identity: true,
        ..MirrorSettings::default()
    };
    let mirror = Mirror::new(
        images,
        Arc::new(store.clone()),
        settings,
        PollMetrics::default(),
    );
    let catalog = Catalog::new(name(), Source::Dir(folder.to_owned()));
    let options = PollOptions {
        force: true,
        ..PollOptions::default()
    };
    let report = mirror.poll(&catalog, options).await;
    assert_eq!(report.error_text(), None);
}
