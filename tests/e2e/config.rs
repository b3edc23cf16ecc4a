//! Configuration files, read by the binary.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Server, run},
    catalogs::{self, write},
    http,
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
fn config_problems_are_reported_together() {
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

/// Returns manifests in the form that `kubectl get clustercatalogs -o yaml` prints.
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
async fn config_accepts_cluster_catalogs_and_hides_unavailable_ones() {
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
    let polled = tokio::task::block_in_place(|| run(["poll", "--json"].iter().chain(&arguments)).exits(0));
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

    // A catalog that is made available again is served without another pull.
    fs::write(
        &file,
        manifests(&reference, &reference).replace("Unavailable", "Available"),
    )
    .unwrap();
    tokio::task::block_in_place(|| run(["poll"].iter().chain(&arguments)).exits(0));
    assert_eq!(http::get(&all("hidden"), &[]).await.status(), 200);
}

#[test]
fn catalog_removed_from_config_is_served_until_rm() {
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
    .exits(0);
    run(["poll", "--store", &store, "--catalog", &source("b")]).exits(0);
    let listed = run(["ls", "--store", &store]).exits(0).stdout;
    assert!(
        listed.lines().any(|line| line.trim_start().starts_with("a ")),
        "{listed}"
    );
}

#[test]
fn limits_in_config_bound_image_and_catalog() {
    let folder = TempDir::new().unwrap();
    let (file, store) = (folder.path().join("catalogs.yaml"), folder.path().join("store"));
    let source = format!("oci:{}:v1", catalogs::example_layout().display());
    // One limit of the image and one of its content.
    for limit in ["pathBytes", "documents"] {
        // The second catalog has a limit of its own.
        let text = format!(
            "limits: {{{limit}: 1}}\ncatalogs: [{{name: a, source: '{source}'}}, \
             {{name: b, source: '{source}', limits: {{{limit}: 4096}}}}]\n"
        );
        fs::write(&file, text).unwrap();
        let (file, store) = (file.display().to_string(), store.display().to_string());
        let polled = run(["poll", "--json", "--config", &file, "--store", &store]).exits(1);
        assert!(
            polled.stdout.contains(&format!("the limit {limit} of 1")),
            "{polled:#?}"
        );
        assert!(
            polled
                .stdout
                .contains(&format!("a larger limits.{limit} of the catalog")),
            "{polled:#?}"
        );
        let published = |name: &str| {
            Path::new(&store)
                .join("catalogs")
                .join(name)
                .join("current.json")
                .exists()
        };
        assert!(published("b") && !published("a"));
        fs::remove_dir_all(&store).unwrap();
    }
}

#[test]
fn poll_without_catalog_names_what_is_missing() {
    assert!(run(["poll"]).exits(1).stderr.contains("--catalog"));
}

/// Flags and the file share their parsers: a value is valid in both or in neither.
#[test]
fn flag_values_are_those_of_the_file() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store").display().to_string();
    let file = folder.path().join("catalogs.yaml");
    let source = format!("a=oci:{}:v1", catalogs::example_layout().display());
    for interval in ["0s", "999ms", "400d", "soon"] {
        run(["poll", "--store", &store, "--catalog", &source, "--interval", interval]).exits(2);
        run(["sync", &store, &store, &format!("--watch={interval}")]).exits(2);
        fs::write(&file, format!("interval: {interval}\n")).unwrap();
        let failed = run(["poll", "--store", &store, "--config", &file.display().to_string()]).exits(1);
        assert!(failed.stderr.contains("catalogs.yaml, interval: "), "{failed:#?}");
    }
    run(["poll", "--store", &store, "--catalog", &source, "--interval", "1s"]).exits(0);
    let to = folder.path().join("a.tar").display().to_string();
    run(["export", "--store", &store, "--to", &to, "--volume-size", "700MB"]).exits(0);
    run([
        "export",
        "--store",
        &store,
        "--to",
        &to,
        "--volume-size",
        "99999999999GiB",
    ])
    .exits(2);
    fs::write(&file, "limits: {compressedBytes: 700MB}\n").unwrap();
    run([
        "gc",
        "--store",
        &store,
        "--config",
        &file.display().to_string(),
        "--dry-run",
    ])
    .exits(0);
    run(["gc", "--store", &store, "--keep-generations", "17"]).exits(2);
    run([
        "serve",
        "--no-poll",
        "--store",
        &store,
        "--cache-size",
        "99999999999999999",
    ])
    .exits(2);
}

