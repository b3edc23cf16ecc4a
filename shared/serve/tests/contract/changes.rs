//! What changed since a state that the client knows.

use http::{Method, StatusCode};
use layout::{Key, Sha256};
use serde_json::{Value, json};
use serve::Settings;
use store::Store;

use crate::{
    fixture::{LINES, Publication, Published, publish},
    world::World,
};

/// The next publication of the catalog.
async fn publish_next(world: &World, serial: u64, lines: &str) -> Published {
    let publication = Publication {
        serial,
        ..Publication::default()
    };
    publish(&world.store, publication, lines).await
}

fn path(since: Sha256) -> String {
    format!("/catalogs/demo/changes?since={since}")
}

async fn told(world: &World, since: Sha256) -> Value {
    let answer = world.get(&path(since), &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    serde_json::from_slice(answer.bytes()).unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    let names = list.as_array().unwrap().iter();
    names.map(|entry| entry["name"].as_str().unwrap()).collect()
}

/// Without beta and the global line, with delta, and with another bundle in alpha.
fn later() -> String {
    let kept = LINES
        .split_inclusive('\n')
        .filter(|line| !line.contains("beta") && !line.contains("note"));
    let mut lines: String = kept.collect();
    lines.push_str("{\"name\":\"alpha.v3\",\"package\":\"alpha\",\"schema\":\"olm.bundle\"}\n");
    lines.push_str("{\"name\":\"delta\",\"schema\":\"olm.package\"}\n");
    lines
}

#[tokio::test]
async fn packages_come_go_and_change() {
    for cache_bytes in [0, 64 << 20] {
        let settings = Settings {
            cache_bytes,
            ..Settings::default()
        };
        let world = World::with(settings, Publication::default(), LINES).await;
        publish_next(&world, 2, &later()).await;
        let told = told(&world, world.demo.current.content_hash).await;
        assert_eq!((&told["formatVersion"], &told["complete"]), (&json!(1), &json!(true)));
        let packages = &told["packages"];
        assert_eq!(names(&packages["added"]), ["delta"]);
        assert_eq!(names(&packages["removed"]), ["beta"]);
        assert_eq!(names(&packages["changed"]), ["alpha"]);
        assert_eq!(names(&packages["changed"][0]["bundles"]["added"]), ["alpha.v3"]);
        assert_eq!(names(&packages["removed"][0]["bundles"]), ["beta.v1"]);
        assert_eq!(
            told["global"]["others"],
            json!([{"schema": "olm.note", "added": 0, "removed": 1}])
        );
    }
}

/// Whatever lay between: the answer compares two states.
#[tokio::test]
async fn several_states_later_it_is_the_same_as_at_once() {
    let world = World::new().await;
    publish_next(&world, 2, "{\"name\":\"omega\",\"schema\":\"olm.package\"}\n").await;
    publish_next(&world, 3, "{\"name\":\"beta\",\"schema\":\"olm.package\"}\n").await;
    publish_next(&world, 4, &later()).await;
    let over_all = world.get(&path(world.demo.current.content_hash), &[]).await;
    let direct = World::new().await;
    publish_next(&direct, 2, &later()).await;
    let at_once = direct.get(&path(direct.demo.current.content_hash), &[]).await;
    assert_eq!(over_all.text(), at_once.text());
    assert_eq!(over_all.header("etag"), at_once.header("etag"));
}

#[tokio::test]
async fn the_state_that_is_published_has_no_changes() {
    let world = World::new().await;
    let hash = world.demo.current.content_hash;
    insta::assert_snapshot!(world.show(&path(hash), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 246
    content-type: application/json
    etag: "T_VOP9bQor_v6Hle9ePTW_pKf3y1y-HmSxZfyzZLs8E-changes"
    last-modified: Mon, 21 Sep 2026 14:14:20 GMT

    {"formatVersion":1,"from":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","to":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","complete":true,"packages":{"added":[],"removed":[],"changed":[]},"global":null}
    "#);
    // And back to it again after an update.
    let next = publish_next(&world, 2, &later()).await.current.content_hash;
    publish_next(&world, 3, LINES).await;
    assert_eq!(told(&world, hash).await["packages"]["changed"], json!([]));
    assert_eq!(names(&told(&world, next).await["packages"]["added"]), ["beta"]);
}

#[tokio::test]
async fn a_known_answer_is_not_compared_again() {
    let world = World::new().await;
    publish_next(&world, 2, &later()).await;
    let path = path(world.demo.current.content_hash);
    let answer = world.get(&path, &[]).await;
    let fresh = World {
        router: serve::router(
            std::sync::Arc::new(world.store.clone()),
            Settings::default(),
            serve::Metrics::default(),
        ),
        ..world
    };
    // Without any shard: a 304 has to do without them.
    for (key, _) in fresh.store.objects() {
        if matches!(key, Key::Shard(_)) {
            fresh.store.delete(&key).await.unwrap();
        }
    }
    let known = fresh.get(&path, &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    assert_eq!(fresh.get(&path, &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn head_tells_what_get_would() {
    let world = World::new().await;
    publish_next(&world, 2, &later()).await;
    let path = path(world.demo.current.content_hash);
    let (get, head) = (world.get(&path, &[]).await, world.ask(Method::HEAD, &path, &[]).await);
    assert_eq!(head.head(), get.head());
    assert!(head.bytes().is_empty() && head.header("content-length") == get.bytes().len().to_string());
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused() {
    let world = World::new().await;
    let show = async |query: &str| world.show(&format!("/catalogs/demo/changes{query}"), &[]).await;
    insta::assert_snapshot!(show("").await, @r#"
    400 Bad Request
    cache-control: no-store
    content-length: 203
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:bad-content-hash","title":"Bad Request","status":400,"detail":"the query parameter since must be the content hash of an earlier state: 64 lower-case hex digits"}
    "#);
    let upper = format!("?since={}", world.demo.current.content_hash.to_string().to_uppercase());
    assert!(show(&upper).await.starts_with("400"));
    let unknown = show("?since=0&package=alpha").await;
    assert!(
        unknown.starts_with("400") && unknown.contains("unknown-parameter"),
        "{unknown}"
    );
    let never = show(&format!("?since={}", Sha256::of(b"never"))).await;
    assert!(never.starts_with("404") && never.contains("unknown-state"), "{never}");
    assert!(never.contains("take the whole catalog"), "{never}");
    let unknown = world
        .get(&format!("/catalogs/other/changes?since={}", Sha256::of(b"")), &[])
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// The state of another catalog is none of this one's, even with equal content.
#[tokio::test]
async fn each_catalog_knows_its_own_states_only() {
    let world = World::new().await;
    let publication = Publication {
        name: "other",
        ..Publication::default()
    };
    let other = publish(&world.store, publication, &later()).await.current.content_hash;
    assert_eq!(world.get(&path(other), &[]).await.status, StatusCode::NOT_FOUND);
}

/// Shards that say they are huge are not read; that they differ is told all the same.
#[tokio::test]
async fn too_much_to_compare_is_told_without_detail() {
    let world = World::new().await;
    let big = |text: &str| {
        let filler = text.repeat(40 << 20);
        format!("{LINES}{{\"name\":\"huge\",\"schema\":\"olm.package\",\"text\":\"{filler}\"}}\n")
    };
    let first = publish_next(&world, 2, &big("a")).await;
    publish_next(&world, 3, &big("b")).await;
    let told = told(&world, first.current.content_hash).await;
    assert_eq!(told["complete"], false);
    assert_eq!(told["packages"]["changed"][0]["name"], "huge");
    assert_eq!(told["packages"]["changed"][0]["omitted"], true);
}
