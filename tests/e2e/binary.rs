//! The command line: output and exit codes.

use std::fs;

use model::Sha256;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{binary::run, catalogs};

fn source(version: &str) -> String {
    format!("demo=oci:{}:{version}", catalogs::example_layout().display())
}

/// Polls into a store. The caller checks the exit code.
fn poll(store: &TempDir, version: &str, more: &[&str]) -> crate::support::binary::Ran {
    let store = store.path().display().to_string();
    let mut arguments = vec!["poll", "--store", &store, "--json", "--detailed-exitcode", "--catalog"];
    let source = source(version);
    arguments.push(&source);
    arguments.extend(more);
    run(arguments)
}

#[test]
fn poll_exit_code_tells_published_only_if_asked() {
    let store = TempDir::new().unwrap();
    let first: Value = serde_json::from_str(&poll(&store, "v1", &[]).exits(10).stdout).unwrap();
    assert_eq!(first[0]["outcome"], "published");
    assert_eq!(first[0]["changes"]["added"].as_array().unwrap().len(), 4);
    poll(&store, "v1", &[]).exits(0);
    let update: Value = serde_json::from_str(&poll(&store, "v2", &[]).exits(10).stdout).unwrap();
    assert_eq!(update[0]["changes"]["changed"][0], "demo-database");
    assert_eq!(update[0]["changes"]["removed"][0], "demo-search");
    let failed = poll(&store, "v9", &[]).exits(1);
    assert!(failed.stdout.contains("v9"), "{failed:#?}");

    let path = store.path().display().to_string();
    let plain = |version: &str| run(["poll", "--store", &path, "--catalog", &source(version)]);
    assert!(plain("v1").exits(0).stdout.contains("published"));
    assert!(plain("v1").exits(0).stdout.contains("unchanged"));
    plain("v9").exits(1);
    let back = ["rollback", "--store", &path, "demo", "--previous"];
    run(back).exits(0);
    run(back.iter().chain(&["--detailed-exitcode"])).exits(10);
    let copy = TempDir::new().unwrap();
    let sync = ["sync", &path, &copy.path().display().to_string(), "--detailed-exitcode"];
    run(sync).exits(10);
    run(sync).exits(0);
}

/// The log at `-v` tells the error, and the text does otherwise.
#[test]
fn poll_error_is_printed_once() {
    let store = TempDir::new().unwrap();
    let path = store.path().display().to_string();
    let poll = ["poll", "--store", &path, "--catalog", &source("v9")];
    let copy = ["sync", "/nonexistent/store", &path, "demo"];
    for command in [&poll[..], &copy[..]] {
        for verbose in [&[][..], &["-v"]] {
            let failed = run(command.iter().chain(verbose)).exits(1);
            let lines = failed
                .stderr
                .lines()
                .filter(|line| line.contains("demo") || line.contains("nonexistent"));
            assert_eq!(lines.count(), 1, "{failed:#?}");
        }
    }
    let rolled_back = run(["rollback", "--store", &path, "demo", "--previous"]).exits(1);
    assert_eq!(rolled_back.stderr.lines().count(), 1, "{rolled_back:#?}");
}

#[test]
fn poll_forced_with_equal_content_changes_nothing() {
    let store = TempDir::new().unwrap();
    poll(&store, "v1", &[]).exits(10);
    let current = store.path().join("catalogs/demo/current.json");
    let before = fs::read(&current).unwrap();
    poll(&store, "v1", &["--force"]).exits(0);
    assert_eq!(fs::read(&current).unwrap(), before);
}

#[test]
fn render_prints_bytes_with_published_content_hash() {
    let layout = run(["render", &format!("oci:{}:v1", catalogs::example_layout().display())]).exits(0);
    let folder = run(["render", &format!("dir:{}", catalogs::folder("v1").display())]).exits(0);
    assert_eq!(layout.stdout, folder.stdout);
    let store = TempDir::new().unwrap();
    let polled: Value = serde_json::from_str(&poll(&store, "v1", &[]).exits(10).stdout).unwrap();
    assert_eq!(
        polled[0]["contentHash"],
        Sha256::of(layout.stdout.as_bytes()).to_string()
    );
}

#[test]
fn render_error_names_file_document_and_problem() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("good.yaml"), "schema: a\n").unwrap();
    fs::write(
        folder.path().join("bad.yaml"),
        "schema: a\n---\nschema: b\nname: 1.10\n",
    )
    .unwrap();
    let failed = run(["render", &folder.path().display().to_string()]).exits(1);
    assert!(failed.stdout.is_empty());
    for part in ["bad.yaml", "document 2", "name"] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
}

#[test]
fn ls_and_verify_describe_store() {
    let store = TempDir::new().unwrap();
    poll(&store, "v1", &[]).exits(10);
    let path = store.path().display().to_string();
    let table = run(["ls", "--store", &path]).exits(0).stdout;
    assert!(table.contains("demo") && table.contains("published"), "{table}");
    let packages: Value =
        serde_json::from_str(&run(["ls", "--store", &path, "--json", "demo"]).exits(0).stdout).unwrap();
    assert_eq!(packages.as_array().unwrap().len(), 4);
    run(["ls", "--store", &path, "other"]).exits(1);
    run(["verify", "--store", &path]).exits(0);
}

#[test]
fn verify_names_damaged_and_missing_shard() {
    let store = TempDir::new().unwrap();
    poll(&store, "v1", &[]).exits(10);
    let path = store.path().display().to_string();
    let shards = store.path().join("packages/sha256");
    let shard = fs::read_dir(&shards).unwrap().next().unwrap().unwrap().path();
    fs::write(&shard, b"not what it was").unwrap();
    let name = shard.file_name().unwrap().to_str().unwrap();
    let found = run(["verify", "--store", &path]).exits(1);
    assert!(found.stdout.contains(name), "{found:#?}");
    fs::remove_file(&shard).unwrap();
    assert!(run(["verify", "--store", &path]).exits(1).stdout.contains("missing"));
}

#[test]
fn rm_removes_catalog() {
    let store = TempDir::new().unwrap();
    poll(&store, "v1", &[]).exits(10);
    let path = store.path().display().to_string();
    run(["rm", "--store", &path, "demo"]).exits(0);
    assert!(!store.path().join("catalogs/demo").exists());
    assert!(!run(["ls", "--store", &path]).exits(0).stdout.contains("demo"));
    run(["rm", "--store", &path, "demo"]).exits(1);
}

#[test]
fn help_version_and_completions_are_printed() {
    let help = run(["--help"]).exits(0).stdout;
    for command in ["serve", "poll", "render", "ls", "verify", "rm", "demo", "Exit codes"] {
        assert!(help.contains(command), "{command}");
    }
    let version = run(["--version"]).exits(0).stdout;
    assert!(version.contains("commit") && version.contains("rustc"), "{version}");
    assert!(run(["completions", "bash"]).exits(0).stdout.contains("catalog-mirror"));
    run(["no-such-command"]).exits(2);
}
