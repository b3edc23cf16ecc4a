//! Replicas, of which one writes the statuses.

mod simulation;

use std::time::Duration;

use api::HttpSettings;
use axum::{Router, body::Body, body::to_bytes, middleware};
use futures_util::future::join_all;
use kube::Api;
use kube::runtime::watcher::Event;
use model::Document as _;
use parking_lot::Mutex;
use reader::ReaderSettings;
use serde_json::json;
use storekit::{MemoryStore, conformance::put};
use testkit::{CurrentBuilder, SnapshotBuilder};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::*;
use crate::conditions::Fact;
use crate::poll::{next_poll, whole_seconds};
use crate::tests::{ApiServer, catalog, condition};

const CATALOG: &str = "/apis/olm.operatorframework.io/v1/clustercatalogs/a";

/// Paths whose answers clients keep, one of them spelled in another way.
const KEPT: [&str; 4] = [
    "/catalogs/a/api/v1/all",
    "/catalogs/%61/api/v1/all",
    "/catalogs/a/api/v1/metas?schema=olm.package",
    "/catalogs/a/all.json",
];

impl Served {
    /// Serves this store as the replica that leads.
    pub(crate) fn led(objects: reflector::Store<ClusterCatalog>, store: Arc<dyn Store>) -> Self {
        Self {
            objects,
            listed: watch::channel(true).1,
            store,
            has_own_store: false,
            role: watch::channel(Role::Leader).1,
            polls: Arc::default(),
        }
    }
}

struct Replica {
    server: ApiServer,
    served: Arc<Served>,
    statuses: Mutex<reflector::store::Writer<ClusterCatalog>>,
    role: watch::Sender<Role>,
    routes: Router,
}

impl Replica {
    /// A replica with an empty store, at an API server that has no objects.
    fn new(has_own_store: bool) -> Self {
        Self::at(&ApiServer::default(), has_own_store, Duration::ZERO)
    }

    /// `freshness` is the time for which the API behind the gate keeps a pointer.
    fn at(server: &ApiServer, has_own_store: bool, freshness: Duration) -> Self {
        let (objects, statuses) = reflector::store();
        let role = watch::Sender::new(Role::Follower);
        let store = Arc::new(MemoryStore::new());
        let served = Arc::new(Served {
            has_own_store,
            role: role.subscribe(),
            ..Served::led(objects, store.clone())
        });
        let settings = ReaderSettings {
            freshness,
            ..ReaderSettings::default()
        };
        let catalogs = PublishedCatalogs::new(store.clone(), settings);
        let gate = Gate {
            served: served.clone(),
            newest: Newest::new(Api::all(server.client()), store),
            catalogs: catalogs.clone(),
        };
        let gate = middleware::from_fn_with_state(Arc::new(gate), refuse_behind);
        let api = api::router(catalogs, HttpSettings::default(), Default::default());
        Self {
            server: server.clone(),
            served,
            statuses: Mutex::new(statuses),
            role,
            routes: api.layer(gate),
        }
    }

    /// Lets the status of the catalog name the image of this digest, and this replica see it.
    fn name(&self, digest: &str) {
        name_at(&self.server, digest);
        self.see(digest);
    }

    /// Lets this replica see that the status names the image of this digest.
    fn see(&self, digest: &str) {
        let named = Event::Apply(catalog("a", "True", digest));
        self.statuses.lock().apply_watcher_event(&named);
    }

    /// Publishes content that tells the digest of its image.
    async fn publish(&self, digest: &str) {
        let line = json!({"name": "p", "schema": "olm.package", "step": digest});
        let built = SnapshotBuilder::new()
            .package("p", format!("{line}\n"))
            .build();
        for (key, bytes) in &built.objects {
            put(&*self.served.store, key, bytes.to_vec()).await;
        }
        let builder = CurrentBuilder::new(&built.snapshot);
        let current = builder.source("quay.io/a/b:v1", digest).build();
        let key = Key::Current("a".parse().unwrap());
        put(&*self.served.store, &key, current.to_bytes()).await;
    }

