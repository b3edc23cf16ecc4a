//! The description of the contract.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use serve::{Denial, answers_all, deny};

use crate::world::World;

#[tokio::test]
async fn every_path_is_described() {
    let world = World::new().await;
    let document: serde_json::Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    insta::assert_debug_snapshot!(paths, @r#"
    [
        "/blobs/sha256/{blob}",
        "/catalogs",
        "/catalogs.json",
        "/catalogs/{catalog}/all.json",
        "/catalogs/{catalog}/api/v1/all",
        "/catalogs/{catalog}/api/v1/metas",
        "/catalogs/{catalog}/changes",
        "/catalogs/{catalog}/content-hash",
        "/catalogs/{catalog}/current.json",
        "/catalogs/{catalog}/packages",
        "/catalogs/{catalog}/packages/{package}",
        "/catalogs/{catalog}/status.json",
        "/catalogs/{catalog}/{contentHash}/all.json",
        "/catalogs/{catalog}/{contentHash}/all.json.gz",
        "/catalogs/{catalog}/{contentHash}/all.json.zst",
        "/catalogs/{catalog}/{contentHash}/index.json.zst",
        "/catalogs/{catalog}/{contentHash}/snapshot.json",
        "/healthz",
        "/openapi.json",
        "/packages/sha256/{hash}.json.zst",
        "/readyz",
        "/v2/",
        "/v2/_catalog",
        "/v2/{catalog}/blobs/{digest}",
        "/v2/{catalog}/manifests/{reference}",
        "/v2/{catalog}/referrers/{digest}",
        "/v2/{catalog}/tags/list",
    ]
    "#);
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
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
async fn only_the_head_of_an_image_blob_is_described_without_a_redirect() {
    let world = World::new().await;
    let document: serde_json::Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    for (method, path, redirected) in [
        ("get", "/v2/{catalog}/blobs/{digest}", true),
        ("head", "/v2/{catalog}/blobs/{digest}", false),
        ("head", "/blobs/sha256/{blob}", true),
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

/// Credentials are wanted for all or for none, but never by probes.
#[tokio::test]
async fn every_path_but_the_probes_may_want_credentials() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    assert_eq!(document["security"], json!([{}, {"basic": []}, {"bearer": []}]));
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let own = operation.get("security");
            let expected = answers_all(path).then(|| json!([]));
            assert_eq!(own, expected.as_ref(), "{method} {path}");
            for (status, denial) in [("401", Denial::Unauthorized), ("429", Denial::Busy)] {
                let described = operation["responses"].get(status);
                assert_eq!(described.is_none(), answers_all(path), "{method} {path} {status}");
                if let Some(described) = described {
                    is_as_described(described, method, path, denial);
                }
            }
        }
    }
}

/// What is said of a denial is what it is answered with: its status, media type and fields.
fn is_as_described(described: &Value, method: &str, path: &str, denial: Denial) {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let answer = deny(&method, path, denial);
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
async fn challenges_name_the_schemes_that_are_described() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(&world.get("/openapi.json", &[]).await.text()).unwrap();
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let described: BTreeSet<&str> = schemes
        .values()
        .filter_map(|scheme| scheme["scheme"].as_str())
        .collect();
    let answer = deny(&Method::GET, "/catalogs", Denial::Unauthorized);
    let challenges = answer.headers().get_all("www-authenticate").into_iter();
    let offered: BTreeSet<String> = challenges
        .filter_map(|challenge| challenge.to_str().unwrap().split(' ').next())
        .map(str::to_lowercase)
        .collect();
    assert_eq!(offered, described.into_iter().map(str::to_owned).collect());
}
