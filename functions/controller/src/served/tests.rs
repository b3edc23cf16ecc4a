//! A replica with a store of its own, whose statuses another one writes.

use axum::{Router, body::Body, middleware, routing::get};
use kube::runtime::watcher::Event;
use model::Document as _;
use storekit::{MemoryStore, conformance::put};
use tower::ServiceExt;

use super::*;
use crate::conditions::Fact;
use crate::poll::{next_poll, whole_seconds};
use crate::tests::catalog;

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
    served: Arc<Served>,
    statuses: reflector::store::Writer<ClusterCatalog>,
    role: watch::Sender<Role>,
}

impl Replica {
    fn new(has_own_store: bool) -> Self {
        let (objects, statuses) = reflector::store();
        let role = watch::Sender::new(Role::Follower);
        let served = Arc::new(Served {
            has_own_store,
            role: role.subscribe(),
            ..Served::led(objects, Arc::new(MemoryStore::new()))
        });
        Self {
            served,
            statuses,
            role,
        }
    }

    /// Lets the status of the catalog name the image of this digest.
    fn name(&mut self, digest: &str) {
        let named = Event::Apply(catalog("a", "True", digest));
        self.statuses.apply_watcher_event(&named);
    }

    async fn publish(&self, digest: &str) {
        let builder = testkit::CurrentBuilder::new(&testkit::snapshot(&[]));
        let current = builder.source("quay.io/a/b:v1", digest).build();
        let key = Key::Current("a".parse().unwrap());
        put(&*self.served.store, &key, current.to_bytes()).await;
    }

    async fn read(&self, path: &str) -> Response {
        let gate = middleware::from_fn_with_state(self.served.clone(), refuse_behind);
        let routes = Router::new()
            .fallback(get(|| async { "content" }))
            .layer(gate);
        let request = Request::get(path).body(Body::empty()).unwrap();
        routes.oneshot(request).await.unwrap()
    }

    async fn status(&self) -> u16 {
        self.read("/catalogs/a/api/v1/all").await.status().as_u16()
    }
}

#[tokio::test]
async fn catalog_whose_status_names_another_image_is_answered_by_503() {
    let mut replica = Replica::new(true);
    assert_eq!(replica.status().await, 200, "no status names an image");
    replica.name("sha256:1");
    let refused = replica.read("/v2/a/manifests/latest").await;
    assert_eq!(refused.status().as_u16(), 503);
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    assert_eq!(replica.served.missing().await, ["a"]);
    replica.publish("sha256:1").await;
    assert_eq!(replica.status().await, 200);
    assert!(replica.served.missing().await.is_empty());
    replica.name("sha256:2");
    assert_eq!(replica.status().await, 503);
    for path in [
        "/v2/",
        "/catalogs",
        "/catalogs/b/api/v1/all",
        "/packages/sha256/aa",
    ] {
        assert_eq!(replica.read(path).await.status().as_u16(), 200, "{path}");
    }
}

#[tokio::test]
async fn leader_serves_what_it_has_published_before_the_status_names_it() {
    let mut replica = Replica::new(true);
    replica.name("sha256:1");
    replica.publish("sha256:2").await;
    replica.role.send_replace(Role::Leader);
    assert_eq!(replica.status().await, 503, "it has not polled yet");
    let fact = Fact::Stored {
        reference: "quay.io/a/b@sha256:2".to_owned(),
        unpacked: whole_seconds(),
    };
    let object = &replica.served.objects.state()[0];
    let polled = next_poll(object, None, fact, None);
    replica.served.polls.set("a", polled);
    assert_eq!(replica.status().await, 200);
}

#[tokio::test]
async fn shared_store_is_ahead_of_the_status_unless_another_program_leads() {
    let mut replica = Replica::new(false);
    replica.name("sha256:1");
    replica.publish("sha256:2").await;
    assert_eq!(replica.status().await, 200);
    replica
        .role
        .send_replace(Role::BesideOther("catalogd".to_owned()));
    assert_eq!(replica.status().await, 503);
}
