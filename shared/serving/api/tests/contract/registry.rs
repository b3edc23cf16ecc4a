//! The catalogs as container images, as registries answer.

use http::{Method, StatusCode};
use model::{CatalogImage, Catalogs, Document, Key, Sha256};
use store::Store;
use storekit::conformance::put;
use testkit::Answer;

use crate::fixture::{LINES, Publication, publish};
use crate::world::{World, redirecting};

const OLDER: &str = "{\"name\":\"alpha\",\"schema\":\"olm.package\"}\n";

/// A catalog with an earlier publication, one that is not kept any more, and another catalog.
struct Site {
    world: World,
    older: CatalogImage,
    foreign: CatalogImage,
}

impl Site {
    async fn new() -> Self {
        let mut world = World::new().await;
        let older = publish(&world.store, Publication::default(), OLDER).await;
        let expired = publish(
            &world.store,
            Publication::default(),
            "{\"schema\":\"olm.expired\"}\n",
        )
        .await;
        world
            .store
            .delete(&expired.current.snapshot.key())
            .await
            .unwrap();
        let other = Publication::of("other");
        let foreign = publish(&world.store, other, "{\"schema\":\"olm.note\"}\n").await;
        world.demo = publish(&world.store, Publication::default(), LINES).await;
        let names = Catalogs::from_iter(["demo", "other"].map(|name| name.parse().unwrap()));
        put(&world.store, &Key::Catalogs, names.to_bytes()).await;
        let image = |published: crate::fixture::Published| published.snapshot.image.unwrap();
        Self {
            older: image(older),
            foreign: image(foreign),
            world,
        }
    }

    fn image(&self) -> &CatalogImage {
        self.world.demo.snapshot.image.as_ref().unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        self.world.get(&format!("/v2/{path}"), &[]).await
    }

    /// Status and code of what is refused.
    async fn refusal(&self, method: Method, path: &str) -> (u16, String) {
        let answer = self.world.ask(method, &format!("/v2/{path}"), &[]).await;
        let fields =
            ["docker-distribution-api-version", "content-type"].map(|name| answer.header(name));
        assert_eq!(fields, ["registry/2.0", "application/json"], "{path}");
        let body: serde_json::Value = serde_json::from_slice(answer.bytes()).unwrap();
        let entry = &body["errors"][0];
        assert!(entry["message"].is_string(), "{path}: {body}");
        (
            answer.status.as_u16(),
            entry["code"].as_str().unwrap().to_owned(),
        )
    }
}

fn digest(hash: Sha256) -> String {
    format!("sha256:{hash}")
}

