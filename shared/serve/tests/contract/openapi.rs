//! The description of the contract.

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
