//! Status, headers and problems of what fails.

use api::{HttpSettings, Origins};
use axum::body::Body;
use http::{HeaderValue, Method, Request, StatusCode};
use model::{Availability, CatalogName, Current, Document, Key};
use storekit::conformance::put;
use testkit::Answer;

use crate::world::{World, problem};

/// Status and word of a problem with the path that gets it, and maybe a field of the request. Below
/// stands the detail.
const PROBLEMS: &str = r#"
400 bad-catalog-name /catalogs/Demo/api/v1/all
    a catalog's name is a DNS-1123 subdomain (at most 253 characters: lower-case letters, digits, '-' and '.', each part starting and
    ending with a letter or digit), not "Demo"
404 unknown-catalog /catalogs/other/api/v1/all
    no catalog "other" is served here
404 unknown-package /catalogs/demo/packages/other
    the catalog has no package "other"
404 unknown-object /catalogs/demo/status.json
    there is no such object
404 unknown-object /all/sha256/0000000000000000000000000000000000000000000000000000000000000000.json.gz if-none-match:*
    there is no such object
404 unknown-path /catalogs/demo/other
    nothing is served at this path
400 unknown-parameter /catalogs/demo/api/v1/metas?foo=bar
    there is no query parameter "foo" here: only schema, package and name
400 bad-content-hash /catalogs/demo/changes?since=
    the query parameter since must be the content hash of an earlier state: 64 lower-case hex digits
406 not-acceptable /catalogs/demo/all.json accept-encoding:br, identity;q=0
    none of the content codings that are offered here (zstd, gzip, identity) is acceptable
412 precondition-failed /catalogs/demo/all.json if-match:"other"
    the representation is not the one that the request names
416 range-not-satisfiable /catalogs/demo/content-hash range:bytes=65-
    the representation has only 65 bytes
"#;

#[tokio::test]
async fn problems_tell_the_cause() {
    let world = World::new().await;
    for row in PROBLEMS.trim().replace("\n    ", " | ").lines() {
        let (head, detail) = row.split_once(" | ").unwrap();
        let words: Vec<&str> = head.splitn(4, ' ').collect();
        let field = words.get(3).and_then(|field| field.split_once(':'));
        let shown = world.show(words[2], field.as_slice()).await;
        let status = words[0].parse().unwrap();
        let own = if status == 416 {
            "content-range: bytes */65"
        } else {
            ""
        };
        let expected = problem(status, words[1], &detail.replace(" | ", " "), own);
        assert_eq!(shown, expected, "{head}");
    }
}

#[tokio::test]
async fn other_methods_are_refused() {
    let world = World::new().await;
    let answer = world
        .ask(Method::POST, "/catalogs/demo/api/v1/all", &[])
        .await;
    let detail = "only GET and HEAD are answered here";
    let expected = problem(
        405,
        "method-not-allowed",
        detail,
        "allow: GET, HEAD, OPTIONS",
    );
    assert_eq!(answer.show(), expected);
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE] {
        let answer = world.ask(method, "/catalogs", &[]).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
    }
    for (path, status) in [
        ("/nothing", 404),
        ("/all/sha256/0.json", 404),
        ("/catalogs//all.json", 400),
    ] {
        assert_eq!(
            world.ask(Method::POST, path, &[]).await.status,
            status,
            "{path}"
        );
    }
}

/// Without users any page may read. With users the configured ones may, and a front that decides
/// itself gets no fields.
#[tokio::test]
async fn options_and_reads_tell_which_origins_may_read() {
    let docs = "https://docs.lab";
    let only = |origins: &[&'static str]| {
        Origins::Only(
            origins
                .iter()
                .copied()
                .map(HeaderValue::from_static)
                .collect(),
        )
    };
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
        let world = World::new().await.serving(settings);
        for (method, path, status) in [
            (
                Method::OPTIONS,
                "/catalogs/demo/current.json",
                StatusCode::NO_CONTENT,
            ),
            (Method::OPTIONS, "/v2/", StatusCode::NO_CONTENT),
            (Method::OPTIONS, "/nothing", StatusCode::NOT_FOUND),
            (Method::GET, "/catalogs/demo/content-hash", StatusCode::OK),
            (
                Method::HEAD,
                "/catalogs/none/current.json",
                StatusCode::NOT_FOUND,
            ),
        ] {
            let request = Request::builder()
                .method(&method)
                .uri(path)
                .header("origin", docs);
            let answer = Answer::to(request.body(Body::empty()).unwrap(), &world.router).await;
            let field = |name: &str| answer.header(name);
            let preflight = method == Method::OPTIONS && !allowed.is_empty();
            assert_eq!(
                (answer.status, field("vary")),
                (status, varies),
                "{method} {path}"
            );
            assert_eq!(
                field("access-control-allow-origin"),
                allowed,
                "{method} {path}"
            );
            let has = ["access-control-allow-headers", "allow"].map(|name| !field(name).is_empty());
            let expected = [preflight, status == StatusCode::NO_CONTENT];
            assert_eq!(has, expected, "{method} {path}");
        }
    }
}

/// It is kept up to date but is not there for readers, except for those who know the name of what
/// they want.
#[tokio::test]
async fn unavailable_catalog_is_unknown() {
    let world = World::new().await;
    let unavailable = Current {
        availability: Availability::Unavailable,
        ..world.demo.current.clone()
    };
    let name: CatalogName = "demo".parse().unwrap();
    put(&world.store, &Key::Status(name.clone()), b"{}".to_vec()).await;
    put(&world.store, &Key::Current(name), unavailable.to_bytes()).await;
    let routes = "status.json changes search api/v1/all all.json api/v1/metas current.json content-hash packages packages/alpha";
    let registry_routes = ["tags/list", "manifests/latest", "blobs/uploads/"];
    let paths = routes
        .split(' ')
        .map(|route| format!("/catalogs/demo/{route}"));
    for path in paths.chain(registry_routes.map(|route| format!("/v2/demo/{route}"))) {
        let shown = world.show(&path, &[]).await;
        let code = if path.starts_with("/v2") {
            "NAME_UNKNOWN"
        } else {
            "unknown-"
        };
        assert!(
            shown.starts_with("404") && shown.contains(code),
            "{path}: {shown}"
        );
    }
    assert_eq!(
        world.get("/v2/_catalog", &[]).await.text(),
        r#"{"repositories":[]}"#
    );
    assert_eq!(
        world.get("/catalogs", &[]).await.text(),
        "{\"catalogs\":[]}\n"
    );
    let names = world.get("/catalogs.json", &[]).await;
    let names: serde_json::Value = serde_json::from_slice(names.bytes()).unwrap();
    assert_eq!(names["catalogs"], serde_json::json!([]));
    let snapshot = format!("/{}", world.demo.current.snapshot.key());
    assert_eq!(world.status(&snapshot).await, StatusCode::OK);
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
        assert_eq!(answer.status, StatusCode::PERMANENT_REDIRECT);
        assert_eq!(answer.header("location"), location);
    }
    for path in ["//", "/catalogs/demo/", "/v2/demo/tags/list/"] {
        assert_eq!(
            world.get(path, &[]).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}
