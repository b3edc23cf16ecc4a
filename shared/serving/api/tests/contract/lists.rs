//! Documents that are made for an answer: their codings, their parts, and the queries of all routes.

use http::StatusCode;
use rstest::rstest;
use serde_json::Value;

use crate::openapi::CONTRACT;
use crate::world::World;

const DOCUMENTS: &[&str] = &[
    "/openapi.json",
    "/catalogs/demo/search",
    "/catalogs/demo/packages",
    "/catalogs/demo/packages?limit=0",
    "/catalogs",
    "/catalogs/demo/changes",
];

#[tokio::test]
async fn made_document_is_compressed_from_one_kibibyte_up() {
    let world = World::new().await;
    for path in DOCUMENTS {
        let plain = world.get(path, &[]).await;
        assert_eq!(plain.status, StatusCode::OK, "{path}");
        assert_eq!(plain.header("vary"), "Accept-Encoding", "{path}");
        // The size of a comparison is not known before it is made.
        let is_compressed = plain.bytes().len() >= 1024 || path.ends_with("changes");
        assert!(is_compressed || *path != "/openapi.json");
        let mut tags = vec![plain.header("etag").to_owned()];
        for coding in ["gzip", "zstd"] {
            let answer = world.get(path, &[("accept-encoding", coding)]).await;
            let stated = answer.header("content-encoding");
            assert_eq!(stated == coding, is_compressed, "{path} {coding}");
            assert_eq!(answer.decoded(), plain.bytes(), "{path} {coding}");
            assert_eq!(answer.header("vary"), "Accept-Encoding", "{path}");
            let tag = answer.header("etag").to_owned();
            let known = [("accept-encoding", coding), ("if-none-match", &tag)];
            let again = world.get(path, &known).await;
            assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path} {coding}");
            tags.push(tag);
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), if is_compressed { 3 } else { 1 }, "{path}");
        let refused = [("accept-encoding", "br, *;q=0")];
        let status = world.get(path, &refused).await.status;
        assert_eq!(status, StatusCode::NOT_ACCEPTABLE, "{path}");
    }
}

#[rstest]
#[case("", 0, &["alpha", "beta", "gamma"])]
#[case("?limit=2", 0, &["alpha", "beta"])]
#[case("?offset=1&limit=1", 1, &["beta"])]
#[case("?offset=2", 2, &["gamma"])]
#[case("?offset=7&limit=7", 7, &[])]
#[case("?limit=0", 0, &[])]
#[case("?limit=&offset=", 0, &["alpha", "beta", "gamma"])]
#[tokio::test]
async fn packages_are_listed_in_parts(
    #[case] query: &str,
    #[case] offset: u64,
    #[case] expected: &[&str],
) {
    let world = World::new().await;
    let path = format!("/catalogs/demo/packages{query}");
    let answer = world.get(&path, &[]).await;
    let list: Value = serde_json::from_slice(answer.bytes()).unwrap();
    assert_eq!(list["total"], 3);
    assert_eq!(list["offset"], offset);
    let packages = list["packages"].as_array().unwrap().iter();
    let names: Vec<&str> = packages.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected);
    for query in ["?limit=x", "?offset=-1", "?limit=1&offset=x"] {
        let path = format!("/catalogs/demo/packages{query}");
        let refused = world.get(&path, &[]).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(refused.text().contains("bad-page"), "{query}");
    }
}

#[tokio::test]
async fn unknown_parameter_is_refused_by_all_routes_but_those_of_registries() {
    let world = World::new().await;
    for path in CONTRACT["paths"].as_object().unwrap().keys() {
        let hash = "0".repeat(64);
        let path = path
            .replace(
                "{kind}/sha256/{object}",
                &format!("all/sha256/{hash}.json.zst"),
            )
            .replace("{catalog}", "demo")
            .replace("{package}", "alpha")
            .replace("{reference}", "latest")
            .replace("{digest}", &format!("sha256:{hash}"))
            .replace("{file}", "page.js");
        let answer = world.get(&format!("{path}?unknown=1"), &[]).await;
        let is_refused = answer.text().contains("unknown-parameter");
        assert_eq!(is_refused, !path.starts_with("/v2"), "{path}: {answer:?}");
        if is_refused {
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
            assert!(answer.text().contains("unknown"), "{path}");
        }
    }
}

#[test]
fn description_has_servers_and_each_route_a_described_tag() {
    assert_eq!(CONTRACT["servers"][0]["url"], "/");
    let tags = CONTRACT["tags"].as_array().unwrap();
    for (path, item) in CONTRACT["paths"].as_object().unwrap() {
        let own = item["get"]["tags"].as_array().unwrap();
        assert_eq!(own.len(), 1, "{path}");
        assert!(tags.iter().any(|tag| tag["name"] == own[0]), "{path}");
    }
}
