//! Deployments that can answer only small bodies, or have another clock.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use catalog_mirror_http::{BaseUrl, HttpSettings, LargeBodies};
use http::StatusCode;

use crate::{
    fixture::{LINES, Publication},
    world::{World, problem},
};

async fn world(above: u64) -> World {
    world_up_to(above, above).await
}

async fn world_up_to(above: u64, max: u64) -> World {
    let to: Arc<BaseUrl> = Arc::new("https://cdn.example/mirror/".parse().unwrap());
    let settings = HttpSettings {
        large: Some(LargeBodies { above, max, to }),
        ..HttpSettings::default()
    };
    World::with(settings, Publication::default(), LINES).await
}

#[tokio::test]
async fn large_bodies_are_redirected_to_their_object() {
    let world = world(100).await;
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("accept-encoding", "gzip")]).await, @r#"
    307 Temporary Redirect
    cache-control: public, max-age=60
    content-length: 0
    etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    location: https://cdn.example/mirror/all/sha256/577dbdcd05d8abc06b7ada3db803c6297131d49104503ae5ba01082ab56550c4.json.gz
    vary: Accept-Encoding
    "#);
    let answer = world
        .get("/catalogs/demo/all.json", &[("accept-encoding", "gzip")])
        .await;
    let known = [("accept-encoding", "gzip"), ("if-none-match", answer.header("etag"))];
    let known = world.get("/catalogs/demo/all.json", &known).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn small_bodies_are_answered_inline() {
    let world = world(1 << 20).await;
    assert_eq!(world.status("/catalogs/demo/all.json").await, StatusCode::OK);
}

#[tokio::test]
async fn large_bodies_without_an_object_are_not_acceptable() {
    let world = world(100).await;
    let detail = "in this content coding the answer is too large to be sent from here; ask for another one";
    assert_eq!(
        world.show("/catalogs/demo/all.json", &[]).await,
        problem(406, "too-large", detail, "")
    );
}

#[tokio::test]
async fn large_bodies_without_an_object_are_sent_up_to_their_own_limit() {
    let world = world_up_to(100, u64::MAX).await;
    assert_eq!(world.status("/catalogs/demo/all.json").await, StatusCode::OK);
    let gzip = world
        .get("/catalogs/demo/all.json", &[("accept-encoding", "gzip")])
        .await;
    assert_eq!(gzip.status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test]
async fn modification_date_is_not_after_the_clock_of_the_settings() {
    let settings = HttpSettings {
        clock: || UNIX_EPOCH + Duration::from_secs(1),
        ..HttpSettings::default()
    };
    let world = World::with(settings, Publication::default(), LINES).await;
    let answer = world.get("/catalogs/demo/content-hash", &[]).await;
    assert_eq!(answer.header("last-modified"), "Thu, 01 Jan 1970 00:00:01 GMT");
}
