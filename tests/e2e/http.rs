//! The HTTP contract over a real socket: a poll in one process, a server in another.

use std::time::Duration;

use model::Sha256;
use serde_json::Value;
use tempfile::TempDir;
use testkit::Kind;
use tokio::time::{sleep, timeout};

use crate::support::{
    binary::{Server, run},
    catalogs, http,
};

struct Mirror {
    server: Server,
    store: TempDir,
}

impl Mirror {
    fn start() -> Self {
        let store = TempDir::new().unwrap();
        let mirror = Self {
            server: Server::start_over(&store),
            store,
        };
        mirror.poll("v1");
        mirror
    }

    fn poll(&self, version: &str) {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        run([
            "poll",
            "--store",
            &self.store.path().display().to_string(),
            "--catalog",
            &source,
        ])
        .exits(0);
    }

    fn url(&self, path: &str) -> String {
        format!("{}/catalogs/demo/{path}", self.server.url)
    }
}

impl Server {
    fn start_over(store: &TempDir) -> Self {
        Self::start(["serve", "--no-poll", "--store", &store.path().display().to_string()])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_shows_poll_of_other_process_and_keeps_old_state_readable() {
    let mirror = tokio::task::block_in_place(Mirror::start);
    let before = http::text(&mirror.url("content-hash")).await;
    let current: Value = serde_json::from_slice(&http::body(&mirror.url("current.json")).await).unwrap();
    let snapshot = format!("{}/{}", mirror.server.url, current["snapshot"]["key"].as_str().unwrap());
    let snapshot = zstd::stream::decode_all(&http::body(&snapshot).await[..]).unwrap();
    let snapshot: Value = serde_json::from_slice(&snapshot).unwrap();
    tokio::task::block_in_place(|| mirror.poll("v2"));
    assert_ne!(http::text(&mirror.url("content-hash")).await, before);
    assert_eq!(http::get(&mirror.url("packages/demo-search"), &[]).await.status(), 404);
    for shard in snapshot["packages"].as_array().unwrap() {
        let hash = shard["sha256"].as_str().unwrap();
        let url = format!("{}/packages/sha256/{hash}.json.zst", mirror.server.url);
        let stored = http::body(&url).await;
        assert_eq!(Sha256::of(&stored).to_string(), hash);
        let lines = zstd::stream::decode_all(&stored[..]).unwrap();
        assert_eq!(
            Sha256::of(&lines).to_string(),
            shard["lines"]["sha256"].as_str().unwrap()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_polls_reports_metrics_and_stops_on_sigterm() {
    let store = TempDir::new().unwrap();
    let source = format!("demo=oci:{}:v1", catalogs::example_layout().display());
    let server = Server::start([
        "serve",
        "--store",
        &store.path().display().to_string(),
        "--catalog",
        &source,
    ]);
    server.wait_for(|line| line.contains("published").then_some(()));
    let all = format!("{}/catalogs/demo/api/v1/all", server.url);
    let etag = http::field(&http::get(&all, &[]).await, "etag");
    http::get(&all, &[("if-none-match", &etag)]).await;
    let metrics = http::text(&format!("{}/metrics", server.url)).await;
    for line in [
        "catalog_mirror_polls_total{catalog=\"demo\",outcome=\"published\"} 1",
        "catalog_mirror_polls_total{catalog=\"demo\",outcome=\"failed\"} 0",
        "catalog_mirror_last_successful_poll_age_seconds{catalog=\"demo\"}",
        "304",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(http::get(&format!("{}/readyz", server.url), &[]).await.status(), 200);
    assert_eq!(server.terminate(), Some(0));
}

/// A catalog that cannot be polled delays it no longer than its first poll.
#[tokio::test(flavor = "multi_thread")]
async fn serve_is_ready_when_each_catalog_is_published_or_was_polled() {
    let registry = testkit::Registry::start().await;
    registry.push(
        "demo",
        "latest",
        &catalogs::image(&catalogs::files(&catalogs::folder("v1"))),
    );
    registry.delay(Kind::Blob, Duration::from_secs(3));
    let store = TempDir::new().unwrap();
    let server = Server::start([
        "serve",
        "--store",
        &store.path().display().to_string(),
        "--catalog",
        &format!("demo={}", registry.reference("demo", "latest")),
        "--catalog",
        &format!("absent={}", registry.reference("absent", "latest")),
        "--plain-http",
        registry.host(),
    ]);
    let status = async |path: &str| {
        let answer = http::get(&format!("{}{path}", server.url), &[]).await;
        answer.status().as_u16()
    };
    assert_eq!((status("/readyz").await, status("/healthz").await), (503, 200));
    let first_polls = async {
        while status("/readyz").await == 503 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), first_polls).await.unwrap();
    assert_eq!(status("/readyz").await, 200);
    assert_eq!(status("/catalogs/demo/content-hash").await, 200);
    assert_eq!(status("/catalogs/absent/content-hash").await, 404);
    assert_eq!(server.terminate(), Some(0));
}
