//! Mistakes of people and texts of strangers, as they meet the commands.

use std::fs;

use tempfile::TempDir;

use crate::support::{
    binary::{Ran, Server, command, run},
    catalogs::{self, write},
    http,
};

/// Returns a store with the example catalog as `demo`.
fn published(folder: &TempDir) -> String {
    let store = folder.path().join("store").display().to_string();
    let source = format!("demo=oci:{}:v1", catalogs::example_layout().display());
    run(["poll", "--store", &store, "--catalog", &source]).exits(0);
    store
}

/// A folder that is a file is no empty catalog.
#[test]
fn file_in_place_of_a_folder_fails_every_command() {
    let folder = TempDir::new().unwrap();
    let store = published(&folder);
    let before = run(["ls", "--store", &store, "--json"]).exits(0).stdout;
    let file = write(&folder, "catalog.yaml", "schema: olm.package\nname: p\n");
    let source = format!("dir:{file}");
    run(["render", &source]).exits(1);
    run(["diff", &source, &source]).exits(1);
    run(["validate", &source]).exits(1);
    run([
        "poll",
        "--force",
        "--store",
        &store,
        "--catalog",
        &format!("demo={source}"),
    ])
    .exits(1);
    let after = run(["ls", "--store", &store, "--json"]).exits(0).stdout;
    let serial = |text: &str| text.split("\"serial\"").nth(1).map(|rest| rest[..4].to_owned());
    assert_eq!(serial(&before), serial(&after), "{after}");
}

/// Names, versions and images of a catalog may hold anything. On a terminal, control characters move the cursor or more.
#[test]
fn control_characters_of_a_catalog_reach_no_table_and_no_list() {
    let folder = TempDir::new().unwrap();
    let evil = r"\u001b[2J\u0007\nevil\u009b";
    let catalog = |bundle: &str| {
        format!(
            r#"{{"schema":"olm.package","name":"p{evil}","defaultChannel":"c{evil}"}}
{{"schema":"olm.channel","package":"p{evil}","name":"c{evil}","entries":[{{"name":"{bundle}{evil}"}}]}}
{{"schema":"olm.bundle","package":"p{evil}","name":"{bundle}{evil}","image":"r.example/i{evil}","properties":[{{"type":"olm.package","value":{{"packageName":"p{evil}","version":"1.0.0{evil}"}}}}]}}
"#
        )
    };
    let old = write(&folder, "old/catalog.json", &catalog("a"));
    let new = write(&folder, "new/catalog.json", &catalog("b"));
    let [old, new] = [old, new].map(|file| format!("dir:{}", file.trim_end_matches("/catalog.json")));
    let store = folder.path().join("store").display().to_string();
    for source in [&old, &new] {
        run(["poll", "--store", &store, "--catalog", &format!("c={source}")]).exits(0);
    }
    let compose = write(&folder, "compose.yaml", "inputs: [{catalog: c}]");
    let outputs: [Ran; 6] = [
        run(["ls", "--store", &store, "c"]).exits(0),
        run(["images", "--store", &store]).exits(0),
        run(["images", "--store", &store, "--format", "skopeo-sync"]).exits(0),
        run(["validate", &new]).exits(1),
        run(["diff", &old, &new]).exits(10),
        run(["compose", "--store", &store, "--explain", &compose]).exits(0),
    ];
    for output in outputs {
        let texts = [&output.stdout, &output.stderr];
        let control = texts
            .iter()
            .flat_map(|text| text.chars())
            .find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None, "{output:?}");
        // A line feed of the catalog would begin a line of its own.
        assert!(
            texts
                .iter()
                .all(|text| !text.lines().any(|line| line.starts_with("evil"))),
            "{output:?}"
        );
    }
}

/// `serve` lists an Unavailable catalog and answers 404 for it. The others are copied all the same.
#[tokio::test(flavor = "multi_thread")]
async fn copy_from_a_server_passes_over_its_unavailable_catalog() {
    let folder = TempDir::new().unwrap();
    let layout = catalogs::example_layout().display().to_string();
    let config = format!(
        "catalogs:\n- {{name: hidden, source: 'oci:{layout}:v1', availabilityMode: Unavailable}}\n- {{name: open, source: 'oci:{layout}:v1'}}\n"
    );
    let config = write(&folder, "catalogs.yaml", &config);
    let [store, copy] = ["store", "copy"].map(|name| folder.path().join(name).display().to_string());
    run(["poll", "--store", &store, "--config", &config]).exits(0);
    let server = Server::start(["serve", "--no-poll", "--store", &store]);
    run(["sync", &server.url, &copy]).exits(0);
    let listed = run(["ls", "--store", &copy]).exits(0).stdout;
    assert!(listed.contains("open") && !listed.contains("hidden"), "{listed}");
}

#[test]
fn variable_names_the_configuration_of_every_command() {
    let folder = TempDir::new().unwrap();
    let store = published(&folder);
    let config = write(&folder, "catalogs.yaml", &format!("store: {store}\n"));
    for arguments in [&["ls"][..], &["verify"], &["images"], &["validate", "demo"]] {
        let output = command(arguments)
            .env("CATALOG_MIRROR_CONFIG", &config)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    // There is no earlier state to compare with, which the store says and not a missing store.
    let diff = run(["diff", "--config", &config, "demo"]).exits(1);
    assert!(!diff.stderr.contains("store is not"), "{diff:#?}");
}

/// The decision for glibc: with its defaults a server grows to three times its memory.
#[cfg(target_os = "linux")]
#[test]
fn serve_runs_with_two_arenas_and_gives_large_buffers_back() {
    let folder = TempDir::new().unwrap();
    let store = published(&folder);
    let server = Server::start(["serve", "--no-poll", "--store", &store]);
    let environment = fs::read(format!("/proc/{}/environ", server.id())).unwrap();
    let variables = environment.split(|byte| *byte == 0);
    let mut settings: Vec<String> = variables
        .filter(|text| text.starts_with(b"MALLOC_"))
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    settings.sort_unstable();
    assert_eq!(settings, ["MALLOC_ARENA_MAX=2", "MALLOC_MMAP_THRESHOLD_=262144"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_allow_only_reads() {
    let folder = TempDir::new().unwrap();
    let store = published(&folder);
    let server = Server::start(["serve", "--no-poll", "--store", &store]);
    let answer = http::request(reqwest::Method::POST, &format!("{}/metrics", server.url), &[]).await;
    assert_eq!(answer.status(), 405);
    assert!(http::field(&answer, "allow").contains("GET"), "{answer:?}");
}
