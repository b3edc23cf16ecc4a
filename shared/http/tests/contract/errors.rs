//! Status, headers and problems of what fails.

use axum::body::Body;
use catalog_mirror_http::{HttpSettings, Origins};
use http::{HeaderValue, Method, Request, StatusCode};
use model::Key;
use store::{Condition, Store};
use testkit::Answer;

use crate::{
    fixture::{LINES, Publication},
    world::{World, problem, router},
};

#[tokio::test]
async fn problems_tell_the_cause() {
    let world = World::new().await;
    let bad_name = "a catalog's name is a DNS-1123 subdomain (at most 253 characters: lower-case letters, digits, '-' and '.', \
                    each part starting and ending with a letter or digit), not \"Demo\"";
    let coding = "none of the content codings that are offered here (zstd, gzip, identity) is acceptable";
    let parameter = "there is no query parameter \"foo\" here: only schema, package and name";
    let other = "the representation is not the one that the request names";
    for (path, field, status, kind, detail) in [
        ("Demo/api/v1/all", ("", ""), 400, "bad-catalog-name", bad_name),
        (
            "other/api/v1/all",
            ("", ""),
            404,
            "unknown-catalog",
            "no catalog \"other\" is served here",
        ),
        (
            "demo/packages/other",
            ("", ""),
            404,
            "unknown-package",
            "the catalog has no package \"other\"",
        ),
        (
            "demo/status.json",
            ("", ""),
            404,
            "unknown-object",
            "there is no such object",
        ),
        (
            "demo/other",
            ("", ""),
            404,
            "unknown-path",
            "nothing is served at this path",
        ),
        (
            "demo/api/v1/metas?foo=bar",
            ("", ""),
            400,
            "unknown-parameter",
            parameter,
        ),
        (
            "demo/all.json",
            ("accept-encoding", "br, identity;q=0"),
            406,
            "not-acceptable",
            coding,
        ),
        (
            "demo/all.json",
            ("if-match", "\"other\""),
            412,
            "precondition-failed",
            other,
        ),
    ] {
        let fields: &[_] = if field.0.is_empty() { &[] } else { &[field] };
        let shown = world.show(&format!("/catalogs/{path}"), fields).await;
        assert_eq!(shown, problem(status, kind, detail, ""), "{path}");
    }
    assert_eq!(
        world
            .show("/catalogs/demo/content-hash", &[("range", "bytes=65-")])
            .await,
        problem(
            416,
            "range-not-satisfiable",
            "the representation has only 65 bytes",
            "content-range: bytes */65"
        )
    );
}

#[tokio::test]
async fn other_methods_are_refused() {
    let world = World::new().await;
    let answer = world.ask(Method::POST, "/catalogs/demo/api/v1/all", &[]).await;
    let detail = "only GET and HEAD are answered here";
    assert_eq!(
        answer.show(),
        problem(405, "method-not-allowed", detail, "allow: GET, HEAD, OPTIONS")
    );
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE] {
        let answer = world.ask(method, "/catalogs", &[]).await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD, OPTIONS")
        );
    }
    let unknown = world.ask(Method::POST, "/nothing", &[]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// Without users any page may read. With users the configured ones may, and a front that decides itself gets no fields.
#[tokio::test]
async fn options_and_reads_tell_which_origins_may_read() {
    let docs = "https://docs.lab";
    let only =
        |origins: &[&'static str]| Origins::Only(origins.iter().copied().map(HeaderValue::from_static).collect());
    for (origins, allowed, varies) in [
        (Origins::Any, "*", ""),
        (only(&["https://console.lab", docs]), docs, "Origin"),
        (only(&["https://console.lab"]), "", "Origin"),
        (only(&[]), "", ""),
    ] {
        let settings = HttpSettings {
            origins,
            ..HttpSettings::default()
        };
        let world = World::new().await;
        let router = router(&world.store, settings);
        for (method, path, status) in [
            (Method::OPTIONS, "/catalogs/demo/current.json", StatusCode::NO_CONTENT),
            (Method::OPTIONS, "/v2/", StatusCode::NO_CONTENT),
            (Method::OPTIONS, "/nothing", StatusCode::NOT_FOUND),
            (Method::GET, "/catalogs/demo/content-hash", StatusCode::OK),
            (Method::HEAD, "/catalogs/none/current.json", StatusCode::NOT_FOUND),
        ] {
            let request = Request::builder().method(&method).uri(path).header("origin", docs);
            let answer = Answer::to(request.body(Body::empty()).unwrap(), &router).await;
            let field = |name: &str| answer.header(name);
            let preflight = method == Method::OPTIONS && !allowed.is_empty();
            assert_eq!((answer.status, field("vary")), (status, varies), "{method} {path}");
            assert_eq!(field("access-control-allow-origin"), allowed, "{method} {path}");
            assert_eq!(
                field("access-control-allow-headers").is_empty(),
                !preflight,
                "{method} {path}"
            );
            assert_eq!(
                field("allow").is_empty(),
                status != StatusCode::NO_CONTENT,
                "{method} {path}"
            );
        }
    }
}

/// It is kept up to date but is not there for readers, except for those who know the name of what they want.
#[tokio::test]
async fn unavailable_catalog_is_unknown() {
    let publication = Publication::unavailable();
    let world = World::with(HttpSettings::default(), publication, LINES).await;
    let status = Key::Status("demo".parse().unwrap());
    world.store.put(&status, "{}".into(), Condition::Always).await.unwrap();
    for rest in [
        "status.json",
        &format!("changes?since={}", world.demo.current.content_hash),
        "search",
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
    let names = world.get("/catalogs.json", &[]).await;
    let names: serde_json::Value = serde_json::from_slice(names.bytes()).unwrap();
    assert_eq!(names["catalogs"], serde_json::json!([]));
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

#[tokio::test]
async fn slash_at_the_end_of_a_path_redirects_to_the_route() {
    let world = World::new().await;
    for (path, location) in [
        ("/catalogs/", "../catalogs"),
        ("/catalogs/demo/packages/", "../packages"),
        ("/catalogs/demo/api/v1/metas/?name=a", "../metas?name=a"),
    ] {
        let answer = world.get(path, &[]).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::PERMANENT_REDIRECT, location)
        );
    }
    for path in ["//", "/catalogs/demo/", "/v2/demo/tags/list/"] {
        assert_eq!(world.get(path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}
