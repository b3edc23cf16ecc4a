//! A place that can answer only small bodies.

use std::sync::Arc;

use http::StatusCode;
use serve::{BaseUrl, Large, Settings};

use crate::{
    fixture::{LINES, Publication},
    world::World,
};

async fn world(above: u64) -> World {
    let to = Arc::new(BaseUrl::new("https://cdn.example/mirror/"));
    let settings = Settings {
        large: Large::Redirect { above, to },
        ..Settings::default()
    };
    World::with(settings, Publication::default(), LINES).await
}

#[tokio::test]
async fn large_bodies_are_redirected_to_their_key() {
    let world = world(100).await;
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("accept-encoding", "gzip")]).await, @r#"
    307 Temporary Redirect
    cache-control: public, max-age=60
    content-length: 0
    etag: "cTVR_n2RYBMWP7PJCZSw2uKOrgFzLA3MCi9jEhPBq6A-gzip"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT
    location: https://cdn.example/mirror/catalogs/demo/713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0/all.json.gz
    vary: Accept-Encoding
    "#);
    let tag = world
        .get("/catalogs/demo/all.json", &[("accept-encoding", "gzip")])
        .await
        .header("etag")
        .to_owned();
    let known = world
        .get(
            "/catalogs/demo/all.json",
            &[("accept-encoding", "gzip"), ("if-none-match", &tag)],
        )
        .await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn small_bodies_are_answered_inline() {
    let world = world(1 << 20).await;
    assert_eq!(world.get("/catalogs/demo/all.json", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_has_no_key_cannot_be_redirected() {
    let world = world(100).await;
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[]).await, @r#"
    406 Not Acceptable
    cache-control: no-store
    content-length: 191
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:too-large","title":"Not Acceptable","status":406,"detail":"in this content coding the answer is too large to be sent from here; ask for another one"}
    "#);
}
