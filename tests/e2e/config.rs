//! Configuration files, read by the binary.

use crate::support::{binary::Ran, catalogs, work::Work};

#[tokio::test(flavor = "multi_thread")]
async fn config_accepts_cluster_catalogs_and_hides_unavailable_ones() {
    let registry = testkit::Registry::builder().start().await;
    registry.push("demo", "latest", &catalogs::image(&catalogs::example("v1")));
    let (host, reference) = (registry.host(), registry.reference("demo", "latest"));
    // In the form that `kubectl get clustercatalogs -o yaml` prints.
    let manifests = format!(
        "apiVersion: v1
kind: List
items:
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {{name: demo, generation: 2, labels: {{olm.operatorframework.io/metadata.name: demo}}}}
  spec:
    availabilityMode: Unavailable
    priority: -100
    source: {{type: Image, image: {{ref: '{reference}', pollIntervalMinutes: 10}}}}
  status: {{conditions: []}}
"
    );
    let work = Work::new();
    work.write("catalogs.yaml", &manifests);
    let poll = format!("0 poll --config catalogs.yaml --store store --plain-http {host}");
    work.plays(&format!("{poll}\n> published"));
    let server = work.serve("");
    assert_eq!(server.status("/catalogs/demo/api/v1/all").await, 404);

    // A catalog that is made available again is served without another pull.
    work.write(
        "catalogs.yaml",
        manifests.replace("Unavailable", "Available"),
    );
    work.plays(&poll);
    assert_eq!(server.status("/catalogs/demo/api/v1/all").await, 200);
}

#[test]
fn limits_in_config_bound_image_and_catalog() {
    // One limit of the image and one of its content.
    for limit in ["pathBytes", "documents"] {
        let work = Work::new();
        // The second catalog has a limit of its own.
        let text = format!(
            "limits: {{{limit}: 1}}\ncatalogs: [{{name: a, source: 'oci:example:v1'}}, \
             {{name: b, source: 'oci:example:v1', limits: {{{limit}: 4096}}}}]\n"
        );
        work.write("catalogs.yaml", text);
        let polled = work
            .run("poll --json --config catalogs.yaml --store store")
            .exits(1);
        polled.prints(&format!("the limit {limit} of 1"));
        polled.prints(&format!("a larger limits.{limit} of the catalog"));
        assert!(
            work.exists("store/catalogs/b/current.json")
                && !work.exists("store/catalogs/a/current.json")
        );
    }
}

/// Flags and the file share their parsers.
#[test]
fn flag_values_out_of_range_are_refused() {
    let work = Work::published();
    work.write("catalogs.yaml", "limits: {compressedBytes: 700MB}\n");
    work.plays(
        "0 poll --store store --catalog a=oci:example:v1 --interval 1s
         2 poll --store store --catalog a=oci:example:v1 --interval 400d
         2 sync store store --watch=999ms
         0 export --store store --to a.tar --volume-size 700MB
         2 export --store store --to a.tar --volume-size 99999999999GiB
         0 gc --store store --config catalogs.yaml --dry-run
         2 gc --store store --keep-generations 17
         2 serve --no-poll --store store --cache-size 99999999999999999",
    );
}

#[test]
fn store_of_the_configuration_is_used_by_every_command() {
    let work = Work::new();
    work.write(
        "catalogs.yaml",
        "store: store\ncatalogs: [{name: a, source: 'oci:example:v1'}]\n",
    );
    work.plays(
        "0 poll --config catalogs.yaml
         0 ls --config catalogs.yaml
         > example:v1",
    );
    // A variable may name the file too.
    for line in ["verify", "images", "validate a", "rm a"] {
        Ran::of(
            work.command(line)
                .env("CATALOG_MIRROR_CONFIG", "catalogs.yaml"),
        )
        .exits(0);
    }
    work.write("catalogs.yaml", "store: ''\n");
    work.plays("1 ls --config catalogs.yaml\n! store");
    // A mistake in a file does not matter where the command line names the store.
    work.write("catalogs.yaml", "interval: soon\n");
    work.plays(
        "0 ls --config catalogs.yaml --store store
         1 ls --config catalogs.yaml
         ! interval",
    );
}

/// Nothing listens before everything is checked, and each message names its field and no secret.
#[test]
fn serve_reports_unusable_files_before_it_listens() {
    let work = Work::new();
    work.write("plain", "alice:password\n");
    work.write("empty", "");
    work.write("bad.json", r#"{"auths": password}"#);
    for (text, options, part) in [
        (
            "registries: {authFiles: [bad.json]}",
            "",
            "bad.json: is not JSON",
        ),
        ("", "--tls-cert empty", "tlsKey is missing"),
        ("", "--tls-cert empty --tls-key empty", "certificate"),
        ("grpc: {tls: true}", "--grpc 127.0.0.1:0", "server.tlsCert"),
        ("", "--readers plain", "line 1"),
        ("", "--readers empty", "names no users"),
        ("", "--readers missing", "missing"),
    ] {
        let catalogs = "catalogs: [{name: a, source: 'oci:example:v1'}]";
        work.write("catalogs.yaml", format!("{text}\n{catalogs}\n"));
        work.plays(&format!(
            "1 -v serve --listen 127.0.0.1:0 --config catalogs.yaml --store store {options}
             ! {part}
             - listening
             - password"
        ));
    }
}

/// Each composition is polled after its inputs, in any order of the file.
#[test]
fn configured_compositions_are_polled_listed_and_protected() {
    let work = Work::new();
    work.write(
        "isc.yaml",
        "kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: demo
    targetCatalog: caches
    packages: [{name: demo-cache}]
",
    );
    work.write_all("mine", &vec![catalogs::package("mine", 1)]);
    work.write(
        "catalogs.yaml",
        "catalogs:
- {name: again, compose: {inputs: [{catalog: team}]}}
- name: team
  compose:
    inputs: [{catalog: demo, select: {packages: [{name: demo-queue}]}}]
    add: [{source: 'dir:mine'}]
- {compose: {imageSet: 'isc.yaml'}}
- {name: demo, source: 'oci:example:v1'}
",
    );
    work.plays(
        "0 poll --store store --config catalogs.yaml
         0 ls --store store again
         > demo-queue
         > mine
         0 ls --store store
         > caches
         > compose:demo
         1 rm --store store demo
         ! other catalogs are made of it or follow it: caches, team
         0 rm --store store --force demo
         0 rm --store store caches",
    );
}
