//! `catalog-mirror compose`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{binary::run, catalogs};

/// Returns a folder with a store, to which the example catalog is published as `demo`.
fn site() -> TempDir {
    let site = TempDir::new().unwrap();
    let store = site.path().join("store").display().to_string();
    let source = format!("demo=oci:{}:v1", catalogs::example_layout().display());
    run(["poll", "--store", &store, "--catalog", &source]).exits(0);
    site
}

/// Composes a file of the site, whose text this is.
fn compose(site: &TempDir, text: &str, more: &[&str]) -> crate::support::binary::Ran {
    let file = site.path().join("compose.yaml");
    fs::write(&file, text).unwrap();
    let [store, file] = [site.path().join("store"), file].map(|path| path.display().to_string());
    run(["compose", "--store", &store, &file].iter().chain(more))
}

fn bundles(lines: &str) -> Vec<String> {
    let metas = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let bundles = metas.filter(|meta| meta["schema"] == "olm.bundle");
    bundles.map(|meta| meta["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn compose_prints_selected_lines_of_stores_folders_and_layouts() {
    let site = site();
    let rendered = run(["render", &format!("oci:{}:v1", catalogs::example_layout().display())])
        .exits(0)
        .stdout;
    let whole = compose(&site, "inputs: [{catalog: demo}]", &[]).exits(0);
    assert_eq!(whole.stdout, rendered);
    let heads = "inputs: [{catalog: demo, select: {packages: [{name: demo-cache}, {name: demo-queue}]}}]";
    let heads = compose(&site, heads, &[]).exits(0);
    assert_eq!(bundles(&heads.stdout), ["demo-cache.v1.1.0", "demo-queue.v2.1.0"]);
    assert!(
        heads
            .stdout
            .lines()
            .all(|line| line.contains("olm.channel") || rendered.contains(line))
    );

    // A folder beside the file, with the result of the first composition and one more bundle.
    fs::create_dir(site.path().join("mine")).unwrap();
    fs::write(site.path().join("mine/heads.jsonl"), &heads.stdout).unwrap();
    fs::create_dir(site.path().join("more")).unwrap();
    let bundle = r#"{"image":"r.example/c:2","name":"demo-cache.v2.0.0","package":"demo-cache","properties":[{"type":"olm.package","value":{"packageName":"demo-cache","version":"2.0.0"}}],"schema":"olm.bundle"}"#;
    let entry = r#"{"entries":[{"name":"demo-cache.v2.0.0","replaces":"demo-cache.v1.1.0"}],"name":"stable","package":"demo-cache","schema":"olm.channel"}"#;
    fs::write(site.path().join("more/cache.json"), format!("{bundle}\n{entry}\n")).unwrap();
    let more = "inputs: [{source: 'dir:mine'}]\nadd: [{source: 'dir:more'}]\nremove: [{package: demo-queue}]";
    let more = compose(&site, more, &[]).exits(0);
    assert_eq!(bundles(&more.stdout), ["demo-cache.v1.1.0", "demo-cache.v2.0.0"]);

    let pin: Value =
        serde_json::from_slice(&fs::read(site.path().join("store/catalogs/demo/current.json")).unwrap()).unwrap();
    let pinned = format!("inputs: [{{catalog: 'demo@{}'}}]", pin["contentHash"].as_str().unwrap());
    assert_eq!(compose(&site, &pinned, &[]).exits(0).stdout, rendered);
}

#[test]
fn compose_image_set_takes_one_entry() {
    let site = site();
    let layout = catalogs::example_layout().display().to_string();
    let text = format!(
        "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  platform: {{graph: true}}
  operators:
  - catalog: demo
    packages: [{{name: demo-database, minVersion: 1.0.0}}]
  - catalog: oci://{layout}:v1
    targetCatalog: layout
    packages: [{{name: demo-cache}}]
"
    );
    let database = compose(&site, &text, &["--entry", "demo-latest"]).exits(0);
    assert_eq!(
        bundles(&database.stdout),
        ["demo-database.v1.0.0", "demo-database.v1.2.0"]
    );
    assert_eq!(database.stderr, "notice: not used by the mirror: platform\n");
    let cache = compose(&site, &text, &["--entry", "layout"]).exits(0);
    assert_eq!(bundles(&cache.stdout), ["demo-cache.v1.1.0"]);
    let failed = compose(&site, &text, &[]).exits(1);
    assert!(
        failed.stderr.contains("choose one of demo-latest, layout"),
        "{failed:#?}"
    );
}

#[test]
fn compose_explains_every_bundle() {
    let site = site();
    let text = "kind: FilterConfiguration
apiVersion: olm.operatorframework.io/filter/mirror/v1alpha1
packages: [{name: demo-cache, channels: [{name: stable, versionRange: '>=1.0.1'}]}]
";
    let table = compose(&site, text, &["--catalog", "demo", "--explain"])
        .exits(0)
        .stdout;
    for line in [
        "- demo-cache demo-cache.v1.0.0 1.0.0 outside of the range >=1.0.1 of stable",
        "+ demo-cache demo-cache.v1.1.0 1.1.0 in the range >=1.0.1 of stable",
        "- demo-queue not selected from demo",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(table.lines().any(|printed| words(printed) == line), "{table}");
    }
    let json = compose(&site, text, &["--catalog", "demo", "--explain", "--json"])
        .exits(0)
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(
        json.as_array()
            .unwrap()
            .iter()
            .any(|decision| decision["bundle"] == "demo-cache.v1.0.1")
    );
}

#[test]
fn compose_wrong_exits_with_1_or_2() {
    let site = site();
    for (text, more, expected) in [
        (
            "inputs: [{catalog: nope}]",
            &[][..],
            "input nope: the store has no such catalog",
        ),
        (
            "inputs: [{catalog: demo}]",
            &["--entry", "x"],
            "--entry is for ImageSetConfigurations",
        ),
        (
            "inputs: [{catalog: demo}]\nadd: [{source: 'dir:nope'}]",
            &[],
            "add dir:nope: cannot pull the catalog: ",
        ),
        (
            "inputs: [{source: 'dir:nope'}]",
            &[],
            "input dir:nope: cannot pull the catalog: ",
        ),
        ("input: []", &[], "line 1: "),
        (
            "inputs: [{catalog: demo, select: {packages: [{name: demo-cache, minVersion: 7.0.0}]}}]",
            &[],
            "input demo: package demo-cache: versions >=7.0.0 takes no bundle",
        ),
    ] {
        let failed = compose(&site, text, more).exits(1);
        assert!(failed.stderr.contains(expected), "{failed:#?}");
        assert_eq!(
            (failed.stderr.lines().count(), failed.stdout.as_str()),
            (1, ""),
            "{failed:#?}"
        );
    }
    compose(&site, "inputs: []", &["--json"]).exits(2);
    run(["compose"]).exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_image_is_that_of_the_mirror_in_layout_and_registry() {
    let site = site();
    let text = "inputs: [{catalog: demo, select: {packages: [{name: demo-cache}, {name: demo-queue}]}}]";
    let layout = site.path().join("layout").display().to_string();
    let target = format!("oci:{layout}:v1");
    let written = compose(&site, text, &["--image", &target]).exits(0).stdout;
    let lines = compose(&site, text, &[]).exits(0).stdout;
    assert_eq!(run(["render", &target]).exits(0).stdout, lines);

    // The whole catalog has the image that the mirror serves for it, and both are in the layout.
    let whole = compose(
        &site,
        "inputs: [{catalog: demo}]",
        &["--image", &format!("oci:{layout}:whole")],
    )
    .exits(0);
    let current = fs::read(site.path().join("store/catalogs/demo/current.json")).unwrap();
    let current: Value = serde_json::from_slice(&current).unwrap();
    let hex = whole.stdout.trim().strip_prefix("sha256:").unwrap();
    assert!(current["image"].to_string().contains(hex), "{whole:#?} {current}");
    assert_eq!(run(["render", &target]).exits(0).stdout, lines);

    let registry = testkit::Registry::builder().bearer("pusher", "s3cret").start().await;
    let reference = registry.reference("team/catalog", "v1");
    let auth = site.path().join("auth.json");
    let login = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "pusher:s3cret");
    fs::write(
        &auth,
        format!(r#"{{"auths": {{"{}": {{"auth": "{login}"}}}}}}"#, registry.host()),
    )
    .unwrap();
    let auth = auth.display().to_string();
    let options = [
        "--image",
        &reference,
        "--plain-http",
        registry.host(),
        "--auth-file",
        &auth,
    ];
    assert_eq!(compose(&site, text, &options).exits(0).stdout, written);
    let pull = [
        "render",
        &reference,
        "--plain-http",
        registry.host(),
        "--auth-file",
        &auth,
    ];
    assert_eq!(run(pull).exits(0).stdout, lines);
    let again = compose(&site, text, &options).exits(0);
    assert!(again.stderr.contains("nothing was pushed"), "{again:#?}");
    let scopes = registry.requests();
    let scopes = scopes.iter().filter(|request| request.kind == testkit::Kind::Token);
    let scopes = scopes.map(|request| request.query.clone()).collect::<Vec<_>>();
    assert!(
        scopes.iter().any(|query| query.contains("%3Apull%2Cpush")),
        "{scopes:?}"
    );
    fs::write(&auth, "{}").unwrap();
    let refused = compose(&site, text, &options).exits(1);
    assert!(refused.stderr.contains(registry.host()), "{refused:#?}");
}