/// An unmounted volume must not look like an empty store that is fine.
#[test]
fn maintenance_does_not_create_a_store() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("missing");
    let path = store.display().to_string();
    for arguments in [
        &["gc"][..],
        &["gc", "--dry-run"],
        &["rm", "a"],
        &["rollback", "a", "--previous"],
        &["verify"],
        &["verify", "--repair-from", "/nonexistent"],
        &["ls"],
    ] {
        let failed = run(arguments.iter().chain(&["--store", &path])).exits(1);
        assert!(failed.stderr.contains(&path), "{arguments:?}: {failed:#?}");
        assert!(!store.exists(), "{arguments:?}");
    }
}

#[test]
fn store_of_the_configuration_is_used_by_every_command() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store").display().to_string();
    let file = folder.path().join("catalogs.yaml");
    let source = format!("oci:{}:v1", catalogs::example_layout().display());
    fs::write(
        &file,
        format!("store: {store}\ncatalogs: [{{name: a, source: '{source}'}}]\n"),
    )
    .unwrap();
    let config = file.display().to_string();
    run(["poll", "--config", &config]).exits(0);
    assert!(run(["ls", "--config", &config]).exits(0).stdout.contains(&source));
    run(["verify", "--config", &config]).exits(0);
    run(["images", "--config", &config]).exits(0);
    run(["rm", "--config", &config, "a"]).exits(0);
    // A mistake in a file does not matter where the command line names the store.
    fs::write(&file, "interval: soon\n").unwrap();
    run(["ls", "--config", &config, "--store", &store]).exits(0);
    assert!(run(["ls", "--config", &config]).exits(1).stderr.contains("interval"));
}

/// Nothing listens before everything is checked, and each message names its field.
#[test]
fn serve_reports_unusable_files_before_it_listens() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store").display().to_string();
    let file = folder.path().join("catalogs.yaml");
    let source = format!("oci:{}:v1", catalogs::example_layout().display());
    for (text, part) in [
        ("registries: {authFiles: [/none]}", "authFiles, /none: cannot be read"),
        ("registries: {caFiles: [/none]}", "caFiles, /none: cannot be read"),
        ("trust: {keys: []}", "trust: keys is empty"),
        ("store: ''", "store"),
    ] {
        fs::write(&file, format!("{text}\ncatalogs: [{{name: a, source: '{source}'}}]\n")).unwrap();
        let config = file.display().to_string();
        let serve = ["-v", "serve", "--listen", "127.0.0.1:0", "--config", &config];
        let store = if text.starts_with("store") {
            vec![]
        } else {
            vec!["--store", &store]
        };
        let failed = run(serve.iter().chain(&store)).exits(1);
        assert!(failed.stderr.contains(part), "{part}: {failed:#?}");
        assert!(!failed.stderr.contains("listening"), "{failed:#?}");
    }
}

#[test]
fn configured_compositions_are_polled_listed_and_protected() {
    let folder = TempDir::new().unwrap();
    let layout = catalogs::example_layout().display().to_string();
    let isc = "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: demo
    targetCatalog: caches
    packages: [{name: demo-cache}]
";
    let isc = write(&folder, "isc.yaml", isc);
    let bundle = r#"{"schema":"olm.package","name":"mine","defaultChannel":"c"}
{"schema":"olm.channel","package":"mine","name":"c","entries":[{"name":"mine.v1.0.0"}]}
{"schema":"olm.bundle","package":"mine","name":"mine.v1.0.0","image":"r.example/mine:1","properties":[{"type":"olm.package","value":{"packageName":"mine","version":"1.0.0"}}]}
"#;
    write(&folder, "mine/catalog.json", bundle);
    let mine = folder.path().join("mine").display().to_string();
    let text = format!(
        "catalogs:
- {{name: demo, source: 'oci:{layout}:v1'}}
- name: team
  compose:
    inputs: [{{catalog: demo, select: {{packages: [{{name: demo-queue}}]}}}}]
    add: [{{source: 'dir:{mine}'}}]
- {{compose: {{imageSet: '{isc}'}}}}
"
    );
    let config = write(&folder, "catalogs.yaml", &text);
    let store = folder.path().join("store").display().to_string();
    run(["poll", "--store", &store, "--config", &config]).exits(0);
    let list = run(["ls", "--store", &store, "team"]).exits(0).stdout;
    assert!(list.contains("demo-queue") && list.contains("mine"), "{list}");
    let list = run(["ls", "--store", &store]).exits(0).stdout;
    assert!(list.contains("caches") && list.contains("compose:demo"), "{list}");

    let refused = run(["rm", "--store", &store, "demo"]).exits(1);
    assert!(
        refused.stderr.contains("compositions are made of it: caches, team"),
        "{refused:#?}"
    );
    run(["rm", "--store", &store, "--force", "demo"]).exits(0);
    run(["rm", "--store", &store, "caches"]).exits(0);
}