    /// Notes, as the leader, that the last poll has published this image.
    fn note_poll(&self, digest: &str) {
        let fact = Fact::Stored {
            reference: format!("quay.io/a/b@{digest}"),
            unpacked: whole_seconds(),
        };
        let polled = next_poll(&self.served.objects.state()[0], None, fact, None);
        self.served.polls.set("a", polled);
    }

    async fn read(&self, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        self.routes.clone().oneshot(request).await.unwrap()
    }

    async fn status(&self, path: &str) -> u16 {
        self.read(path).await.status().as_u16()
    }

    /// Reads it with one request, and a moment later with many.
    async fn flood(&self) -> Vec<Option<String>> {
        let later = async {
            sleep(Duration::from_millis(1)).await;
            join_all((0..100).map(|_| self.content())).await
        };
        let (first, mut contents) = tokio::join!(self.content(), later);
        contents.push(first);
        contents
    }

    /// Reads the catalog, and returns the digest of the image that it was made from; `None` for an
    /// answer without content.
    async fn content(&self) -> Option<String> {
        let response = self.read(KEPT[0]).await;
        if response.status() != StatusCode::OK {
            return None;
        }
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let line: serde_json::Value = serde_json::from_slice(&body).unwrap();
        Some(line["step"].as_str().unwrap().to_owned())
    }
}

/// Lets the status of the catalog at the API server name the image of this digest.
fn name_at(server: &ApiServer, digest: &str) {
    let source = json!({"type": "Image", "image": {"ref": format!("quay.io/a/b@{digest}")}});
    let status = json!({"conditions": [condition("Serving", "True")], "resolvedSource": source});
    let object = json!({"metadata": {"name": "a"}, "status": status});
    server.lock().change(CATALOG, &object);
}

#[tokio::test]
async fn catalog_whose_status_names_another_image_is_answered_by_503() {
    let replica = Replica::new(true);
    replica.publish("sha256:0").await;
    assert_eq!(
        replica.status(KEPT[0]).await,
        200,
        "no status names an image"
    );
    replica.name("sha256:1");
    let refused = replica.read("/v2/a/manifests/latest").await;
    assert_eq!(refused.status().as_u16(), 503);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_eq!(replica.served.missing().await, ["a"]);
    replica.publish("sha256:1").await;
    assert_eq!(replica.content().await.as_deref(), Some("sha256:1"));
    assert!(replica.served.missing().await.is_empty());
    replica.name("sha256:2");
    for path in KEPT.into_iter().chain(["/catalogs/a/current.json"]) {
        assert_eq!(replica.status(path).await, 503, "{path}");
    }
    for path in ["/v2/", "/catalogs"] {
        assert_eq!(replica.status(path).await, 200, "{path}");
    }
    assert_eq!(replica.status("/catalogs/b/api/v1/all").await, 404);
}

#[tokio::test]
async fn change_that_a_replica_has_not_seen_is_answered_by_503_where_clients_keep_the_answer() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:1").await;
    name_at(&replica.server, "sha256:2");
    for path in KEPT {
        let refused = replica.read(path).await;
        assert_eq!(refused.status().as_u16(), 503, "{path}");
        assert_eq!(refused.headers()[RETRY_AFTER], "1");
    }
    // Their clients ask again.
    for path in ["/catalogs/a/current.json", "/catalogs/a/packages"] {
        assert_eq!(replica.status(path).await, 200, "{path}");
    }
    replica.see("sha256:2");
    replica.publish("sha256:2").await;
    for path in KEPT {
        assert_eq!(replica.status(path).await, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_without_an_api_server_comes_after_two_seconds() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:1").await;
    for (is_down, delay) in [(true, Duration::ZERO), (false, Duration::from_secs(3600))] {
        replica.server.lock().is_down = is_down;
        replica.server.lock().delay = delay;
        let began = Instant::now();
        assert_eq!(replica.content().await.as_deref(), Some("sha256:1"));
        let waited = began.elapsed().as_millis();
        assert!((1900..=2000).contains(&waited), "{waited} ms");
        // A flood waits no longer than two readers that come one after the other.
        assert!(replica.flood().await.iter().all(Option::is_some));
        assert!(began.elapsed() <= Duration::from_secs(6));
    }
    // What this replica knows by itself counts as before.
    replica.see("sha256:2");
    assert_eq!(replica.content().await, None);
}

#[tokio::test(start_paused = true)]
async fn api_server_that_comes_back_in_time_is_asked_again() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:1").await;
    name_at(&replica.server, "sha256:2");
    replica.server.lock().is_down = true;
    let comes_back = async {
        sleep(Duration::from_millis(1500)).await;
        replica.server.lock().is_down = false;
    };
    let (content, ()) = tokio::join!(replica.content(), comes_back);
    assert_eq!(content, None);
}

