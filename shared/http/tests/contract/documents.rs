//! The documents of the store, as they are stored.

use http::StatusCode;
use model::{Document, Encoding, Key, Outcome, Sha256, Status};
use testkit::{SOURCE, first_published_at};

use crate::{
    fixture::{LINES, Publication, publish, put},
    world::World,
};

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
async fn pointer_is_sent_in_the_accepted_coding_with_the_tag_of_it() {
    let world = World::new().await;
    let path = "/catalogs/demo/current.json";
    // Each publication that it remembers makes it longer. One below 1 KiB is sent plain.
    for _ in 0..3 {
        publish(&world.store, Publication::default(), LINES).await;
    }
    let stored = &world.store.objects()[&Key::Current("demo".parse().unwrap())];
    for encoding in Encoding::ALL {
        let coding = encoding.content_encoding().unwrap_or("identity");
        let answer = world.get(path, &[("accept-encoding", coding)]).await;
        assert_eq!(answer.decoded(), *stored, "{coding}");
        assert_eq!(answer.bytes().len() < stored.len(), encoding != Encoding::Identity);
        let sent = encoding.content_encoding().unwrap_or_default();
        assert_eq!(answer.header("content-encoding"), sent);
        assert_eq!(answer.header("vary"), "Accept-Encoding");
        assert_eq!(answer.header("etag"), Sha256::of(stored).to_entity_tag(encoding));
        for other in Encoding::ALL {
            let tag = Sha256::of(stored).to_entity_tag(other);
            let fields = [("accept-encoding", coding), ("if-none-match", &tag)];
            let is_known = world.get(path, &fields).await.status == StatusCode::NOT_MODIFIED;
            assert_eq!(is_known, other == encoding, "{tag}");
        }
    }
    let refused = world.get(path, &[("accept-encoding", "*;q=0")]).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn tag_of_a_package_names_its_bytes() {
    let world = World::new().await;
    for shard in &world.demo.snapshot.packages {
        for coding in ["identity", "gzip", "zstd"] {
            let path = format!("/catalogs/demo/packages/{}", shard.name);
            let answer = world.get(&path, &[("accept-encoding", coding)]).await;
            assert_eq!(Sha256::of(&answer.decoded()), shard.lines.sha256);
            let tag = match coding {
                "zstd" => shard.stored.sha256.to_entity_tag(Encoding::Identity),
                "gzip" => format!("\"{}-gzip\"", shard.lines.sha256.to_base64url()),
                _ => shard.lines.sha256.to_entity_tag(Encoding::Identity),
            };
            assert_eq!(answer.header("etag"), tag);
        }
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