#[tokio::test]
async fn base_catalog_and_referrers_answer_as_a_registry() {
    let site = Site::new().await;
    let referrers = format!("/v2/demo/referrers/{}", digest(Sha256::of(b"")));
    let [json, index] = [
        "application/json",
        "application/vnd.oci.image.index.v1+json",
    ];
    let empty = format!(r#"{{"manifests":[],"mediaType":"{index}","schemaVersion":2}}"#);
    for (path, media, body) in [
        ("/v2/", json, "{}"),
        ("/v2", json, "{}"),
        ("/v2/_catalog", json, r#"{"repositories":["demo","other"]}"#),
        (&referrers, index, &empty),
    ] {
        let answer = site.world.get(path, &[]).await;
        let fields =
            ["docker-distribution-api-version", "content-type"].map(|name| answer.header(name));
        let expected = (StatusCode::OK, ["registry/2.0", media], body);
        assert_eq!((answer.status, fields, &*answer.text()), expected, "{path}");
    }
    let other = site.world.get("/healthz", &[]).await;
    assert_eq!(other.header("docker-distribution-api-version"), "");
}

#[tokio::test]
async fn tags_name_the_stored_contents() {
    let site = Site::new().await;
    let hashes = [
        site.world.demo.current.content_hash,
        Sha256::of(OLDER.as_bytes()),
    ];
    let mut tags: Vec<String> = hashes
        .iter()
        .map(|hash| hash.to_string()[..12].to_owned())
        .collect();
    tags.sort();
    tags.push("latest".into());
    let list = serde_json::json!({"name": "demo", "tags": tags});
    assert_eq!(site.get("demo/tags/list").await.text(), list.to_string());
    let page = site.get("demo/tags/list?n=1").await;
    let list = serde_json::json!({"name": "demo", "tags": [tags[0]]});
    let link = format!("</v2/demo/tags/list?n=1&last={}>; rel=\"next\"", tags[0]);
    assert_eq!(
        (page.text(), page.header("link")),
        (list.to_string(), link.as_str())
    );
}

#[tokio::test]
async fn index_is_found_by_tag_and_by_digest() {
    let site = Site::new().await;
    let index = site.image().index;
    let hash = site.world.demo.current.content_hash.to_string();
    for tag in ["latest", &hash[..12], &hash] {
        let answer = site.get(&format!("demo/manifests/{tag}")).await;
        assert_eq!(Sha256::of(answer.bytes()), index.sha256, "{tag}");
        assert_eq!(
            answer.header("content-type"),
            "application/vnd.oci.image.index.v1+json"
        );
        assert_eq!(answer.header("docker-content-digest"), digest(index.sha256));
        assert!(
            answer.header("cache-control").contains("max-age=60"),
            "{tag}"
        );
        let again = [("if-none-match", answer.header("etag"))];
        let again = site
            .world
            .get(&format!("/v2/demo/manifests/{tag}"), &again)
            .await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        assert_eq!(again.header("docker-content-digest"), digest(index.sha256));
    }
    let answer = site
        .get(&format!("demo/manifests/{}", digest(index.sha256)))
        .await;
    assert!(answer.header("cache-control").contains("immutable"));
}

#[tokio::test]
async fn all_parts_of_an_index_can_be_pulled() {
    let site = Site::new().await;
    for image in [site.image(), &site.older] {
        for stored in &image.manifests {
            let path = format!("/v2/demo/manifests/{}", digest(stored.sha256));
            let answer = site.world.get(&path, &[]).await;
            let kind = "application/vnd.oci.image.manifest.v1+json";
            assert_eq!(answer.header("content-type"), kind);
            assert_eq!(Sha256::of(answer.bytes()), stored.sha256);
            let head = site.world.ask(Method::HEAD, &path, &[]).await;
            assert_eq!(head.head(), answer.head());
        }
        for stored in image.blobs() {
            let path = format!("/v2/demo/blobs/{}", digest(stored.sha256));
            let answer = site.world.get(&path, &[]).await;
            assert_eq!(Sha256::of(answer.bytes()), stored.sha256);
            assert_eq!(
                answer.header("docker-content-digest"),
                digest(stored.sha256)
            );
            assert_eq!(answer.header("content-type"), "application/octet-stream");
            assert!(answer.header("cache-control").contains("immutable"));
            let part = site.world.get(&path, &[("range", "bytes=2-9")]).await;
            assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
            assert_eq!(part.bytes(), &answer.bytes()[2..10]);
        }
    }
}

#[tokio::test]
async fn unknown_parts_are_refused_with_the_codes_of_the_specification() {
    let site = Site::new().await;
    let none = digest(Sha256::of(b"none"));
    let foreign = digest(site.foreign.layer.sha256);
    let foreign_index = digest(site.foreign.index.sha256);
    for (path, status, code) in [
        ("nobody/manifests/latest".to_owned(), 404, "NAME_UNKNOWN"),
        ("ns/demo/tags/list".into(), 404, "NAME_UNKNOWN"),
        ("ns%2Fdemo/tags/list".into(), 400, "NAME_INVALID"),
        ("Demo/tags/list".into(), 400, "NAME_INVALID"),
        ("..%2Fdemo/manifests/latest".into(), 400, "NAME_INVALID"),
        ("demo/manifests/v1".into(), 404, "MANIFEST_UNKNOWN"),
        ("demo/manifests/e3b0".into(), 404, "MANIFEST_UNKNOWN"),
        (format!("demo/manifests/{none}"), 404, "MANIFEST_UNKNOWN"),
        (
            format!("demo/manifests/{foreign_index}"),
            404,
            "MANIFEST_UNKNOWN",
        ),
        ("demo/manifests/sha256:0".into(), 400, "DIGEST_INVALID"),
        (format!("demo/blobs/{none}"), 404, "BLOB_UNKNOWN"),
        (format!("demo/blobs/{foreign}"), 404, "BLOB_UNKNOWN"),
        (
            format!("demo/blobs/sha512:{}", "a".repeat(128)),
            400,
            "DIGEST_INVALID",
        ),
        (
            "demo/blobs/sha256:..%2F..%2Fcurrent.json".into(),
            400,
            "DIGEST_INVALID",
        ),
        ("demo/blobs/latest".into(), 400, "DIGEST_INVALID"),
        ("demo/blobs/sha256:".into(), 400, "DIGEST_INVALID"),
        (
            format!("demo/blobs/{}", foreign.to_uppercase()),
            400,
            "DIGEST_INVALID",
        ),
        (
            format!("demo/blobs/sha256:{}", foreign[7..].to_uppercase()),
            400,
            "DIGEST_INVALID",
        ),
        ("demo/referrers/x".into(), 400, "DIGEST_INVALID"),
        (format!("nobody/referrers/{none}"), 404, "NAME_UNKNOWN"),
        ("demo/blobs/uploads/1".into(), 404, "NAME_UNKNOWN"),
        ("demo//tags/list".into(), 404, "NAME_UNKNOWN"),
        (
            "demo/tags/list?n=%31x".into(),
            400,
            "PAGINATION_NUMBER_INVALID",
        ),
        (
            "demo/tags/list?n=1e3".into(),
            400,
            "PAGINATION_NUMBER_INVALID",
        ),
        ("_catalog?n=-1".into(), 400, "PAGINATION_NUMBER_INVALID"),
        ("_catalog?n=".into(), 400, "PAGINATION_NUMBER_INVALID"),
        ("demo".into(), 404, "UNSUPPORTED"),
        ("demo/tags".into(), 404, "UNSUPPORTED"),
        ("_catalog/".into(), 404, "UNSUPPORTED"),
    ] {
        let refusal = site.refusal(Method::GET, &path).await;
        assert_eq!(refusal, (status, code.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn pushes_and_deletes_are_refused() {
    let site = Site::new().await;
    let layer = digest(site.image().layer.sha256);
    for (method, path) in [
        (Method::POST, "demo/blobs/uploads/".to_owned()),
        (
            Method::POST,
            format!("demo/blobs/uploads/?mount={layer}&from=other"),
        ),
        (Method::PATCH, "demo/blobs/uploads/1".into()),
        (Method::PUT, "demo/blobs/uploads/1".into()),
        (Method::PUT, "demo/manifests/latest".into()),
        (Method::DELETE, "demo/manifests/latest".into()),
        (Method::DELETE, format!("demo/blobs/{layer}")),
    ] {
        let answer = site.refusal(method.clone(), &path).await;
        assert_eq!(answer, (405, "UNSUPPORTED".to_owned()), "{method} {path}");
        let answer = site.world.ask(method, &format!("/v2/{path}"), &[]).await;
        assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
    }
}

/// HEAD is not: the method is part of what S3 signs (AWS Signature Version 4, "Create a canonical
/// request"), so it refuses a HEAD of a URL that is meant for GET.
#[tokio::test]
async fn get_of_a_large_layer_is_redirected_to_its_blob() {
    let mut site = Site::new().await;
    let layer = site.image().layer;
    let path = format!("/v2/demo/blobs/{}", digest(layer.sha256));
    let of_large = site.world.ask(Method::HEAD, &path, &[]).await;
    site.world = site.world.serving(redirecting(100, 100));
    let answer = site.world.get(&path, &[]).await;
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    let location = format!("https://cdn.example/mirror/blobs/sha256/{}", layer.sha256);
    assert_eq!(answer.header("location"), location);
    assert_eq!(answer.header("docker-content-digest"), digest(layer.sha256));
    let head = site.world.ask(Method::HEAD, &path, &[]).await;
    assert_eq!((head.head(), head.bytes()), (of_large.head(), &b""[..]));
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.header("content-length"), layer.size.to_string());
}
