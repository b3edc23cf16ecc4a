//! Catalogs that change while they are read.

use std::time::Duration;

use model::{Key, Sha256};
use storekit::Action;

use crate::{
    fixture::{LINES, Publication, publish},
    world::World,
};
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
    assert_eq!(world.get("/catalogs/demo/content-hash", &[]).await.text(), before);
    assert_eq!(world.store.take_log(), []);
}

/// The listings of 300 catalogs would read as many snapshots.
#[tokio::test]
async fn listings_read_each_pointer_and_no_snapshot() {
    let world = World::new().await;
    for path in ["/catalogs", "/v2/_catalog"] {
        world.store.take_log();
        assert_eq!(world.status(path).await, 200, "{path}");
        let log = world.store.take_log();
        let got = log.iter().filter(|call| call.action == Action::Get);
        let keys: Vec<_> = got.filter_map(|call| call.key.clone()).collect();
        assert_eq!(keys, [Key::Catalogs, Key::Current("demo".parse().unwrap())], "{path}");
    }
}

#[tokio::test]
async fn known_pointer_is_only_revalidated() {
    let world = World::new().await;
    for _ in 0..3 {
        world.store.take_log();
        world.get("/catalogs/demo/packages/alpha", &[]).await;
        world.get("/catalogs/demo/api/v1/metas?package=alpha", &[]).await;
    }
    let keys: Vec<_> = world.store.take_log().into_iter().map(|call| call.key).collect();
    let pointer = Some(Key::Current("demo".parse().unwrap()));
    assert_eq!(keys, [pointer.clone(), pointer]);
}

/// Every answer is wholly of one state: its tag names the bytes that follow, while the pointer moves to and fro.
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
        let found = world.get("/catalogs/demo/api/v1/metas?name=alpha", &[]).await.text();
        assert!(found == CHANGED || found.contains("defaultChannel"), "{found}");
    }
    writer.await.unwrap();
}
