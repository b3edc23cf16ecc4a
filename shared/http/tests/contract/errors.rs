//! Status, headers and problems of what fails.

use catalog_mirror_http::HttpSettings;
use http::{Method, StatusCode};
use model::Availability;

use crate::{
    fixture::{LINES, Publication},
    world::World,
};

#[tokio::test]
async fn problems_tell_the_cause() {
    let world = World::new().await;
    insta::assert_snapshot!(world.show("/catalogs/Demo/api/v1/all", &[]).await, @r#"
    400 Bad Request
    cache-control: no-store
    content-length: 281
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:bad-catalog-name","title":"Bad Request","status":400,"detail":"a catalog's name is a DNS-1123 subdomain (at most 253 characters: lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit), not \"Demo\""}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/other/api/v1/all", &[]).await, @r#"
    404 Not Found
    cache-control: no-store
    content-length: 139
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:unknown-catalog","title":"Not Found","status":404,"detail":"no catalog \"other\" is served here"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/packages/other", &[]).await, @r#"
    404 Not Found
    cache-control: no-store
    content-length: 140
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:unknown-package","title":"Not Found","status":404,"detail":"the catalog has no package \"other\""}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/status.json", &[]).await, @r#"
    404 Not Found
    cache-control: no-store
    content-length: 126
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:unknown-object","title":"Not Found","status":404,"detail":"there is no such object"}
    "#);
    insta::assert_snapshot!(world.show("/other", &[]).await, @r#"
    404 Not Found
    cache-control: no-store
    content-length: 131
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:unknown-path","title":"Not Found","status":404,"detail":"nothing is served at this path"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/api/v1/metas?foo=bar", &[]).await, @r#"
    400 Bad Request
    cache-control: no-store
    content-length: 179
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:unknown-parameter","title":"Bad Request","status":400,"detail":"there is no query parameter \"foo\" here: only schema, package and name"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("accept-encoding", "br, identity;q=0")]).await, @r#"
    406 Not Acceptable
    cache-control: no-store
    content-length: 194
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:not-acceptable","title":"Not Acceptable","status":406,"detail":"none of the content codings that are offered here (zstd, gzip, identity) is acceptable"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/all.json", &[("if-match", "\"other\"")]).await, @r#"
    412 Precondition Failed
    cache-control: no-store
    content-length: 174
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:precondition-failed","title":"Precondition Failed","status":412,"detail":"the representation is not the one that the request names"}
    "#);
    insta::assert_snapshot!(world.show("/catalogs/demo/content-hash", &[("range", "bytes=65-")]).await, @r#"
    416 Range Not Satisfiable
    cache-control: no-store
    content-length: 158
    content-range: bytes */65
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:range-not-satisfiable","title":"Range Not Satisfiable","status":416,"detail":"the representation has only 65 bytes"}
    "#);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let world = World::new().await;
    let answer = world.ask(Method::POST, "/catalogs/demo/api/v1/all", &[]).await;
    insta::assert_snapshot!(answer.show(), @r#"
    405 Method Not Allowed
    allow: GET, HEAD
    cache-control: no-store
    content-length: 151
    content-type: application/problem+json

    {"type":"urn:problem-type:catalog-mirror:method-not-allowed","title":"Method Not Allowed","status":405,"detail":"only GET and HEAD are answered here"}
    "#);
    for method in [
        Method::OPTIONS,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::TRACE,
    ] {
        let answer = world.ask(method, "/catalogs", &[]).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header("allow"), "GET, HEAD");
    }
    let unknown = world.ask(Method::POST, "/nothing", &[]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// It is kept up to date but is not there for readers, except for those who know the name of what they want.
#[tokio::test]
async fn unavailable_catalog_is_unknown() {
    let publication = Publication {
        availability: Availability::Unavailable,
        ..Publication::default()
    };
    let world = World::with(HttpSettings::default(), publication, LINES).await;
    for rest in [
        "api/v1/all",
        "all.json",
        "api/v1/metas",
        "current.json",
        "content-hash",
        "packages",
        "packages/alpha",
    ] {
        let answer = world.get(&format!("/catalogs/demo/{rest}"), &[]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{rest}");
    }
    assert_eq!(world.get("/catalogs", &[]).await.text(), "{\"catalogs\":[]}\n");
    let snapshot = world.get(&format!("/{}", world.demo.current.snapshot.key()), &[]).await;
    assert_eq!(snapshot.status, StatusCode::OK);
}

#[tokio::test]
async fn unknown_objects_are_not_found() {
    let world = World::new().await;
    let hash = "0".repeat(64);
    for path in [
        format!("/packages/sha256/{hash}.json.zst"),
        format!("/all/sha256/{hash}.json.gz"),
    ] {
        let answer = world.get(&path, &[("if-none-match", "*")]).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.text().contains("unknown-object"));
    }
}
