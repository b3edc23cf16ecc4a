//! `catalog-mirror compose`.

use serde_json::Value;

use crate::support::{binary::Ran, catalogs, work::Work};

/// Composes a file of this text.
fn compose(work: &Work, text: &str, more: &str) -> Ran {
    work.write("compose.yaml", text);
    work.run(&format!("compose --store store compose.yaml {more}"))
}

fn bundles(lines: &str) -> Vec<String> {
    let metas = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let bundles = metas.filter(|meta| meta["schema"] == "olm.bundle");
    bundles
        .map(|meta| meta["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn compose_prints_selected_lines_of_stores_folders_and_layouts() {
    let work = Work::published();
    let rendered = work.run("render oci:example:v1").exits(0).stdout;
    let heads =
        "inputs: [{catalog: demo, select: {packages: [{name: demo-cache}, {name: demo-queue}]}}]";
    let heads = compose(&work, heads, "").exits(0).stdout;
    assert_eq!(bundles(&heads), ["demo-cache.v1.1.0", "demo-queue.v2.1.0"]);

    // A folder beside the file, with the result of the first composition and one more bundle.
    work.write("mine/heads.jsonl", &heads);
    let bundle = r#"{"image":"r.example/c:2","name":"demo-cache.v2.0.0","package":"demo-cache","properties":[{"type":"olm.package","value":{"packageName":"demo-cache","version":"2.0.0"}}],"schema":"olm.bundle"}"#;
    let entry = r#"{"entries":[{"name":"demo-cache.v2.0.0","replaces":"demo-cache.v1.1.0"}],"name":"stable","package":"demo-cache","schema":"olm.channel"}"#;
    work.write("more/cache.json", format!("{bundle}\n{entry}\n"));
    let more = "inputs: [{source: 'dir:mine'}]\nadd: [{source: 'dir:more'}]\nremove: [{package: demo-queue}]";
    let more = compose(&work, more, "").exits(0);
    assert_eq!(
        bundles(&more.stdout),
        ["demo-cache.v1.1.0", "demo-cache.v2.0.0"]
    );

    let pin = work.json("store/catalogs/demo/current.json");
    let pinned = format!(
        "inputs: [{{catalog: 'demo@{}'}}]",
        pin["contentHash"].as_str().unwrap()
    );
    assert_eq!(compose(&work, &pinned, "").exits(0).stdout, rendered);
}

#[test]
fn compose_image_set_takes_one_entry() {
    let work = Work::published();
    let layout = work.path("example").display().to_string();
    let text = format!(
        "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  platform: {{graph: true}}
  operators:
  - catalog: demo
  - catalog: oci://{layout}:v1
    targetCatalog: layout
    packages: [{{name: demo-cache}}]
"
    );
    let cache = compose(&work, &text, "--entry layout").exits(0);
    assert_eq!(bundles(&cache.stdout), ["demo-cache.v1.1.0"]);
    assert_eq!(cache.stderr, "notice: not used by the mirror: platform\n");
    let several = compose(&work, &text, "").exits(1);
    several.complains("choose one of demo-latest, layout");
}

#[test]
fn compose_explains_every_bundle() {
    let work = Work::published();
    let text = "kind: FilterConfiguration
apiVersion: olm.operatorframework.io/filter/mirror/v1alpha1
packages: [{name: demo-cache, channels: [{name: stable, versionRange: '>=1.0.1'}]}]
";
    let table = compose(&work, text, "--catalog demo --explain")
        .exits(0)
        .stdout;
    let lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    // What the file does not name is one row.
    let expected = [
        "PACKAGE BUNDLE VERSION REASON",
        "- demo-cache demo-cache.v1.0.0 1.0.0 outside of the range >=1.0.1 of stable",
        "+ demo-cache demo-cache.v1.0.1 1.0.1 in the range >=1.0.1 of stable",
        "+ demo-cache demo-cache.v1.1.0 1.1.0 in the range >=1.0.1 of stable",
        "- (3 packages) not selected from demo",
        "in: packages 1, bundles 2; out: bundles 1, whole packages 3",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    let json = compose(&work, text, "--catalog demo --explain --json")
        .exits(0)
        .json();
    let mut decisions = json.as_array().unwrap().iter();
    assert!(decisions.any(|decision| decision["bundle"] == "demo-cache.v1.0.1"));
}

#[test]
fn compose_wrong_exits_with_1_or_2() {
    let work = Work::published();
    let rows = "
        inputs: [{catalog: nope}] # input nope: the store has no such catalog
        {inputs: [{catalog: demo}], add: [{source: 'dir:nope'}]} # add dir:nope: cannot pull the catalog:
        input: [] # line 1:
        inputs: [{catalog: demo, select: {packages: [{name: demo-cache, minVersion: 7.0.0}]}}] # versions >=7.0.0 takes no bundle";
    for (text, expected) in rows.lines().filter_map(|row| row.trim().split_once(" # ")) {
        let failed = compose(&work, text, "").exits(1);
        failed.complains(expected);
        let lines = failed.stderr.lines().count();
        assert_eq!((lines, &*failed.stdout), (1, ""), "{failed:#?}");
    }
    work.plays("1 compose --store store compose.yaml --entry x\n! --entry is for ImageSetConfigurations\n2 compose");
    compose(&work, "inputs: []", "--json").exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn compose_image_is_that_of_the_mirror_in_layout_and_registry() {
    let work = Work::published();
    let text =
        "inputs: [{catalog: demo, select: {packages: [{name: demo-cache}, {name: demo-queue}]}}]";
    let written = compose(&work, text, "--image oci:layout:v1")
        .exits(0)
        .stdout;
    let lines = compose(&work, text, "").exits(0).stdout;
    assert_eq!(work.run("render oci:layout:v1").exits(0).stdout, lines);

    // The whole catalog has the image that the mirror serves for it, and both are in the layout.
    let whole = compose(
        &work,
        "inputs: [{catalog: demo}]",
        "--image oci:layout:whole",
    )
    .exits(0);
    let current = work.json("store/catalogs/demo/current.json");
    let hex = whole.stdout.trim().strip_prefix("sha256:").unwrap();
    assert!(
        current["image"].to_string().contains(hex),
        "{whole:#?} {current}"
    );
    assert_eq!(work.run("render oci:layout:v1").exits(0).stdout, lines);

    let registry = testkit::Registry::builder()
        .bearer("pusher", "s3cret")
        .start()
        .await;
    let reference = registry.reference("team/catalog", "v1");
    let host = registry.host();
    let login = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "pusher:s3cret");
    work.write(
        "auth.json",
        format!(r#"{{"auths": {{"{host}": {{"auth": "{login}"}}}}}}"#),
    );
    let access = format!("--plain-http {host} --auth-file auth.json");
    let push = format!("--image {reference} {access}");
    assert_eq!(compose(&work, text, &push).exits(0).stdout, written);
    let pulled = work.run(&format!("render {reference} {access}")).exits(0);
    assert_eq!(pulled.stdout, lines);
    compose(&work, text, &push)
        .exits(0)
        .complains("nothing was pushed");
    let requests = registry.requests();
    let mut queries = requests.iter().map(|request| &request.query);
    assert!(
        queries.any(|query| query.contains("%3Apull%2Cpush")),
        "{requests:?}"
    );
}

#[test]
fn diff_shows_what_is_held_of_a_composition() {
    let work = Work::new();
    let config = "
catalogs:
- {name: base, source: 'dir:configs', hold: off}
- {name: team, hold: [bundle], compose: {inputs: [{catalog: base, select: {packages: [{name: p1, full: true}]}}]}}
";
    work.write("catalogs.yaml", config);
    let files = [catalogs::package("p1", 2), catalogs::package("p2", 1)];
    work.write_all("configs", &files.to_vec());
    work.run("poll --config catalogs.yaml --store store")
        .exits(0);
    let (path, text) = &files[0];
    let text = String::from_utf8(text.clone()).unwrap();
    let moved = text.replace("\"image\":\"", "\"image\":\"moved.example/");
    assert_ne!(moved, text);
    work.write(&format!("configs/{path}"), moved);
    work.plays(
        "1 poll --config catalogs.yaml --store store
         > refused
         1 diff --held team --store store
         ! name the file that configures it with --config
         10 diff --held team --config catalogs.yaml --store store
         > p1",
    );
}
