//! Deployments that can answer only small bodies, or have another clock.

use std::time::{Duration, UNIX_EPOCH};

use api::HttpSettings;
use http::StatusCode;

use crate::world::{World, problem, redirecting};

async fn world(above: u64, max: u64) -> World {
    World::new().await.serving(redirecting(above, max))
}

#[tokio::test]
async fn large_bodies_are_redirected_to_their_object() {
    let world = world(100, 100).await;
    let path = "/catalogs/demo/all.json";
    let answer = world.get(path, &[("accept-encoding", "gzip")]).await;
    insta::assert_snapshot!(answer.show(), @r#"
    307 Temporary Redirect
    cache-control: public, max-age=60
    content-length: 0
    etag: "V329zQXYq8Breto9uAPGKXEx1JEEUDrlugEIKrVlUMQ"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    location: https://cdn.example/mirror/all/sha256/577dbdcd05d8abc06b7ada3db803c6297131d49104503ae5ba01082ab56550c4.json.gz
    vary: Accept-Encoding
    "#);
    let known = [
        ("accept-encoding", "gzip"),
        ("if-none-match", answer.header("etag")),
    ];
    assert_eq!(
        world.get(path, &known).await.status,
        StatusCode::NOT_MODIFIED
    );
}

/// Only the compressed encodings are stored here, so there is nothing to redirect to for the plain
/// one.
#[tokio::test]
async fn large_bodies_without_an_object_are_sent_up_to_their_own_limit() {
    for (above, max, plain, gzip) in [
        (1 << 20, 1 << 20, StatusCode::OK, StatusCode::OK),
        (
            100,
            u64::MAX,
            StatusCode::OK,
            StatusCode::TEMPORARY_REDIRECT,
        ),
        (
            100,
            100,
            StatusCode::NOT_ACCEPTABLE,
            StatusCode::TEMPORARY_REDIRECT,
        ),
    ] {
        let world = world(above, max).await;
        for (coding, status) in [("identity", plain), ("gzip", gzip)] {
            let answer = world
                .get("/catalogs/demo/all.json", &[("accept-encoding", coding)])
                .await;
            assert_eq!(answer.status, status, "{coding} above {above}, up to {max}");
        }
    }
    let refused = world(100, 100)
        .await
        .show("/catalogs/demo/all.json", &[])
        .await;
    let detail =
        "in this content coding the answer is too large to be sent from here; ask for another one";
    assert_eq!(refused, problem(406, "too-large", detail, ""));
}

#[tokio::test]
async fn modification_date_is_not_after_the_clock_of_the_settings() {
    let settings = HttpSettings {
        clock: || UNIX_EPOCH + Duration::from_millis(1500),
        ..HttpSettings::default()
    };
    let world = World::new().await.serving(settings);
    let path = "/catalogs/demo/content-hash";
    let answer = world.get(path, &[]).await;
    let date = answer.header("last-modified");
    assert_eq!(date, "Thu, 01 Jan 1970 00:00:01 GMT");
    // The state may have changed since: the client gets it again.
    let again = world.get(path, &[("if-modified-since", date)]).await;
    assert_eq!(again.status, StatusCode::OK);
}
