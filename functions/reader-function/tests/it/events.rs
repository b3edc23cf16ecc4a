//! Events as the services send them.

use lambda_http::http::Method;
use rstest::rstest;

use crate::mirror::{direct, example, mirror, recorded, through};

const ALL: &str = "/catalogs/demo/api/v1/all";
const METAS: &str = "/catalogs/demo/api/v1/metas";
const HASH: &str = "/catalogs/demo/content-hash";
const PACKAGE: &str = "/catalogs/demo/packages/demo-queue";

#[rstest]
#[case("url-all", Method::GET, ALL, &[], 200)]
#[case("url-all-gzip", Method::GET, ALL, &[("accept-encoding", "gzip")], 200)]
#[case("url-not-modified", Method::GET, HASH, &[("if-none-match", "*")], 304)]
#[case("url-list-of-tags", Method::GET, HASH, &[], 200)]
#[case("url-range", Method::GET, ALL, &[("range", "bytes=7-20")], 206)]
#[case("url-metas", Method::GET, &format!("{METAS}?schema=olm.channel&package=demo-queue"), &[], 200)]
#[case("url-metas-encoded", Method::GET, &format!("{METAS}?name=%22x%22%20y%26%3D&package=demo-queue"), &[], 200)]
#[case("url-metas-not-encoded", Method::GET, &format!("{METAS}?name=%22x%20y%22"), &[], 200)]
#[case("url-unknown-parameter", Method::GET, &format!("{METAS}?foo%20bar=1"), &[], 400)]
#[case("url-package-encoded", Method::GET, PACKAGE, &[], 200)]
#[case("url-package-odd", Method::GET, "/catalogs/demo/packages/a%2Fb%3Fc%20d%25", &[], 404)]
#[case("url-dots", Method::GET, "/healthz/../readyz", &[], 404)]
#[case("url-through-cdn", Method::GET, PACKAGE, &[("accept-encoding", "gzip")], 200)]
#[case("api-all", Method::GET, ALL, &[("accept-encoding", "zstd")], 200)]
#[case("api-stage", Method::GET, PACKAGE, &[], 200)]
#[case("api-stage-of-a-domain", Method::GET, PACKAGE, &[], 200)]
#[case("api-decoded", Method::GET, "/catalogs/demo/packages/a%20b%3Fc%23d%C3%BC", &[], 404)]
#[case("url-all-head", Method::HEAD, ALL, &[], 200)]
#[case("url-post", Method::POST, ALL, &[], 405)]
#[tokio::test]
async fn recorded_event_is_read_as_its_request(
    #[case] name: &str,
    #[case] method: Method,
    #[case] uri: &str,
    #[case] fields: &[(&str, &str)],
    #[case] status: u64,
) {
    let store = mirror(example()).await;
    let answer = through(&store, &recorded(name)).await;
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer, direct(&store, &method, uri, fields).await);
}
