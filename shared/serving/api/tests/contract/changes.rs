//! Changes since a state that the client knows.

use http::StatusCode;
use model::{Key, Kind, Sha256};
use reader::ReaderSettings;
use serde_json::{Value, json};
use store::Store;

use crate::fixture::{LINES, Publication, Published, publish};
use crate::world::World;

/// The next publication of the catalog.
async fn publish_next(world: &World, lines: &str) -> Published {
    publish(&world.store, Publication::default(), lines).await
}

fn path(since: Sha256) -> String {
    format!("/catalogs/demo/changes?since={since}")
}

async fn changes_since(world: &World, since: Sha256) -> Value {
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
async fn changes_names_added_removed_and_changed_packages() {
    for cache_bytes in [0, 64 << 20] {
        let world = World::new().await.caching(cache_bytes);
        // The answer compares two states, not the steps between them.
        publish_next(&world, "{\"name\":\"omega\",\"schema\":\"olm.package\"}\n").await;
        publish_next(&world, &later()).await;
        let changes = changes_since(&world, world.demo.current.content_hash).await;
        assert_eq!(changes["formatVersion"], 1);
        assert_eq!(changes["complete"], true);
        let packages = &changes["packages"];
        assert_eq!(names(&packages["added"]), ["delta"]);
        assert_eq!(names(&packages["removed"]), ["beta"]);
        assert_eq!(names(&packages["changed"]), ["alpha"]);
        assert_eq!(
            names(&packages["changed"][0]["bundles"]["added"]),
            ["alpha.v3"]
        );
        assert_eq!(names(&packages["removed"][0]["bundles"]), ["beta.v1"]);
        let note = json!([{"schema": "olm.note", "added": 0, "removed": 1}]);
        assert_eq!(changes["global"]["others"], note);
    }
}

#[tokio::test]
async fn changes_since_the_published_state_are_empty() {
    let world = World::new().await;
    let hash = world.demo.current.content_hash;
    insta::assert_snapshot!(world.show(&path(hash), &[]).await, @r#"
    200 OK
    accept-ranges: bytes
    cache-control: public, max-age=60, stale-while-revalidate=60, stale-if-error=86400
    content-length: 246
    content-type: application/json
    etag: "T_VOP9bQor_v6Hle9ePTW_pKf3y1y-HmSxZfyzZLs8E-changes"
    last-modified: Mon, 21 Sep 2026 14:13:20 GMT
    vary: Accept-Encoding

    {"formatVersion":1,"from":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","to":"713551fe7d916013163fb3c90994b0dae28eae01732c0dcc0a2f631213c1aba0","complete":true,"packages":{"added":[],"removed":[],"changed":[]},"global":null}
    "#);
    // The same holds after an update and a return to the old content.
    let next = publish_next(&world, &later()).await.current.content_hash;
    publish_next(&world, LINES).await;
    assert_eq!(
        changes_since(&world, hash).await["packages"]["changed"],
        json!([])
    );
    assert_eq!(
        names(&changes_since(&world, next).await["packages"]["added"]),
        ["beta"]
    );
}

#[tokio::test]
async fn changes_without_a_state_are_those_of_the_last_publication() {
    let world = World::new().await;
    let last = async || world.get("/catalogs/demo/changes", &[]).await.text();
    let first = world.demo.current.content_hash;
    let own = world.get(&path(first), &[]).await.text();
    assert_eq!(last().await, own);
    publish_next(&world, &later()).await;
    let since = world.get(&path(first), &[]).await.text();
    assert_ne!(since, own);
    assert_eq!(last().await, since);
}

#[tokio::test]
async fn changes_304_reads_no_shard() {
    let world = World::new().await;
    publish_next(&world, &later()).await;
    let path = path(world.demo.current.content_hash);
    let answer = world.get(&path, &[]).await;
    let fresh = world.reading(ReaderSettings::default());
    // A 304 needs no Shard.
    for (key, _) in fresh.store.objects() {
        if matches!(key, Key::Object(Kind::Package, _)) {
            fresh.store.delete(&key).await.unwrap();
        }
    }
    let known = fresh
        .get(&path, &[("if-none-match", answer.header("etag"))])
        .await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    assert_eq!(fresh.status(&path).await, StatusCode::GONE);
}

#[tokio::test]
async fn changes_refuses_bad_and_unknown_states() {
    let world = World::new().await;
    let upper = world.demo.current.content_hash.to_string().to_uppercase();
    let never = Sha256::of(b"never").to_string();
    for (since, status, word) in [
        (upper.as_str(), "400", "bad-content-hash"),
        ("0&package=alpha", "400", "unknown-parameter"),
        (&never, "410", "unknown-state"),
        (&never, "410", "take the whole catalog"),
    ] {
        let shown = world
            .show(&format!("/catalogs/demo/changes?since={since}"), &[])
            .await;
        assert!(shown.starts_with(status) && shown.contains(word), "{shown}");
    }
    assert_eq!(
        world.status("/catalogs/other/changes").await,
        StatusCode::NOT_FOUND
    );
    // A state of another catalog is none of this one.
    let other = publish(&world.store, Publication::of("other"), &later()).await;
    assert_eq!(
        world.status(&path(other.current.content_hash)).await,
        StatusCode::GONE
    );
}

/// Huge Shards are not read, but the answer still says that they differ.
#[tokio::test]
async fn changes_omits_details_above_the_limit() {
    let world = World::new().await;
    let big = |text: &str| {
        let filler = text.repeat(33 << 20);
        format!("{LINES}{{\"name\":\"huge\",\"schema\":\"olm.package\",\"text\":\"{filler}\"}}\n")
    };
    let first = publish_next(&world, &big("a")).await;
    publish_next(&world, &big("b")).await;
    let changes = changes_since(&world, first.current.content_hash).await;
    assert_eq!(changes["complete"], false);
    assert_eq!(changes["packages"]["changed"][0]["name"], "huge");
    assert_eq!(changes["packages"]["changed"][0]["omitted"], true);
}
