//! `/openapi.json`.

use std::collections::BTreeSet;

use catalog_mirror_http::{ApiError, is_probe, refuse, route_paths};
use http::Method;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn description_lists_every_path() {
    let world = World::new().await;
    let document: serde_json::Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    insta::assert_debug_snapshot!(paths, @r#"
    [
        "/all/sha256/{hash}.json",
        "/all/sha256/{hash}.json.gz",
        "/all/sha256/{hash}.json.zst",
        "/blobs/sha256/{hash}",
        "/catalogs",
        "/catalogs.json",
        "/catalogs/{catalog}/all.json",
        "/catalogs/{catalog}/api/v1/all",
        "/catalogs/{catalog}/api/v1/graphql",
        "/catalogs/{catalog}/api/v1/metas",
        "/catalogs/{catalog}/changes",
        "/catalogs/{catalog}/content-hash",
        "/catalogs/{catalog}/current.json",
        "/catalogs/{catalog}/packages",
        "/catalogs/{catalog}/packages/{package}",
        "/catalogs/{catalog}/search",
        "/catalogs/{catalog}/status.json",
        "/findings/sha256/{hash}.json.zst",
        "/graphs/sha256/{hash}.pb.zst",
        "/healthz",
        "/indexes/sha256/{hash}.json.zst",
        "/openapi.json",
        "/packages/sha256/{hash}.json.zst",
        "/readyz",
        "/search/sha256/{hash}.json.zst",
        "/snapshots/sha256/{hash}.json.zst",
        "/v2/",
        "/v2/_catalog",
        "/v2/{catalog}/blobs/{digest}",
        "/v2/{catalog}/manifests/{reference}",
        "/v2/{catalog}/referrers/{digest}",
        "/v2/{catalog}/tags/list",
    ]
    "#);
}

/// Only what pushing clients ask for, and one more spelling, is not described.
#[tokio::test]
async fn description_has_every_route_but_those_of_uploads() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    let missing = route_paths().filter(|path| document["paths"].get(path).is_none());
    assert_eq!(
        missing.collect::<Vec<_>>(),
        [
            "/v2",
            "/v2/{catalog}/blobs/uploads",
            "/v2/{catalog}/blobs/uploads/",
            "/v2/{catalog}/blobs/uploads/{session}"
        ]
    );
}

#[tokio::test]
async fn description_has_no_dangling_references() {
    let world = World::new().await;
    let text = world.get("/openapi.json", &[]).await.text();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    for reference in text
        .split("\"$ref\": \"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn description_redirects_all_but_the_head_of_an_image_blob() {
    let world = World::new().await;
    let document: serde_json::Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    for (method, path, redirected) in [
        ("get", "/v2/{catalog}/blobs/{digest}", true),
        ("head", "/v2/{catalog}/blobs/{digest}", false),
        ("head", "/blobs/sha256/{hash}", true),
        ("head", "/catalogs/{catalog}/all.json", true),
    ] {
        let responses = &document["paths"][path][method]["responses"];
        assert_eq!(
            responses.get("307").is_some(),
            redirected,
            "{method} {path}: {responses}"
        );
    }
}

/// A mirror wants credentials for all routes or for none, but never for probes.
#[tokio::test]
async fn description_wants_credentials_for_all_but_probes() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    assert_eq!(document["security"], json!([{}, {"basic": []}, {"bearer": []}]));
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let own = operation.get("security");
            let expected = is_probe(path).then(|| json!([]));
            assert_eq!(own, expected.as_ref(), "{method} {path}");
            for (status, error) in [("401", ApiError::Unauthorized), ("429", ApiError::TooManyLogins)] {
                let described = operation["responses"].get(status);
                assert_eq!(described.is_none(), is_probe(path), "{method} {path} {status}");
                if let Some(described) = described {
                    is_as_described(described, method, path, &error);
                }
            }
        }
    }
}

/// Compares the description of an error with the answer: its status, media type and fields.
fn is_as_described(described: &Value, method: &str, path: &str, error: &ApiError) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let answer = refuse(&method, path, error);
    for (field, _) in described["headers"].as_object().unwrap() {
        assert!(answer.headers().contains_key(field), "{method} {path}: {field}");
    }
    let content = described.get("content").and_then(|content| content.as_object());
    let types: Vec<&str> = content.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    match method {
        Method::HEAD => assert_eq!(types, [""; 0], "{path}"),
        _ => assert_eq!(types, [answer.headers()["content-type"].to_str().unwrap()], "{path}"),
    }
}

#[tokio::test]
async fn challenges_offer_the_described_schemes() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let described: BTreeSet<&str> = schemes
        .values()
        .filter_map(|scheme| scheme["scheme"].as_str())
        .collect();
    let answer = refuse(&Method::GET, "/catalogs", &ApiError::Unauthorized);
    let challenges = answer.headers().get_all("www-authenticate").into_iter();
    let offered: BTreeSet<String> = challenges
        .filter_map(|challenge| challenge.to_str().unwrap().split(' ').next())
        .map(str::to_lowercase)
        .collect();
    assert_eq!(offered, described.into_iter().map(str::to_owned).collect());
}
