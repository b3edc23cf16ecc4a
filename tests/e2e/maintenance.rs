//! Maintenance of a store: garbage collection, `verify` and repair.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Server, run},
    catalogs,
};

fn poll(store: &Path, name: &str, version: &str) {
    let source = format!("{name}=oci:{}:{version}", catalogs::example_layout().display());
    run(["poll", "--store", text(store), "--catalog", &source]).exits(0);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn gc_report(store: &Path, more: &[&str]) -> Value {
    let arguments = [&["gc", "--json", "--store", text(store)], more].concat();
    serde_json::from_str(&run(arguments).exits(0).stdout).unwrap()
}

/// Makes the state of garbage collection so many hours old.
fn age(store: &Path, hours: u64) {
    // A folder dates a file by the later of the times of its content and of its entry. The latter cannot be set, but the
    // state may carry its own time.
    let path = store.join("gc.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let since = SystemTime::now() - Duration::from_secs(hours * 3600);
    state["since"] = humantime::format_rfc3339_seconds(since).to_string().into();
    fs::write(&path, serde_json::to_vec(&state).unwrap()).unwrap();
}

fn shards(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store.join("packages/sha256")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn gc_takes_one_step_per_run_and_deletes_after_two_hours() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "demo", "v1");
    poll(store, "demo", "v2");
    poll(store, "other", "v1");
    run(["rm", "--store", text(store), "other"]).exits(0);
    run(["rm", "--store", text(store), "demo"]).exits(0);
    poll(store, "other", "v2");
    let all = shards(store).len();
    let preview = gc_report(store, &["--dry-run"]);
    assert_eq!(
        (preview["dryRun"].as_bool(), &preview["state"]),
        (Some(true), &"none".into())
    );
    let garbage = preview["condemned"]["objects"].as_u64().unwrap();
    assert!(garbage >= 2, "{preview}");

    let condemned = gc_report(store, &[]);
    assert_eq!(
        (&condemned["step"], &condemned["state"]),
        (&"condemn".into(), &"condemned".into())
    );
    assert_eq!(condemned["condemned"], preview["condemned"]);
    let waiting = gc_report(store, &[]);
    assert_eq!(
        (&waiting["step"], &waiting["next"]["step"]),
        (&"wait".into(), &"delete".into())
    );
    let due = waiting["next"]["dueInSeconds"].as_u64().unwrap();
    assert!((7100..=7200).contains(&due), "{waiting}");
    assert_eq!(shards(store).len(), all);

    age(store, 2);
    let deleted = gc_report(store, &[]);
    assert_eq!(
        (&deleted["step"], &deleted["state"]),
        (&"delete".into(), &"deleting".into())
    );
    assert_eq!(
        (&deleted["deleted"], &deleted["left"]["objects"]),
        (&preview["condemned"], &0.into())
    );
    assert_eq!(shards(store).len(), 4, "those of v2");
    run(["verify", "--store", text(store)]).exits(0);
    age(store, 2);
    assert_eq!(gc_report(store, &[])["step"], "finish");
    let sentence = run(["gc", "--store", text(store)]).exits(0).stdout;
    assert!(sentence.contains("the state is none; next: condemn"), "{sentence}");
}

#[test]
fn gc_offline_deletes_at_once() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "demo", "v1");
    poll(store, "other", "v2");
    run(["rm", "--store", text(store), "demo"]).exits(0);
    let report = gc_report(store, &["--offline"]);
    assert!(report["deleted"]["objects"].as_u64().unwrap() >= 2, "{report}");
    assert_eq!(
        (&report["left"]["objects"], &report["state"]),
        (&0.into(), &"none".into())
    );
    assert_eq!(shards(store).len(), 4, "those of v2");
    run(["verify", "--store", text(store)]).exits(0);
    assert_eq!(gc_report(store, &["--offline"])["deleted"]["objects"], 0);
    run(["gc", "--offline", "--dry-run", "--store", text(store)]).exits(2);
}

#[test]
fn config_with_impossible_retention_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("catalogs.yaml");
    for (retention, problem) in [
        ("{generations: 17}", "generations"),
        ("{grace: soon}", "24h"),
        ("{weeks: 3}", "weeks"),
    ] {
        fs::write(&file, format!("retention: {retention}\ncatalogs: []\n")).unwrap();
        let failed = run(["poll", "--config", text(&file)]).exits(1);
        assert!(failed.stderr.contains(problem), "{problem}: {}", failed.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_repairs_missing_and_damaged_objects_from_other_mirror() {
    let folder = TempDir::new().unwrap();
    let [broken, sound] = ["broken", "sound"].map(|name| folder.path().join(name));
    for store in [&broken, &sound] {
        poll(store, "demo", "v1");
        poll(store, "demo", "v2");
    }
    let server = Server::start(["serve", "--no-poll", "--store", text(&sound)]);
    let current: Value = serde_json::from_slice(&fs::read(broken.join("catalogs/demo/current.json")).unwrap()).unwrap();
    let snapshot = broken.join(current["snapshot"]["key"].as_str().unwrap());
    fs::write(&snapshot, "damaged").unwrap();
    fs::remove_file(broken.join(current["all"]["gzip"]["key"].as_str().unwrap())).unwrap();
    let index = fs::read_dir(broken.join("indexes/sha256")).unwrap().next().unwrap();
    fs::write(index.unwrap().path(), "damaged").unwrap();
    fs::remove_file(&shards(&broken)[0]).unwrap();
    fs::write(&shards(&broken)[1], "damaged").unwrap();
    run(["verify", "--store", text(&broken)]).exits(1);
    let repair = |from: &str| run(["verify", "--store", text(&broken), "--repair-from", from]);
    let nowhere = folder.path().join("nowhere");
    fs::create_dir(&nowhere).unwrap();
    assert!(repair(text(&nowhere)).exits(1).stderr.contains("cannot be repaired"));
    let repaired = repair(&server.url).exits(0);
    assert_eq!(
        repaired.stderr.matches("was repaired").count(),
        5,
        "{}",
        repaired.stderr
    );
    run(["verify", "--store", text(&broken)]).exits(0);
    let bytes = |store: &Path| catalogs::files(&store.join("packages"));
    assert_eq!(bytes(&broken), bytes(&sound));
}
