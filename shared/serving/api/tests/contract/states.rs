//! Catalogs that change while they are read.

use std::time::Duration;

use model::{Encoding, Key, Kind, Sha256};

use crate::fixture::{LINES, Publication, publish};
use crate::world::World;
use reader::ReaderSettings;

const CHANGED: &str = "{\"name\":\"alpha\",\"schema\":\"olm.package\"}\n";

async fn change(world: &World) {
    publish(&world.store, Publication::default(), CHANGED).await;
}

#[tokio::test]
async fn fresh_pointer_is_not_read_again() {
    let settings = ReaderSettings {
        freshness: Duration::from_secs(3600),
        ..ReaderSettings::default()
    };
    let world = World::new().await.reading(settings);
    let before = world.get("/catalogs/demo/content-hash", &[]).await.text();
    let calls = world.store.take_log().len();
    assert!(calls > 0);
    change(&world).await;
    world.store.take_log();
    assert_eq!(
        world.get("/catalogs/demo/content-hash", &[]).await.text(),
        before
    );
    assert_eq!(world.store.take_log(), []);
}

/// The listings of 300 catalogs would read as many snapshots, and a pointer that is known is only
/// revalidated.
#[tokio::test]
async fn requests_read_only_what_they_answer() {
    let world = World::new().await;
    let (current, snapshot) = (&world.demo.current, &world.demo.snapshot);
    let alpha = &snapshot.packages[0];
    let tag = alpha.lines.sha256.to_entity_tag(Encoding::Identity);
    let keys = [
        Key::Catalogs,
        Key::Current("demo".parse().unwrap()),
        current.snapshot.key(),
        alpha.stored.with_kind(Kind::Package).key(),
        snapshot.index.with_kind(Kind::Index).key(),
    ];
    let [list, pointer, snapshot, shard, index] = keys.each_ref();
    let [package, metas] = ["packages/alpha", "api/v1/metas?package=alpha"]
        .map(|path| format!("/catalogs/demo/{path}"));
    for (path, known, expected) in [
        ("/catalogs", "", &[list, pointer][..]),
        ("/v2/_catalog", "", &[list, pointer]),
        (&package, &tag, &[pointer, snapshot]),
        ("/catalogs/demo/all.json", "*", &[pointer]),
        (&package, "", &[pointer, shard]),
        (&metas, "", &[pointer, index]),
        (&package, "", &[pointer]),
        (&metas, "", &[pointer]),
    ] {
        world.store.take_log();
        let answer = world.get(path, &[("if-none-match", known)]).await;
        assert_eq!(
            answer.status,
            if known.is_empty() { 200 } else { 304 },
            "{path}"
        );
        let log = world.store.take_log();
        let mut read: Vec<&Key> = log.iter().filter_map(|call| call.key.as_ref()).collect();
        read.dedup();
        assert_eq!(read, expected, "{path} {known}");
    }
}

/// Every answer is wholly of one state: its tag names the bytes that follow, while the pointer
/// moves to and fro.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn states_are_never_mixed() {
    let world = std::sync::Arc::new(World::new().await);
    let writer = tokio::spawn({
        let world = std::sync::Arc::clone(&world);
        async move {
            for serial in 2..60 {
                let lines = if serial % 2 == 0 { CHANGED } else { LINES };
                publish(&world.store, Publication::default(), lines).await;
                tokio::task::yield_now().await;
            }
        }
    });
    while !writer.is_finished() {
        for path in ["/catalogs/demo/all.json", "/catalogs/demo/packages/alpha"] {
            let answer = world.get(path, &[]).await;
            let tag = format!("\"{}\"", Sha256::of(answer.bytes()).to_base64url());
            assert_eq!(answer.header("etag"), tag);
        }
        let found = world
            .get("/catalogs/demo/api/v1/metas?name=alpha", &[])
            .await
            .text();
        assert!(
            found == CHANGED || found.contains("defaultChannel"),
            "{found}"
        );
    }
    writer.await.unwrap();
}
