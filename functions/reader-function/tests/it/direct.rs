//! Through Lambda, requests are answered as by the local server.

use lambda_http::http::Method;

use crate::mirror::{direct, event, example, mirror, through};

/// Paths that a service or a library could alter, and one of each form of answer. The contract of
/// HTTP has the others.
const PATHS: &[&str] = &[
    "/",
    "/catalogs/demo/current.json",
    "/catalogs/demo/api/v1/all",
    "/catalogs/demo/api/v1/metas?schema=olm.bundle&package=demo-queue",
    "/catalogs/demo/api/v1/metas?package=demo%2Dqueue&package=none&name=",
    "/catalogs/demo/api/v1/metas?name=%22+%26",
    "/catalogs/demo/api/v1/metas?foo=1",
    "/catalogs/demo/packages/demo%2dqueue",
    "/catalogs/demo/packages/a%2Fb%3Fc%20d%25%zz",
    "/catalogs/demo/packages/..",
    "/catalogs/none/content-hash",
    "/catalogs/A_/content-hash",
    "/readyz",
    "/metrics",
    "/healthz/../readyz",
    "/packages/sha256/../../../etc/passwd",
    "//healthz",
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
async fn function_answers_as_the_local_server() {
    let store = mirror(example()).await;
    for path in PATHS {
        for fields in FIELDS {
            for method in [Method::GET, Method::HEAD, Method::DELETE] {
                let expected = direct(&store, &method, path, fields).await;
                let answer = through(&store, &event(&method, path, fields)).await;
                assert_eq!(answer, expected, "{method} {path} {fields:?}");
            }
        }
    }
}
