//! Stores that fail and objects that are not what was published.

use http::StatusCode;
use layout::{Catalogs, Document, Form, Key};
use serve::Settings;
use store::memory::{Action, Answer, Moment};

use crate::{
    fixture::{LINES, Publication, publish, put, zstd},
    world::World,
};

fn fail(world: &World, action: Action) {
    world.store.set_hook(move |call, moment| match moment {
        Moment::Before if call.action == action => Answer::Fail,
        _ => Answer::GoOn,
    });
}

#[tokio::test]
async fn a_store_that_does_not_answer() {
    let world = World::new().await;
    fail(&world, Action::Get);
    insta::assert_snapshot!(world.show("/catalogs/demo/api/v1/all", &[]).await, @r#"
    503 Service Unavailable
    cache-control: no-store
    content-length: 173
    content-type: application/problem+json
    retry-after: 5

    {"type":"urn:problem-type:catalog-mirror:store-unavailable","title":"Service Unavailable","status":503,"detail":"the catalog cannot be read at the moment; try again later"}
    "#);
    fail(&world, Action::Head);
    assert_eq!(world.get("/readyz", &[]).await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(world.get("/healthz", &[]).await.status, StatusCode::OK);
    world.store.clear_hook();
    assert_eq!(world.get("/readyz", &[]).await.status, StatusCode::OK);
}

/// Whether it is kept in memory or streamed, it is an error: before the first byte, or short of the last.
#[tokio::test]
async fn a_corrupt_object_is_never_a_complete_answer() {
    for cache_bytes in [0, 64 << 20] {
        for identity in [false, true] {
            let settings = Settings {
                cache_bytes,
                ..Settings::default()
            };
            let publication = Publication {
                identity,
                ..Publication::default()
            };
            let world = World::with(settings, publication, LINES).await;
            for (key, bytes) in world.store.objects() {
                if !key.is_immutable() {
                    continue;
                }
                world.store.corrupt(&key, bytes.slice(..bytes.len() - 1));
            }
            let hash = world.demo.current.content_hash;
            for path in [
                "all.json",
                "packages/alpha",
                "api/v1/metas?package=alpha",
                &format!("{hash}/all.json.gz"),
            ] {
                for coding in ["identity", "gzip", "zstd"] {
                    let answer = world
                        .get(&format!("/catalogs/demo/{path}"), &[("accept-encoding", coding)])
                        .await;
                    let refused = answer.status == StatusCode::SERVICE_UNAVAILABLE;
                    assert!(
                        refused || answer.body.is_none(),
                        "{path} {coding} {cache_bytes} {identity}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn other_content_under_a_hash_is_not_served() {
    let world = World::new().await;
    let shard = world.demo.snapshot.packages[0].sha256;
    world.store.corrupt(&Key::Shard(shard), zstd(b"{}\n"));
    let hash = world.demo.current.content_hash;
    world
        .store
        .corrupt(&Key::All("demo".parse().unwrap(), hash, Form::Zstd), zstd(b"{}\n"));
    for path in ["packages/alpha", "all.json", "api/v1/metas?package=alpha"] {
        let answer = world
            .get(&format!("/catalogs/demo/{path}"), &[("accept-encoding", "zstd")])
            .await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    let direct = world.get(&format!("/packages/sha256/{shard}.json.zst"), &[]).await;
    assert_eq!(direct.status, StatusCode::SERVICE_UNAVAILABLE);
}

/// Nothing of a failure is remembered.
#[tokio::test]
async fn it_recovers() {
    let world = World::new().await;
    fail(&world, Action::Read);
    let failed = world.get("/catalogs/demo/packages/alpha", &[]).await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
    world.store.clear_hook();
    assert_eq!(
        world.get("/catalogs/demo/packages/alpha", &[]).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_broken_catalog_does_not_hide_the_others() {
    let world = World::new().await;
    let other = Publication {
        name: "other",
        ..Publication::default()
    };
    publish(&world.store, other, LINES).await;
    let names = ["demo", "other"].map(|name| name.parse().unwrap());
    put(&world.store, &Key::Catalogs, Catalogs::from_iter(names).to_bytes()).await;
    world.store.corrupt(
        &Key::Snapshot("demo".parse().unwrap(), world.demo.current.content_hash),
        "{}",
    );
    assert_eq!(
        world.get("/catalogs/demo/all.json", &[]).await.status,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let list = world.get("/catalogs", &[]).await.text();
    assert!(list.contains("\"other\"") && !list.contains("\"demo\""), "{list}");
}
