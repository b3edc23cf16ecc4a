//! Commands for users of a mirror: `diff`, `upgrade`, `graph`, `bundle`, `images`, `manifests`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testkit::Registry;

use crate::support::{bundles, catalogs, work::Work};

/// Publishes both versions of the example into a new store.
fn both() -> Work {
    let work = Work::published();
    work.poll("v2").exits(0);
    work
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_prints_table_and_document_that_server_answers() {
    let work = both();
    let table = work.run("diff --store store demo").exits(10).stdout;
    for line in [
        "+ demo-vault bundle demo-vault.v0.1.0",
        "- demo-search channel alpha",
        "~ demo-database channel stable",
        "+ demo-database bundle demo-database.v1.3.0",
    ] {
        let words = |row: &str| row.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
        assert!(
            table.lines().any(|row| words(row) == line),
            "{line}: {table}"
        );
    }
    assert!(
        table.contains("1 packages added, 1 removed, 1 changed"),
        "{table}"
    );
    work.plays(
        "0 diff --store store demo current
         10 diff --store store demo 2 1
         1 diff --store store other
         1 diff --store store demo 9
         1 diff --store store demo abcdef0123
         1 diff --store store dir:a
         1 diff --store store dir:/none dir:/nothing",
    );
    let diff = |names: &str| {
        work.run(&format!("diff --json --store store {names}"))
            .exits(10)
            .json()
    };
    let by_default = diff("demo");
    let (from, to) = (
        by_default["from"].as_str().unwrap(),
        by_default["to"].as_str().unwrap(),
    );
    let [old, new] = ["v1", "v2"].map(|version| catalogs::folder(version).display().to_string());
    for names in [
        "demo 1 2",
        "demo previous current",
        &format!("demo {from} {to}"),
        &format!("demo {} {}", &from[..8], &to[..8]),
        &format!("dir:{old} dir:{new}"),
    ] {
        assert_eq!(diff(names), by_default, "{names}");
    }
    let served = work
        .serve("")
        .json(&format!("/catalogs/demo/changes?since={from}"))
        .await;
    assert_eq!(served, by_default);
}

#[test]
fn history_lists_states_with_changes_and_says_when_it_is_held_back() {
    let work = both();
    let states = || {
        work.run("history --store store --json demo")
            .exits(0)
            .json()
    };
    let changes = |at: usize| {
        let state = &states()[at];
        let [added, removed] =
            ["added", "removed"].map(|kind| state["changes"][kind].as_array().map(Vec::len));
        (
            state["serial"].as_u64(),
            added,
            removed,
            state["isHeldBack"].as_bool(),
        )
    };
    assert_eq!(changes(0), (Some(2), Some(1), Some(1), Some(false)));
    // The first state adds all.
    assert_eq!(changes(1), (Some(1), Some(4), Some(0), Some(false)));
    let first = states()[1]["contentHash"].as_str().unwrap().to_owned();
    work.plays(&format!(
        "0 history --store store demo
         > +1 -1 ~1
         - rolled back
         0 rollback --store store demo {}
         0 history --store store demo
         > published, rolled back
         0 ls --store store
         > demo: rolled back: it stays at this state
         1 history --store store other
         ! no catalog other",
        &first[..7]
    ));
    assert_eq!(changes(0), (Some(3), Some(1), Some(1), Some(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_and_graph_read_stores_mirrors_and_sources() {
    let work = both();
    let server = work.serve("");
    let source = format!("dir:{}", catalogs::folder("v2").display());
    let [url, missing] = ["demo", "demos"].map(|name| server.url(&format!("/catalogs/{name}")));
    let mut answers = Vec::new();
    for catalog in ["--store store demo", &url, &source] {
        let ways = work
            .run(&format!("upgrade --json {catalog} demo-cache 1.0.0"))
            .exits(0);
        let steps = ways.json()["channels"][0]["steps"].clone();
        let steps = steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["version"].clone());
        assert_eq!(steps.collect::<Vec<_>>(), ["1.0.1", "1.1.0"], "{catalog}");
        work.plays(&format!(
            "0 upgrade {catalog} demo-cache 1.0.0 1.1.0
             > 1.0.1 -> 1.1.0
             1 upgrade {catalog} demo-cache 1.1.0 1.0.0
             > no entry updates this version
             1 upgrade {catalog} demo-cach 1.0.0
             ! did you mean demo-cache?
             1 graph {catalog} demo-cache --channel no
             ! has no channel \"no\"
             0 graph {catalog} demo-cache --format mermaid
             > -- replace -->
             0 graph {catalog} demo-cache
             > * 1.1.0  demo-cache.v1.1.0  (head)"
        ));
        answers.push(work.run(&format!("graph {catalog} demo-cache")).stdout);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    work.plays(&format!(
        "1 upgrade {missing} demo-cache 1.0.0
         ! the origin has no catalog demos
         1 upgrade --store store demos demo-cache 1.0.0
         ! did you mean demo?"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_is_read_from_catalogs_images_and_folders() {
    let (work, registry) = (Work::new(), Registry::start().await);
    let host = registry.host();
    let mut catalog =
        String::from("{\"schema\":\"olm.package\",\"name\":\"etcd\",\"defaultChannel\":\"a\"}\n");
    catalog += r#"{"schema":"olm.channel","package":"etcd","name":"a","entries":[{"name":"etcd.v1"},{"name":"etcd.v2","replaces":"etcd.v1"}]}"#;
    for version in ["1", "2"] {
        let files = bundles::files(version);
        work.write_all(&format!("b{version}"), &files);
        let image = bundles::image(version);
        registry.push("etcd", version, &image);
        image.write_layout(&work.path(&format!("oci{version}")), None);
        let package = json!({"type": "olm.package", "value": {"packageName": "etcd", "version": format!("{version}.0.0")}});
        let objects = files
            .iter()
            .filter(|(file, _)| file.starts_with("manifests/"));
        let objects =
            objects.map(|(_, text)| json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(text)}}));
        let properties: Vec<Value> = objects.chain([package]).collect();
        let image = format!("{host}/etcd@{}", image.digest);
        let mut bundle = json!({"schema": "olm.bundle", "package": "etcd", "name": format!("etcd.v{version}"), "image": image, "properties": properties});
        catalog += &bundle.to_string();
        bundle["properties"] = json!([bundle["properties"].as_array().unwrap().last()]);
        bundle["package"] = "other".into();
        catalog += &bundle.to_string();
    }
    work.write_all(
        "configs",
        &vec![("catalog.json".to_owned(), catalog.into_bytes())],
    );
    work.run("poll --store store --catalog c=dir:configs")
        .exits(0);
    let server = work.serve("");
    let url = server.url("/catalogs/c");
    let mut answers = Vec::new();
    for bundles in [
        "dir:b1 dir:b2",
        "oci:oci1 oci:oci2",
        &format!("{host}/etcd:1 {host}/etcd:2"),
        "c/etcd.v1 c/etcd.v2",
        "c etcd 1.0.0 2.0.0",
        "dir:configs etcd 1.0.0 2.0.0",
        &format!("{url}/etcd.v1 {url}/etcd.v2"),
        &format!("{url} other 1.0.0 2.0.0"),
    ] {
        let options = format!("--json --store store --plain-http {host}");
        let answer = work
            .run(&format!("bundle diff {options} {bundles}"))
            .exits(0)
            .json();
        answers.push(["unsafe", "permissions", "crds"].map(|field| answer[field].clone()));
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    registry.push("catalog", "1", &catalogs::image(&catalogs::example("v1")));
    work.write("installed.txt", "etcd 1.0.0\n");
    work.plays(&format!(
        "1 bundle diff --check dir:b1 dir:b2
         > etcds.example.com v1 ^.spec.size maximum: maximum: 5 -> 3
         0 bundle diff dir:b1 dir:b2
         > + etcd may read secrets in all namespaces [secrets]
         1 bundle show --store store etcd
         ! cannot read the bundle etcd: write CATALOG/BUNDLE, an image reference
         1 bundle show --store store c/no.v1
         ! cannot read the bundle c/no.v1: the catalog has no bundle \"no.v1\"
         1 bundle diff --store store c etcd 0.0.7 1.0.0
         ! package etcd has no version and no bundle \"0.0.7\"
         1 bundle show --store store d/etcd.v1
         ! cannot read the bundle d/etcd.v1: the store has no catalog d
         1 bundle show dir:none
         ! cannot read the bundle dir:none: cannot read none
         1 bundle show --plain-http {host} {host}/catalog:1
         ! cannot read the bundle {host}/catalog:1
         ! it is a catalog and no bundle
         1 bundle show --plain-http {host} {host}/etcd:3
         ! cannot read the bundle {host}/etcd:3
         0 bundle show --store store c/etcd.v1
         > etcd.v1 (version 1.0.0)
         0 plan installed.txt --store store --from c --to c --bundles
         > etcd: 1.0.0 -> 2.0.0: unsafe changes: 1, gained permissions: 1"
    ));
    let plan = work.run("plan installed.txt --store store --from c --to c --bundles --json");
    let compared =
        json!([{"from": "1.0.0", "to": "2.0.0", "unsafeChanges": 1, "gainedPermissions": 1}]);
    assert_eq!(plan.exits(0).json()["operators"][0]["bundles"], compared);
}

#[test]
fn plan_reads_lists_and_prints_table_json_and_image_set() {
    let work = both();
    let [old, new] =
        ["v1", "v2"].map(|version| format!("dir:{}", catalogs::folder(version).display()));
    work.write(
        "installed.txt",
        "\u{feff}demo-cache 1.0.0\r\ndemo-search 0.1.0\r\n",
    );
    let plan = format!("plan installed.txt --from {old} --to {new} --on 2026-11-26");
    let document = work.run(&format!("{plan} --json")).exits(1).json();
    let row = |at: usize| &document["operators"][at];
    assert_eq!(
        [&row(0)["verdict"], &row(1)["verdict"]],
        ["either", "no-way"]
    );
    assert_eq!(row(0)["after"][1]["version"], "1.1.0");
    work.write("cache.txt", "demo-cache 1.0.0");
    work.plays(&format!(
        "1 {plan} --cluster 4.21
         > 2 operators: 0 stays, 0 cluster first, 0 operator first, 1 either, 1 no way; 0 without support
         1 {plan} --imageset
         > minVersion: \"1.0.1\"
         - name: demo-search
         ! notice: demo-search is left out: 
         0 plan cache.txt --store store --from demo --to demo
         > either
         1 plan none.txt --store store --from demo --to demo
         ! none.txt
         1 plan - --store store --from demo --to demo
         ! standard input: it has no Subscription
         1 plan cache.txt --store store --from demo --to demos
         ! did you mean demo?
         2 plan cache.txt --store store --from demo
         0 plan cache.txt --store store --from demo --to demo --cluster 4
         2 plan cache.txt --store store --from demo --to demo --on 2026-02-30"
    ));
}

/// Output of `kubectl get -A -o json` on a cluster with OLM v0, whose operator moves by itself.
const CLUSTER: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "s", "namespace": "team"},
     "spec": {"name": "p", "channel": "s", "source": "SOURCE", "installPlanApproval": "Automatic"}, "status": {"installedCSV": "p.v1.0.0"}},
    {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "p.v1.0.0", "namespace": "team"},
     "spec": {"version": "1.0.0"}},
    {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
     "metadata": {"name": "packageserver", "namespace": "olm", "labels": {"olm.version": "0.28.0"}}, "spec": {"version": "0.28.0"}},
    {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
     "metadata": {"name": "p.v1.1.0", "namespace": "other", "labels": {"operators.coreos.com/p.other": ""}}, "spec": {"version": "1.1.0"}},
    {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
     "metadata": {"name": "unknown.v1", "namespace": "other"}, "spec": {"version": "1.0.0"}}]}"#;

