//! The configuration, as the binary reads it.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Server, run},
    catalogs, http,
};

const BAD: &str = "
interval: soon
registries: {platform: linux}
limits: {entrys: 10}
catalogs:
- {name: Good_Name, source: 'quay.io/ns/cat:v1'}
- {name: untagged, source: quay.io/ns/cat}
- {name: twice, source: 'quay.io/ns/cat:v1'}
- {name: twice, source: 'quay.io/ns/cat:v2'}
- {name: typo, sorce: 'quay.io/ns/cat:v2'}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: pinned}
spec:
  source:
    type: Image
    image:
      ref: quay.io/ns/cat@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
      pollIntervalMinutes: 5
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
";

#[test]
fn every_problem_is_reported_at_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("catalogs.yaml");
    fs::write(&file, BAD).unwrap();
    let failed = run(["poll", "--config", &file.display().to_string()]).exits(1);
    for part in [
        "soon",
        "linux/amd64",
        "entrys",
        "Good_Name",
        "untagged",
        "twice",
        "sorce",
        "pollIntervalMinutes",
        "ConfigMap",
    ] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
}

/// As `kubectl get clustercatalogs -o yaml` prints them.
fn manifests(visible: &str, hidden: &str) -> String {
    let catalog = |name: &str, reference: &str, mode: &str| {
        format!(
            "- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {{name: {name}, generation: 2, labels: {{olm.operatorframework.io/metadata.name: {name}}}}}
  spec:
    availabilityMode: {mode}
    priority: -100
    source: {{type: Image, image: {{ref: '{reference}', pollIntervalMinutes: 10}}}}
  status: {{conditions: []}}
"
        )
    };
    format!(
        "apiVersion: v1\nkind: List\nitems:\n{}{}",
        catalog("visible", visible, "Available"),
        catalog("hidden", hidden, "Unavailable")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_catalogs_are_taken_as_they_are_and_unavailable_ones_answer_404() {
    let registry = testkit::Registry::builder().start().await;
    let image = catalogs::image(&catalogs::files(&catalogs::folder("v1")));
    registry.push("demo", "latest", &image);
    let reference = registry.reference("demo", "latest");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("clustercatalogs.yaml");
    fs::write(&file, manifests(&reference, &reference)).unwrap();
    let store = folder.path().join("store").display().to_string();
    let arguments = [
        "--config",
        &file.display().to_string(),
        "--store",
        &store,
        "--plain-http",
        registry.host(),
    ];
    let polled = tokio::task::block_in_place(|| run(["poll", "--json"].iter().chain(&arguments)).exits(10));
    let reports: Value = serde_json::from_str(&polled.stdout).unwrap();
    assert!(
        reports
            .as_array()
            .unwrap()
            .iter()
            .all(|report| report["outcome"] == "published")
    );

    let server = Server::start(["serve", "--no-poll", "--store", &store]);
    let all = |name: &str| format!("{}/catalogs/{name}/api/v1/all", server.url);
    assert_eq!(http::get(&all("visible"), &[]).await.status(), 200);
    assert_eq!(http::get(&all("hidden"), &[]).await.status(), 404);

    // Made available again, it is served without being pulled again.
    fs::write(
        &file,
        manifests(&reference, &reference).replace("Unavailable", "Available"),
    )
    .unwrap();
    tokio::task::block_in_place(|| run(["poll"].iter().chain(&arguments)).exits(0));
    assert_eq!(http::get(&all("hidden"), &[]).await.status(), 200);
}

#[test]
fn a_catalog_that_leaves_the_configuration_stays_until_it_is_removed() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().display().to_string();
    let source = |name: &str| format!("{name}=oci:{}:v1", catalogs::example_layout().display());
    run([
        "poll",
        "--store",
        &store,
        "--catalog",
        &source("a"),
        "--catalog",
        &source("b"),
    ])
    .exits(10);
    run(["poll", "--store", &store, "--catalog", &source("b")]).exits(0);
    let listed = run(["ls", "--store", &store]).exits(0).stdout;
    assert!(
        listed.lines().any(|line| line.trim_start().starts_with("a ")),
        "{listed}"
    );
}

#[test]
fn limits_hold_for_the_image_and_for_the_catalog() {
    let folder = TempDir::new().unwrap();
    let (file, store) = (folder.path().join("catalogs.yaml"), folder.path().join("store"));
    let source = format!("oci:{}:v1", catalogs::example_layout().display());
    // One of the image, one of what is in it.
    for limit in ["pathBytes", "documents"] {
        let text = format!("limits: {{{limit}: 1}}\ncatalogs: [{{name: a, source: '{source}'}}]\n");
        fs::write(&file, text).unwrap();
        let (file, store) = (file.display().to_string(), store.display().to_string());
        let polled = run(["poll", "--json", "--config", &file, "--store", &store]).exits(1);
        assert!(
            polled.stdout.contains(&format!("the limit {limit} of 1")),
            "{polled:#?}"
        );
    }
}

#[test]
fn nothing_to_poll_and_a_missing_store_are_said() {
    assert!(run(["poll"]).exits(1).stderr.contains("--catalog"));
    let missing = run(["ls", "--store", "/nonexistent/store"]).exits(1);
    assert!(missing.stderr.contains("/nonexistent/store"), "{missing:#?}");
}
