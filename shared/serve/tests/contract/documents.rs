//! The documents of the store, as they are stored.

use http::StatusCode;
use layout::{Document, Key, Sha256, Status};

use crate::{fixture::put, world::World};

#[tokio::test]
async fn documents_are_served_as_they_are_stored() {
    let world = World::new().await;
    let status = Status {
        source: "registry.example/demo:latest".into(),
        last_poll: std::time::UNIX_EPOCH,
        outcome: layout::Outcome::Unchanged,
        last_success: None,
        error: None,
        failures: 0,
        duration_ms: 5,
        pull_ms: None,
        bytes_pulled: 0,
        bytes_published: 0,
    };
    put(&world.store, &Key::Status("demo".parse().unwrap()), status.to_bytes()).await;
    for (key, stored) in world.store.objects() {
        let answer = world.get(&format!("/{key}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{key}");
        assert_eq!(answer.bytes(), stored, "{key}");
        assert_eq!(answer.header("content-type"), key.content_type(), "{key}");
        assert_eq!(
            answer.header("content-encoding"),
            key.content_encoding().unwrap_or_default(),
            "{key}"
        );
        assert_eq!(
            answer.header("cache-control"),
            key.cache_policy().cache_control(),
            "{key}"
        );
        if !key.is_immutable() {
            assert_eq!(
                answer.header("etag"),
                format!("\"{}\"", Sha256::of(&stored).to_base64url()),
                "{key}"
            );
        }
        let known = world
            .get(&format!("/{key}"), &[("if-none-match", answer.header("etag"))])
            .await;
        assert_eq!(known.status, StatusCode::NOT_MODIFIED, "{key}");
    }
}

#[tokio::test]
async fn a_package_has_the_hash_that_its_tag_says() {
    let world = World::new().await;
    for shard in &world.demo.snapshot.packages {
        for coding in ["identity", "gzip", "zstd"] {
            let path = format!("/catalogs/demo/packages/{}", shard.name);
            let answer = world.get(&path, &[("accept-encoding", coding)]).await;
            assert_eq!(Sha256::of(&answer.decoded()), shard.sha256);
            assert!(
                answer
                    .header("etag")
                    .starts_with(&format!("\"{}", shard.sha256.to_base64url()))
            );
        }
    }
}

/// Redirected or not, in the same coding the same content has the same tag.
#[tokio::test]
async fn an_object_has_the_tag_of_the_answer_that_it_is() {
    let world = World::new().await;
    let hash = world.demo.current.content_hash;
    for (coding, file) in [("gzip", "all.json.gz"), ("zstd", "all.json.zst")] {
        let answer = world
            .get("/catalogs/demo/api/v1/all", &[("accept-encoding", coding)])
            .await;
        let object = world.get(&format!("/catalogs/demo/{hash}/{file}"), &[]).await;
        assert_eq!(answer.header("etag"), object.header("etag"));
        assert_eq!(answer.bytes(), object.bytes());
    }
}
