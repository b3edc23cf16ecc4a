//! Commands for users of a mirror: `diff`, `images`, `manifests`.

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{ImageBuilder, Layer, Registry};

use crate::support::{
    binary::{Ran, Server, run},
    catalogs, http,
};

/// Publishes both versions of the example into a new store.
fn store() -> TempDir {
    let store = TempDir::new().unwrap();
    for version in ["v1", "v2"] {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        run(["poll", "--store", &path(&store), "--catalog", &source]).exits(0);
    }
    store
}

fn path(store: &TempDir) -> String {
    store.path().display().to_string()
}

fn over(store: &TempDir, command: &str, more: &[&str]) -> Ran {
    let store = path(store);
    let arguments = [command, "--store", &store].into_iter().chain(more.iter().copied());
    run(arguments)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn diff_prints_table_and_exits_with_10() {
    let store = store();
    let table = over(&store, "diff", &["demo"]).exits(10).stdout;
    for line in [
        ["+", "demo-vault", "bundle", "demo-vault.v0.1.0"],
        ["-", "demo-search", "channel", "alpha"],
        ["~", "demo-database", "channel", "stable"],
        ["+", "demo-database", "bundle", "demo-database.v1.3.0"],
    ] {
        let found = table.lines().any(|row| row.split_whitespace().take(4).eq(line));
        assert!(found, "{line:?}: {table}");
    }
    assert!(table.contains("1 packages added, 1 removed, 1 changed"), "{table}");
    over(&store, "diff", &["demo", "current"]).exits(0);
    over(&store, "diff", &["demo", "2", "1"]).exits(10);
    for wrong in [
        &["other"][..],
        &["demo", "9"],
        &["demo", "abcdef0123"],
        &["dir:a"],
        &["dir:/none", "dir:/nothing"],
    ] {
        over(&store, "diff", wrong).exits(1);
    }
}

#[test]
fn diff_accepts_all_names_of_states_and_sources() {
    let store = store();
    let by_default = json(&over(&store, "diff", &["demo", "--json"]).exits(10));
    let (from, to) = (by_default["from"].as_str().unwrap(), by_default["to"].as_str().unwrap());
    for names in [["1", "2"], ["previous", "current"], [from, to], [&from[..8], &to[..8]]] {
        let named = over(&store, "diff", &["demo", names[0], names[1], "--json"]).exits(10);
        assert_eq!(json(&named), by_default, "{names:?}");
    }
    let folders = ["v1", "v2"].map(|version| format!("dir:{}", catalogs::folder(version).display()));
    let sources = run(["diff", "--json", &folders[0], &folders[1]]).exits(10);
    assert_eq!(json(&sources), by_default);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_route_equals_diff_command() {
    let store = tokio::task::block_in_place(store);
    let diff = tokio::task::block_in_place(|| json(&over(&store, "diff", &["demo", "--json"]).exits(10)));
    let server = Server::start(["serve", "--no-poll", "--store", &path(&store)]);
    let since = diff["from"].as_str().unwrap();
    let url = format!("{}/catalogs/demo/changes?since={since}", server.url);
    let answer: Value = serde_json::from_slice(&http::body(&url).await).unwrap();
    assert_eq!(answer, diff);
    let etag = http::field(&http::get(&url, &[]).await, "etag");
    assert_eq!(http::get(&url, &[("if-none-match", &etag)]).await.status(), 304);
}

#[test]
fn images_lists_each_image_once_with_its_bundles() {
    let store = store();
    let list = over(&store, "images", &[]).exits(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len());
    assert!(lines.is_sorted() && !lines.is_empty(), "{list}");
    let document = json(&over(&store, "images", &["--format", "json"]).exits(0));
    let images = document["images"].as_array().unwrap();
    assert!(images.iter().map(|image| image["image"].as_str().unwrap()).eq(lines));
    assert!(
        images
            .iter()
            .all(|image| !image["neededBy"].as_array().unwrap().is_empty())
    );
    let heads = over(&store, "images", &["--package", "demo-database", "--heads-only"]).exits(0);
    assert_eq!(heads.stdout.lines().count(), 2, "{}", heads.stdout);
    for wrong in [["--package", "nobody"], ["--channel", "nowhere"]] {
        let refused = over(&store, "images", &wrong).exits(1);
        assert!(refused.stderr.contains(wrong[1]), "{}", refused.stderr);
    }
}

#[test]
fn images_writes_files_for_skopeo_and_oc_mirror() {
    let store = store();
    let chosen = ["--package", "demo-database", "--heads-only", "--format"];
    let skopeo = over(&store, "images", &[&chosen[..], &["skopeo-sync"]].concat()).exits(0);
    let bundle = "sha256:ddf7868d53d5cf3514dd3ce26c9a726dcc4b46cfb25b6ca596f02178e8e79aaa";
    let operator = "sha256:23ddb5304172ead57cfb63ff26147c801d1881ee8439b327e4ecbedb732d63a3";
    assert_eq!(
        skopeo.stdout,
        format!(
            "registry.example.com:\n  images:\n    demo/demo-database:\n    - {operator}\n    demo/demo-database-bundle:\n    - {bundle}\n"
        )
    );
    let imageset = over(&store, "images", &[&chosen[..], &["imageset"]].concat()).exits(0);
    assert_eq!(
        imageset.stdout,
        format!(
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: registry.example.com/demo/demo-database-bundle@{bundle}\n  - name: registry.example.com/demo/demo-database@{operator}\n"
        )
    );
}

/// Writes FBC of one package with the given bundle image and operator image.
fn small_catalog(images: [&str; 2]) -> TempDir {
    let [bundle, operator] = images;
    let folder = TempDir::new().unwrap();
    let text = format!(
        "schema: olm.package\nname: small\ndefaultChannel: fast\n---\nschema: olm.channel\npackage: small\nname: stable\nentries: [{{name: small.v1}}]\n---\nschema: olm.bundle\npackage: small\nname: small.v1\nimage: {bundle}\nrelatedImages: [{{name: operator, image: \"{operator}\"}}]\n"
    );
    fs::write(folder.path().join("catalog.yaml"), text).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn images_check_names_image_missing_in_registry() {
    let registry = Registry::start().await;
    let image = ImageBuilder::catalog("/configs")
        .layer(Layer::new().file("a", "a"))
        .build();
    registry.push("ns/bundle", "v1", &image);
    let there = format!("{}/ns/bundle@{}", registry.host(), image.digest);
    let gone = format!("{}/ns/operator@{}", registry.host(), testkit::digest(b"gone"));
    let store = TempDir::new().unwrap();
    let checked = tokio::task::block_in_place(|| {
        let folder = small_catalog([&there, &gone]);
        let source = format!("small=dir:{}", folder.path().display());
        run(["poll", "--store", &path(&store), "--catalog", &source]).exits(0);
        let options = ["--check", "--plain-http", registry.host(), "--format", "json"];
        over(&store, "images", &options).exits(1)
    });
    let exists: Vec<Value> = json(&checked)["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["exists"].clone())
        .collect();
    assert_eq!(exists, [Value::Bool(true), Value::Bool(false)]);
    let expected = format!("missing: {gone}, needed by small.v1");
    assert!(checked.stderr.contains(&expected), "{}", checked.stderr);
}

/// Expects the digest that was polled, and another default channel where the original default is left out.
#[tokio::test(flavor = "multi_thread")]
async fn images_imageset_pins_digest_of_polled_catalog() {
    let registry = Registry::start().await;
    let folder = small_catalog(["r.example/b:1", "r.example/o:1"]);
    let image = catalogs::image(&catalogs::files(folder.path()));
    registry.push("ns/cat", "v4.20", &image);
    let store = TempDir::new().unwrap();
    let imageset = tokio::task::block_in_place(|| {
        let source = format!("small={}/ns/cat:v4.20", registry.host());
        let poll = [
            "poll",
            "--store",
            &path(&store),
            "--plain-http",
            registry.host(),
            "--catalog",
            &source,
        ];
        run(poll).exits(0);
        over(&store, "images", &["--channel", "stable", "--format", "imageset"]).exits(0)
    });
    let expected = format!(
        "  operators:\n  - catalog: {}/ns/cat@{}\n    targetTag: v4.20\n    full: true\n    packages:\n    - name: small\n      defaultChannel: stable\n      channels:\n      - name: stable\n",
        registry.host(),
        image.digest
    );
    assert!(imageset.stdout.ends_with(&expected), "{}", imageset.stdout);
}

#[test]
fn manifests_point_clusters_at_mirror() {
    let store = store();
    let both = over(&store, "manifests", &["--url", "https://mirror.example:8443/"])
        .exits(0)
        .stdout;
    for part in [
        "kind: ClusterCatalog\n",
        "kind: CatalogSource\n",
        "name: cc-demo-latest\n",
        "name: cs-demo-latest\n",
    ] {
        assert!(both.contains(part), "{part}: {both}");
    }
    assert_eq!(both.matches("mirror.example:8443/demo:latest").count(), 2, "{both}");
    let pinned = over(
        &store,
        "manifests",
        &["--url", "https://mirror.example", "--pin", "--kind", "clustercatalog"],
    );
    let pinned = pinned.exits(0).stdout;
    let listed = json(&over(&store, "ls", &["--json"]).exits(0));
    let digest = listed[0]["image"].as_str().unwrap();
    assert!(
        pinned.contains(&format!("ref: mirror.example/demo@{digest}\n")),
        "{pinned}"
    );
    assert!(
        !pinned.contains("pollInterval") && !pinned.contains("CatalogSource"),
        "{pinned}"
    );
    for wrong in ["mirror.example", "https://mirror.example/path", "https://", "https://-"] {
        over(&store, "manifests", &["--url", wrong]).exits(1);
    }
}