#[tokio::test(start_paused = true)]
async fn flood_of_readers_asks_the_api_server_twice() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:1").await;
    replica.server.lock().delay = Duration::from_millis(100);
    assert!(replica.flood().await.iter().all(Option::is_some));
    assert_eq!(
        replica.server.lock().reads,
        2,
        "the first one, and one for all others"
    );
    replica.content().await;
    assert_eq!(
        replica.server.lock().reads,
        3,
        "a later reader wants a later answer"
    );
    for path in [
        "/catalogs/b/api/v1/all",
        "/catalogs/a/current.json",
        "/v2/a/tags/list",
    ] {
        replica.status(path).await;
    }
    assert_eq!(
        replica.server.lock().reads,
        3,
        "no catalog, or no answer that clients keep"
    );
}

#[tokio::test(start_paused = true)]
async fn question_that_began_before_a_reader_came_is_no_answer_for_it() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:1").await;
    replica.server.lock().delay = Duration::from_millis(100);
    let later = async {
        sleep(Duration::from_millis(50)).await;
        name_at(&replica.server, "sha256:2");
        replica.content().await
    };
    let (first, later) = tokio::join!(replica.content(), later);
    assert_eq!(first.as_deref(), Some("sha256:1"));
    assert_eq!(later, None);
}

#[tokio::test]
async fn leader_serves_what_it_has_published_before_the_status_names_it() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:2").await;
    replica.role.send_replace(Role::Leader);
    assert_eq!(replica.content().await, None, "it has not polled yet");
    replica.note_poll("sha256:2");
    assert_eq!(replica.content().await.as_deref(), Some("sha256:2"));
    replica.name("sha256:2");
    assert_eq!(replica.content().await.as_deref(), Some("sha256:2"));
}

#[tokio::test]
async fn replica_that_led_once_does_not_serve_what_it_published_then() {
    let replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:2").await;
    replica.role.send_replace(Role::Leader);
    replica.note_poll("sha256:2");
    // It stood still while another replica led, and does not know yet.
    name_at(&replica.server, "sha256:3");
    assert_eq!(replica.content().await, None);
}

#[tokio::test]
async fn shared_store_is_ahead_of_the_status_unless_another_program_leads() {
    let replica = Replica::new(false);
    replica.name("sha256:1");
    replica.publish("sha256:2").await;
    assert_eq!(replica.content().await.as_deref(), Some("sha256:2"));
    assert_eq!(
        replica.server.lock().reads,
        0,
        "the store says what is newest"
    );
    replica
        .role
        .send_replace(Role::BesideOther("catalogd".to_owned()));
    assert_eq!(replica.content().await, None);
}

#[tokio::test]
async fn pointer_that_the_reader_remembers_is_compared_with_that_of_the_shared_store() {
    let replica = Replica::at(&ApiServer::default(), false, Duration::from_secs(3600));
    replica.publish("sha256:1").await;
    assert_eq!(replica.content().await.as_deref(), Some("sha256:1"));
    replica.publish("sha256:2").await;
    assert_eq!(replica.content().await, None);
}
