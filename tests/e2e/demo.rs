//! The command `demo`, which a newcomer runs first.

use crate::support::{
    binary::{Server, run},
    http,
};

#[tokio::test(flavor = "multi_thread")]
async fn demo_publishes_serves_and_updates() {
    let server = Server::start(["demo", "--update-after", "3s"]);
    let catalog = format!("{}/catalogs/demo", server.url);
    let first = http::text(&format!("{catalog}/content-hash")).await;
    let etag = http::field(&http::get(&format!("{catalog}/api/v1/all"), &[]).await, "etag");
    let again = http::get(&format!("{catalog}/api/v1/all"), &[("if-none-match", &etag)]).await;
    assert_eq!(again.status(), 304);
    let metrics = http::text(&format!("{}/metrics", server.url)).await;
    for name in [
        "catalog_mirror_polls",
        "catalog_mirror_http_requests",
        "catalog_mirror_connections",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    server.wait_for(|line| line.contains("Ask again").then_some(()));
    assert_ne!(http::text(&format!("{catalog}/content-hash")).await, first);
    let changed = http::get(&format!("{catalog}/api/v1/all"), &[("if-none-match", &etag)]).await;
    assert_eq!(changed.status(), 200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn demo_once_ends_by_itself() {
    let ran = run(["demo", "--once", "--update-after", "0s", "--listen", "127.0.0.1:0"]).exits(0);
    for part in ["published", "unchanged", "curl -s", "+1 -1 ~1"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}
