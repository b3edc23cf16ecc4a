//! The documents of the store, as they are stored.

use http::StatusCode;
use model::{Document, Encoding, Key, Sha256, Status};
use serde_json::json;
use storekit::conformance::put;

use crate::world::World;

#[tokio::test]
async fn objects_and_documents_are_served_as_stored() {
    let world = World::new().await;
    let status = json!({
        "formatVersion": model::FORMAT_VERSION, "source": "quay.io/a/b:latest", "lastPoll": "2026-01-01T00:00:00Z",
        "outcome": "failed", "lastSuccess": "2025-12-31T00:00:00Z", "error": "refused", "failures": 2, "durationMs": 7,
        "pullMs": 9, "bytesPulled": 3, "bytesPublished": 4,
        "emptyLayers": {"root": "/configs", "empty": []},
        "validation": {"errors": 0, "warnings": 1, "unknownSchemas": 2},
    });
    let status = Status::from_bytes(status.to_string().as_bytes()).unwrap();
    put(
        &world.store,
        &Key::Status("demo".parse().unwrap()),
        status.to_bytes(),
    )
    .await;
    for (key, stored) in world.store.objects() {
        let answer = world.get(&format!("/{key}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{key}");
        assert_eq!(answer.bytes(), stored, "{key}");
        // The pointer is compressed when it is larger.
        let may_compress = matches!(key, Key::Current(_));
        let tag = Sha256::of(&stored).to_entity_tag(Encoding::Identity);
        for (field, expected) in [
            ("content-type", key.content_type()),
            (
                "content-encoding",
                key.encoding().content_encoding().unwrap_or_default(),
            ),
            ("cache-control", key.cache_policy().cache_control()),
            ("etag", &tag),
            ("accept-ranges", "bytes"),
            ("content-length", &stored.len().to_string()),
            ("last-modified", ""),
            ("vary", if may_compress { "Accept-Encoding" } else { "" }),
        ] {
            assert_eq!(answer.header(field), expected, "{key}");
        }
        let known = world
            .get(&format!("/{key}"), &[("if-none-match", &tag)])
            .await;
        assert_eq!(known.status, StatusCode::NOT_MODIFIED, "{key}");
    }
}

#[tokio::test]
async fn documents_of_publishers_are_never_served() {
    let world = World::new().await;
    let garbage = model::ObjectDigest::of(b"list")
        .with_kind(model::Kind::Garbage)
        .key();
    for key in [Key::Gc, Key::Notified("demo".parse().unwrap()), garbage] {
        put(&world.store, &key, b"{}".to_vec()).await;
        let answer = world.get(&format!("/{key}"), &[]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{key}");
    }
}
