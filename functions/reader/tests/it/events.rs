//! Events as the services send them.

use http_api::HttpSettings;
use lambda_http::http::Method;
use rstest::rstest;

use crate::mirror::{direct, example, mirror, recorded, through};

const ALL: &str = "/catalogs/demo/api/v1/all";
const METAS: &str = "/catalogs/demo/api/v1/metas";
const HASH: &str = "/catalogs/demo/content-hash";
const PACKAGE: &str = "/catalogs/demo/packages/demo-queue";

#[rstest]
#[case("url-all", ALL, &[], 200)]
#[case("url-all-gzip", ALL, &[("accept-encoding", "gzip")], 200)]
#[case("url-not-modified", HASH, &[("if-none-match", "*")], 304)]
#[case("url-list-of-tags", HASH, &[], 200)]
#[case("url-range", ALL, &[("range", "bytes=7-20")], 206)]
#[case("url-metas", &format!("{METAS}?schema=olm.channel&package=demo-queue"), &[], 200)]
#[case("url-metas-encoded", &format!("{METAS}?name=%22x%22%20y%26%3D&package=demo-queue"), &[], 200)]
#[case("url-metas-not-encoded", &format!("{METAS}?name=%22x%20y%22"), &[], 200)]
#[case("url-unknown-parameter", &format!("{METAS}?foo%20bar=1"), &[], 400)]
#[case("url-package-encoded", PACKAGE, &[], 200)]
#[case("url-package-odd", "/catalogs/demo/packages/a%2Fb%3Fc%20d%25", &[], 404)]
#[case("url-dots", "/healthz/../readyz", &[], 404)]
#[case("url-through-cdn", PACKAGE, &[("accept-encoding", "gzip")], 200)]
#[case("api-all", ALL, &[("accept-encoding", "zstd")], 200)]
#[case("api-stage", PACKAGE, &[], 200)]
#[case("api-stage-of-a-domain", PACKAGE, &[], 200)]
#[case("api-decoded", "/catalogs/demo/packages/a%20b%3Fc%23d%C3%BC", &[], 404)]
#[tokio::test]
async fn recorded_event_is_read_as_its_request(
    #[case] name: &str,
    #[case] uri: &str,
    #[case] fields: &[(&str, &str)],
    #[case] status: u64,
) {
    let store = mirror(example()).await;
    let answer = through(store.clone(), HttpSettings::default(), &recorded(name)).await;
    assert_eq!(answer.status, status, "{answer:?}");
    let expected = direct(store, HttpSettings::default(), &Method::GET, uri, fields).await;
    assert_eq!(answer, expected);
}

#[rstest]
#[case("url-all-head", Method::HEAD, 200)]
#[case("url-post", Method::POST, 405)]
#[tokio::test]
async fn other_methods_are_answered(#[case] name: &str, #[case] method: Method, #[case] status: u64) {
    let store = mirror(example()).await;
    let answer = through(store.clone(), HttpSettings::default(), &recorded(name)).await;
    assert_eq!(answer.status, status);
    assert_eq!(answer, direct(store, HttpSettings::default(), &method, ALL, &[]).await);
}