/// Writes FBC of one package whose second version is this one, for clusters of at most `max`.
fn write_two(work: &Work, folder: &str, second: &str, max: &str) {
    let bundle = |version: &str, max: &str| {
        let package =
            format!("{{type: olm.package, value: {{packageName: p, version: {version}}}}}");
        format!(
            "---\nschema: olm.bundle\npackage: p\nname: p.v{version}\nimage: r.example/p:{version}\nproperties: [{package}{max}]\n"
        )
    };
    let max = format!(", {{type: olm.maxOpenShiftVersion, value: \"{max}\"}}");
    let text = format!(
        "schema: olm.package\nname: p\ndefaultChannel: s\n---\nschema: olm.channel\npackage: p\nname: s\n\
         entries: [{{name: p.v1.0.0}}, {{name: p.v{second}, replaces: p.v1.0.0, skipRange: \"<{second}\"}}]\n{}{}",
        bundle("1.0.0", ""),
        bundle(second, &max)
    );
    work.write(&format!("{folder}/catalog.yaml"), text);
}

#[test]
fn plan_knows_what_a_cluster_has() {
    let work = Work::new();
    write_two(&work, "one", "1.1.0", "4.20");
    write_two(&work, "two", "1.2.0", "4.21");
    work.run("poll --store store --catalog one=dir:one --catalog two=dir:two")
        .exits(0);
    for source in ["one", "two", "cs-two-latest", "team"] {
        let file = format!("{source}.json");
        work.write(&file, CLUSTER.replace("SOURCE", source));
    }
    let both = "--store store --from one --from two --to one --to two --cluster 4.21";
    work.plays(&format!(
        "1 plan one.json {both}
         - packageserver
         > p: 1.1.0 stops the upgrade of the cluster: its olm.maxOpenShiftVersion is 4.20
         > p: set approval to Manual: 1.1.0 would stop the upgrade
         > unknown.v1: no Subscription, label or annotation names its package, and no catalog has its bundle
         > 3 operators: 0 stays, 1 cluster first, 0 operator first, 0 either, 2 no way
         1 plan two.json {both}
         > 1.2.0
         - Manual
         1 plan cs-two-latest.json {both}
         > 1.2.0
         - several catalogs
         1 plan team.json {both}
         > p: several catalogs have the package: one, two; one is taken: choose by --source team=CATALOG
         1 plan team.json {both} --source team=two
         - several catalogs have the package: one, two; one is taken: choose
         1 plan team.json {both} --source team=tow
         ! the catalog tow of team is none of those that the cluster uses
         2 plan team.json {both} --source team
         ! write the name of a CatalogSource and its catalog"
    ));
    let folder = work.path("one");
    let of_folder = format!("dir:{}", folder.display());
    let planned = work.run(&format!(
        "plan one.json --from {of_folder} --to {of_folder} --json"
    ));
    let document = planned.exits(1).json();
    assert_eq!(document["operators"][0]["catalog"], "dir:one");
    let names = ["source", "installPlanApproval"].map(|name| &document["operators"][0][name]);
    assert_eq!(names, ["one", "Automatic"]);
    work.write("olm.json", r#"{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "packageserver"}}"#);
    work.run("plan olm.json --store store --from one --to two")
        .exits(0)
        .prints("0 operators");
}

#[test]
fn graph_is_printed_as_json() {
    let work = Work::new();
    write_two(&work, "one", "1.1.0", "4.20");
    let graph = work.run("graph dir:one p --json").exits(0).json();
    let channel = &graph["channels"][0];
    assert_eq!(channel["name"], "s");
    assert_eq!(channel["isDefault"], true);
    let entry = &channel["entries"][1];
    assert_eq!(entry["replaces"], "p.v1.0.0");
    assert_eq!(entry["skipRange"], "<1.1.0");
    assert_eq!(entry["isHead"], true);
    work.run("graph dir:one p --json --format dot").exits(2);
}

#[test]
fn images_lists_each_image_once_with_its_bundles() {
    let work = both();
    let list = work.run("images --store store").exits(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines.is_sorted_by(|a, b| a < b) && !lines.is_empty(),
        "{list}"
    );
    let document = work
        .run("images --store store --format json")
        .exits(0)
        .json();
    let images = document["images"].as_array().unwrap();
    assert!(
        images
            .iter()
            .map(|image| image["image"].as_str().unwrap())
            .eq(lines)
    );
    let mut needs = images
        .iter()
        .map(|image| image["neededBy"].as_array().unwrap());
    assert!(needs.all(|needs| !needs.is_empty()));
}

#[test]
fn images_writes_files_for_skopeo_and_oc_mirror() {
    let work = both();
    let chosen = |format: &str| {
        let options = "--package demo-database --heads-only --format";
        work.run(&format!("images --store store {options} {format}"))
            .exits(0)
            .stdout
    };
    let bundle = "sha256:ddf7868d53d5cf3514dd3ce26c9a726dcc4b46cfb25b6ca596f02178e8e79aaa";
    let operator = "sha256:23ddb5304172ead57cfb63ff26147c801d1881ee8439b327e4ecbedb732d63a3";
    assert_eq!(
        chosen("skopeo-sync"),
        format!(
            "registry.example.com:\n  images:\n    demo/demo-database:\n    - {operator}\n    demo/demo-database-bundle:\n    - {bundle}\n"
        )
    );
    let expected = format!(
        "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: registry.example.com/demo/demo-database-bundle@{bundle}\n  - name: registry.example.com/demo/demo-database@{operator}\n"
    );
    assert_eq!(chosen("imageset"), expected);
}

/// Writes FBC of one package with the given bundle image and operator image to the folder `small`.
fn write_small(work: &Work, [bundle, operator]: [&str; 2]) {
    let text = format!(
        "schema: olm.package\nname: small\ndefaultChannel: fast\n---\nschema: olm.channel\npackage: small\nname: stable\nentries: [{{name: small.v1}}]\n---\nschema: olm.bundle\npackage: small\nname: small.v1\nimage: {bundle}\nrelatedImages: [{{name: operator, image: \"{operator}\"}}]\n"
    );
    work.write("small/catalog.yaml", text);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_check_names_image_missing_in_registry() {
    let registry = Registry::start().await;
    let image = bundles::image("1");
    registry.push("ns/bundle", "v1", &image);
    let there = format!("{}/ns/bundle@{}", registry.host(), image.digest);
    let gone = format!(
        "{}/ns/operator@{}",
        registry.host(),
        testkit::digest(b"gone")
    );
    let work = Work::new();
    write_small(&work, [&there, &gone]);
    work.run("poll --store store --catalog small=dir:small")
        .exits(0);
    let host = registry.host();
    let checked = work
        .run(&format!(
            "images --store store --check --plain-http {host} --format json"
        ))
        .exits(1);
    let images = &checked.json()["images"];
    assert_eq!([&images[0]["exists"], &images[1]["exists"]], [true, false]);
    checked.complains(&format!("missing: {gone}, needed by small.v1"));
    checked.complains("2 images: 1 there, 1 missing, 0 unknown");
}

/// Expects the digest that was polled, and another default channel where the original default is
/// left out.
#[tokio::test(flavor = "multi_thread")]
async fn images_imageset_pins_digest_of_polled_catalog() {
    let registry = Registry::start().await;
    let work = Work::new();
    write_small(&work, ["r.example/b:1", "r.example/o:1"]);
    let image = catalogs::image(&catalogs::files(&work.path("small")));
    registry.push("ns/cat", "v4.20", &image);
    let host = registry.host();
    work.poll_plain(host, &format!("{host}/ns/cat:v4.20"))
        .exits(10);
    let imageset = work
        .run("images --store store --channel stable --format imageset")
        .exits(0);
    let expected = format!(
        "  operators:\n  - catalog: {host}/ns/cat@{}\n    full: true\n    packages:\n    - channels:\n      - name: stable\n      defaultChannel: stable\n      name: small\n    targetTag: v4.20\n",
        image.digest
    );
    assert!(imageset.stdout.ends_with(&expected), "{}", imageset.stdout);
}

#[test]
fn manifests_point_clusters_at_mirror() {
    let work = both();
    let listed = work.run("ls --store store --json").exits(0).json();
    work.plays(&format!(
        "0 manifests --store store --url https://mirror.example:8443/
         > ref: mirror.example:8443/demo:latest
         > image: mirror.example:8443/demo:latest
         > name: cc-demo-latest
         > name: cs-demo-latest
         0 manifests --store store --url https://mirror.example --pin --kind clustercatalog
         > ref: mirror.example/demo@{}
         - pollInterval
         - CatalogSource
         1 manifests --store store --url https://mirror.example/path
         1 manifests --store store --url https://
         1 manifests --store store --url https://-
         0 manifests --store store --url http://mirror.example
         ! mirror.example speaks plain HTTP
         0 manifests --store store --images-at http://registry.example:5000 --kind registries-conf
         ! speaks plain HTTP
         0 manifests --store store --images-at registry.example --kind hosts-toml
         > # /etc/containerd/certs.d/registry.example.com/hosts.toml
         2 manifests --store store --images-at nowhere
         ! names no registry
         2 manifests --store store
         1 manifests --store store --url https://mirror.example --kind mirror-sets
         ! --images-at",
        listed[0]["image"].as_str().unwrap()
    ));
    let images =
        |options: &str| work.run(&format!("manifests --store store --images-at {options}"));
    images("registry.example/olm").prints(
        "imageDigestMirrors:\n  - mirrors:\n    - registry.example/olm/registry.example.com/demo\n    source: registry.example.com/demo\n",
    );
    images("http://registry.example:5000 --kind registries-conf").prints(
        "location = \"registry.example:5000/registry.example.com/demo\"\ninsecure = true\n",
    );
}
