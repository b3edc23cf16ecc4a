//! A leader and a follower, over HTTP.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
    middleware,
    routing::get,
};
use http_api::{HttpMetrics, HttpSettings};
use model::{Document, Key};
use reader::{PublishedCatalogs, ReaderSettings};
use store::{Condition, FolderStore, MemoryStore, Store};
use testkit::SnapshotBuilder;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tower::ServiceExt;

use super::{FollowSettings, Follower, LIST_PATH, Leadership, LinkSettings, Standing, answer, forward, pointer_hash};
use crate::{
    election::{LeaseSight, SightTimes},
    token::OwnToken,
};

const SOON: Duration = Duration::from_secs(10);

struct Pair {
    published: MemoryStore,
    leadership: Arc<Leadership>,
    copied: Arc<dyn Store>,
    follower: Arc<Follower>,
    sight: watch::Sender<LeaseSight>,
}

impl Pair {
    async fn start() -> Self {
        Self::start_with(Arc::new(MemoryStore::new())).await
    }

    async fn start_with(copied: Arc<dyn Store>) -> Self {
        let published = MemoryStore::new();
        let leadership = Arc::new(Leadership::default());
        leadership.begin("leader", true, BTreeMap::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let list = Router::new()
            .route(LIST_PATH, get(answer))
            .with_state(Arc::clone(&leadership));
        let routes = catalogs(Arc::new(published.clone())).merge(list);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let follower = Arc::new(Follower::new(FollowSettings {
            me: "follower".to_owned(),
            store: Arc::clone(&copied),
            owns_store: true,
            link: LinkSettings {
                scheme: "http",
                host: "localhost".to_owned(),
                authorities: Default::default(),
                token: OwnToken::Text("token".into()),
            },
        }));
        let pair = Self {
            published,
            leadership,
            copied,
            follower,
            sight: watch::Sender::new(lease(address)),
        };
        let (follower, sight) = (Arc::clone(&pair.follower), pair.sight.subscribe());
        tokio::spawn(async move { follower.follow(sight, &Notify::new()).await });
        pair
    }

    /// Publishes content with this package as the leader does.
    async fn publish(&self, package: &str) {
        let lines = format!("{{\"name\":\"{package}\",\"schema\":\"olm.package\"}}\n");
        let built = SnapshotBuilder::new().package(package, &lines).build();
        for (key, bytes) in built.objects {
            self.published.put(&key, bytes, Condition::Always).await.unwrap();
        }
        let pointer = testkit::current(&built.snapshot).to_bytes();
        let key = Key::Current("a".parse().unwrap());
        self.published
            .put(&key, pointer.into(), Condition::Always)
            .await
            .unwrap();
        let hash = pointer_hash(&self.published, "a").await.unwrap();
        self.leadership.list("a", hash);
    }

    /// Returns the answer of the follower for all of the catalog.
    async fn read(&self) -> (u16, String) {
        let layer = middleware::from_fn_with_state(Arc::clone(&self.follower), forward);
        let request = Request::get("/catalogs/a/api/v1/all")
            .header("host", "localhost")
            .body(Body::empty());
        let response = catalogs(Arc::clone(&self.copied))
            .layer(layer)
            .oneshot(request.unwrap())
            .await
            .unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

fn lease(address: SocketAddr) -> LeaseSight {
    let now = Instant::now();
    LeaseSight {
        holder: "leader".to_owned(),
        address: Some(address.to_string()),
        times: Some(SightTimes {
            read: now,
            changed: now,
            tried: now,
        }),
    }
}

fn catalogs(store: Arc<dyn Store>) -> Router {
    let catalogs = PublishedCatalogs::new(store, ReaderSettings::default());
    http_api::router(catalogs, HttpSettings::default(), HttpMetrics::default())
}

async fn until(what: impl AsyncFn() -> bool) {
    let wait = async {
        while !what().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, wait).await.expect("it becomes so soon");
}

#[tokio::test]
async fn follower_copies_what_is_listed_and_the_leader_waits_for_it() {
    let pair = Pair::start().await;
    until(async || pair.leadership.metric.get() == 1).await;
    for package in ["one", "two"] {
        pair.publish(package).await;
        timeout(SOON, pair.leadership.until_served("a", false)).await.unwrap();
        let copied = pointer_hash(&*pair.copied, "a").await.unwrap();
        assert_eq!(copied, pointer_hash(&pair.published, "a").await.unwrap());
        let (status, body) = pair.read().await;
        assert!(status == 200 && body.contains(package), "{status} {body}");
    }
    assert_eq!(pair.follower.standing(), Some((Standing::InStep, true)));

    pair.leadership.list("a", None);
    timeout(SOON, pair.leadership.until_served("a", false)).await.unwrap();
    assert_eq!(pair.read().await.0, 404);
}

#[tokio::test]
async fn follower_forwards_what_it_cannot_copy() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::start_with(Arc::new(FolderStore::open(folder.path()).unwrap())).await;
    pair.publish("one").await;
    until(async || pair.read().await.0 == 200).await;
    // No object of a package can be written here.
    std::fs::remove_dir_all(folder.path().join("packages")).unwrap();
    std::fs::write(folder.path().join("packages"), "").unwrap();
    pair.publish("two").await;
    until(async || pair.follower.metric.get() == 1).await;
    let (status, body) = pair.read().await;
    assert!(status == 200 && body.contains("two"), "{status} {body}");
    let waits = timeout(Duration::from_secs(3), pair.leadership.until_served("a", true)).await;
    assert!(waits.is_err(), "its copy is waited for");
}

#[tokio::test]
async fn follower_that_leaves_is_not_waited_for_and_serves_no_more() {
    let pair = Pair::start().await;
    pair.publish("one").await;
    timeout(SOON, pair.leadership.until_served("a", false)).await.unwrap();
    pair.follower.leave().await;
    assert_eq!(pair.read().await.0, 503);
}

#[tokio::test]
async fn replica_that_does_not_lead_has_no_list() {
    let pair = Pair::start().await;
    until(async || pair.follower.standing() == Some((Standing::InStep, true))).await;
    pair.leadership.end();
    let answer = pair.leadership.answer(&axum::http::HeaderMap::new());
    assert_eq!(answer.status(), 409);
}

/// Returns the Lease as it is read now, since this time in the hands of a program that is not this one; free if `holder` is empty.
fn foreign(holder: &str, changed: Instant) -> LeaseSight {
    let now = tokio::time::Instant::now().into_std();
    LeaseSight {
        holder: holder.to_owned(),
        address: None,
        times: Some(SightTimes {
            read: now,
            changed,
            tried: now,
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn follower_serves_beside_another_program_and_after_its_end() {
    let held = MemoryStore::new();
    let mut pair = Pair::start_with(Arc::new(held.clone())).await;
    pair.published = held;
    let begin = tokio::time::Instant::now();
    pair.sight.send_replace(foreign("catalogd", begin.into_std()));
    pair.publish("one").await;
    let mut changed = begin.into_std();
    for second in 0..180 {
        // It renews the Lease every 26 s, and gives it up after two minutes.
        let (holder, interval) = if second < 120 { ("catalogd", 26) } else { ("", 120) };
        if second % interval == 0 {
            changed = tokio::time::Instant::now().into_std();
        }
        if second % 5 == 0 {
            pair.sight.send_replace(foreign(holder, changed));
        }
        sleep(Duration::from_secs(1)).await;
        let (status, body) = pair.read().await;
        assert!(
            status == 200 && body.contains("one"),
            "after {second} s: {status} {body}"
        );
    }
    assert_eq!(pair.follower.standing(), Some((Standing::Leaderless, true)));
}
