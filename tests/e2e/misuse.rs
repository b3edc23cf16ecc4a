//! Mistakes of people and texts of strangers, as they meet the commands.

use std::fs;

use crate::support::{binary::Ran, http, work::Work};

/// A folder that is a file is no empty catalog.
#[test]
fn file_in_place_of_a_folder_fails_every_command() {
    let work = Work::published();
    work.write("catalog.yaml", "schema: olm.package\nname: p\n");
    for line in [
        "render dir:catalog.yaml",
        "diff dir:catalog.yaml dir:catalog.yaml",
        "validate dir:catalog.yaml",
        "poll --force --store store --catalog demo=dir:catalog.yaml",
    ] {
        work.run(line).exits(1);
    }
    assert_eq!(work.json("store/catalogs/demo/current.json")["serial"], 1);
}

/// A folder that is no store is most likely a misspelt name or a volume that is not mounted.
#[test]
fn folder_that_is_not_a_store_is_refused_and_left_alone() {
    let work = Work::new();
    work.write("other/file", "");
    for line in [
        "ls",
        "ls demo",
        "search etcd",
        "validate demo",
        "verify",
        "verify --repair-from other",
        "gc",
        "gc --dry-run",
        "rollback demo --previous",
        "diff demo",
        "images",
        "manifests --url https://mirror.example",
        "rm demo",
        "export --to archive.tar",
        "receipt",
    ] {
        work.run(&format!("{line} --store other"))
            .exits(1)
            .complains("error: other is not a store: it has no catalogs.json\n");
        let default = work.run(line).exits(1);
        default.complains("error: ./store is not a store: ");
        default.complains("this is the default, and --store or `store` of the configuration names another");
    }
    work.run("sync other copy").exits(1).complains("other is not a store");
    assert_eq!(fs::read_dir(work.path("other")).unwrap().count(), 1);
    assert!(!work.exists("store") && !work.exists("archive.tar"));
}

#[test]
fn search_with_too_many_words_prints_only_the_error() {
    let failed = Work::published()
        .run("search --store store a b c d e f g h i j k")
        .exits(1);
    failed.complains("at most 10 words");
    assert_eq!(failed.stdout, "");
}

/// Names, versions and images of a catalog may hold anything. On a terminal, control characters move the cursor or more.
#[test]
fn control_characters_of_a_catalog_reach_no_table_and_no_list() {
    let work = Work::new();
    let evil = r"\u001b[2J\u0007\nevil\u009b";
    for (folder, bundle) in [("old", "a"), ("new", "b")] {
        let text = format!(
            r#"{{"schema":"olm.package","name":"p{evil}","defaultChannel":"c{evil}"}}
{{"schema":"olm.channel","package":"p{evil}","name":"c{evil}","entries":[{{"name":"{bundle}{evil}"}}]}}
{{"schema":"olm.bundle","package":"p{evil}","name":"{bundle}{evil}","image":"r.example/i{evil}","properties":[{{"type":"olm.package","value":{{"packageName":"p{evil}","version":"1.0.0{evil}"}}}}]}}
"#
        );
        work.write(&format!("{folder}/catalog.json"), text);
        work.run(&format!("poll --store store --catalog c=dir:{folder}"))
            .exits(0);
    }
    work.write("compose.yaml", "inputs: [{catalog: c}]");
    for (line, code) in [
        ("ls --store store c", 0),
        ("images --store store", 0),
        ("images --store store --format skopeo-sync", 0),
        ("validate dir:new", 1),
        ("diff dir:old dir:new", 10),
        ("compose --store store --explain compose.yaml", 0),
    ] {
        let output: Ran = work.run(line).exits(code);
        for text in [&output.stdout, &output.stderr] {
            let control = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(control, None, "{output:?}");
            // A line feed of the catalog would begin a line of its own.
            assert!(!text.lines().any(|line| line.starts_with("evil")), "{output:?}");
        }
    }
}

#[test]
fn variable_names_the_configuration_of_every_command() {
    let work = Work::published();
    work.write("catalogs.yaml", "store: store\n");
    for line in ["ls", "verify", "images", "validate demo"] {
        Ran::of(work.command(line).env("CATALOG_MIRROR_CONFIG", "catalogs.yaml")).exits(0);
    }
    // There is no earlier state to compare with, which the store says and not a missing store.
    let diff = work.run("diff --config catalogs.yaml demo").exits(1);
    assert!(!diff.stderr.contains("store is not"), "{diff:#?}");
}

/// The decision for glibc: with its defaults a server grows to three times its memory.
#[cfg(target_os = "linux")]
#[test]
fn serve_runs_with_two_arenas_and_gives_large_buffers_back() {
    let server = Work::published().serve("");
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
    let work = Work::published();
    let server = work.serve("");
    let answer = http::request(reqwest::Method::POST, &server.url("/metrics"), &[]).await;
    assert_eq!(answer.status(), 405);
    assert!(http::field(&answer, "allow").contains("GET"), "{answer:?}");
}
