//! The documents of the store, as they are stored.

use http::StatusCode;
use model::{Document, Encoding, Key, Outcome, Sha256, Status};
use testkit::{SOURCE, first_published_at};

use crate::{fixture::put, world::World};

#[tokio::test]
async fn objects_and_documents_are_served_as_stored() {
    let world = World::new().await;
    let status = Status::new(SOURCE.to_owned(), Outcome::Unchanged, first_published_at());
    put(&world.store, &Key::Status("demo".parse().unwrap()), status.to_bytes()).await;
    for (key, stored) in world.store.objects() {
        let answer = world.get(&format!("/{key}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{key}");
        assert_eq!(answer.bytes(), stored, "{key}");
        let tag = Sha256::of(&stored).to_entity_tag(Encoding::Identity);
        for (field, expected) in [
            ("content-type", key.content_type()),
            (
                "content-encoding",
                key.encoding().content_encoding().unwrap_or_default(),
            ),
            ("cache-control", key.cache_policy().cache_control()),
            ("etag", &tag),
        ] {
            assert_eq!(answer.header(field), expected, "{key}");
        }
        let known = world.get(&format!("/{key}"), &[("if-none-match", &tag)]).await;
        assert_eq!(known.status, StatusCode::NOT_MODIFIED, "{key}");
    }
}

#[tokio::test]
async fn documents_of_publishers_are_never_served() {
    let world = World::new().await;
    let garbage = model::ObjectDigest::of(b"list").with_kind(model::Kind::Garbage).key();
    for key in [Key::Gc, Key::Notified("demo".parse().unwrap()), garbage] {
        put(&world.store, &key, b"{}".to_vec()).await;
        let answer = world.get(&format!("/{key}"), &[]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{key}");
    }
}
