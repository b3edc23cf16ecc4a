//! Through Lambda, every row of the contract is what the local server answers.

use http_api::HttpSettings;
use lambda_http::http::Method;

use crate::mirror::{direct, event, example, mirror, through};

const PATHS: &[&str] = &[
    "/catalogs",
    "/catalogs.json",
    "/catalogs/demo/current.json",
    "/catalogs/demo/status.json",
    "/catalogs/demo/api/v1/all",
    "/catalogs/demo/all.json",
    "/catalogs/demo/api/v1/metas",
    "/catalogs/demo/api/v1/metas?schema=olm.bundle&package=demo-queue",
    "/catalogs/demo/api/v1/metas?package=demo%2Dqueue&package=none&name=",
    "/catalogs/demo/api/v1/metas?name=%22+%26",
    "/catalogs/demo/api/v1/metas?foo=1",
    "/catalogs/demo/packages",
    "/catalogs/demo/packages/demo-queue",
    "/catalogs/demo/packages/demo%2dqueue",
    "/catalogs/demo/packages/a%2Fb%3Fc%20d%25%zz",
    "/catalogs/demo/packages/..",
    "/catalogs/demo/content-hash",
    "/catalogs/none/content-hash",
    "/catalogs/A_/content-hash",
    "/catalogs/demo/notified.json",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/metrics",
    "/healthz/../readyz",
    "/packages/sha256/../../../etc/passwd",
    "//healthz",
    "/",
];

const FIELDS: &[&[(&str, &str)]] = &[
    &[],
    &[("accept-encoding", "gzip")],
    &[("accept-encoding", "zstd, gzip;q=0.5")],
    &[("accept-encoding", "identity;q=0, br")],
    &[("if-none-match", "\"a,b\", W/\"c\"")],
    &[("if-none-match", "*")],
    &[("if-match", "\"a\"")],
    &[("if-modified-since", "Fri, 20 Nov 2099 14:14:20 GMT")],
    &[("range", "bytes=7-20")],
    &[("range", "bytes=-5,0-1, 2-3")],
    &[("range", "bytes=99999999-")],
    &[("range", "bytes=0-3"), ("if-range", "\"a\"")],
];

#[tokio::test]
async fn function_answers_every_route_as_the_local_server() {
    let store = mirror(example()).await;
    for path in PATHS {
        for fields in FIELDS {
            for method in [Method::GET, Method::HEAD, Method::DELETE] {
                let settings = HttpSettings::default;
                let expected = direct(store.clone(), settings(), &method, path, fields).await;
                let event = event(&method, path, fields);
                let answer = through(store.clone(), settings(), &event).await;
                assert_eq!(answer, expected, "{method} {path} {fields:?}");
            }
        }
    }
}

#[tokio::test]
async fn function_answers_objects_as_the_local_server() {
    let store = mirror(example()).await;
    // What publishers keep for themselves is answered alike too: 404.
    let keys = store.objects().into_keys().collect::<Vec<_>>();
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys {
        let path = format!("/{key}");
        let expected = direct(store.clone(), HttpSettings::default(), &Method::GET, &path, &[]).await;
        let event = event(&Method::GET, &path, &[]);
        let answer = through(store.clone(), HttpSettings::default(), &event).await;
        assert_eq!(answer, expected, "{path}");
    }
}
