//! Maintenance of a store: garbage collection, `verify` and repair.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::{binary::Server, catalogs, work::Work};

impl Work {
    fn poll_as(&self, store: &str, name: &str, version: &str) {
        self.run(&format!("poll --store {store} --catalog {name}=oci:example:{version}"))
            .exits(0);
    }

    fn gc(&self, options: &str) -> Value {
        self.run(&format!("gc --json --store store {options}")).exits(0).json()
    }

    /// Makes the state of garbage collection so many hours old.
    fn age(&self, hours: u64) {
        // A folder dates a file by the later of the times of its content and of its entry. The latter cannot be set, but the
        // state may carry its own time.
        let mut state = self.json("store/gc.json");
        let since = SystemTime::now() - Duration::from_secs(hours * 3600);
        state["since"] = humantime::format_rfc3339_seconds(since).to_string().into();
        self.write("store/gc.json", state.to_string());
    }

    fn shards(&self, store: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(store).join("packages/sha256")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

#[test]
fn gc_takes_one_step_per_run_and_deletes_after_two_hours() {
    let work = Work::published();
    work.poll_as("store", "demo", "v2");
    work.poll_as("store", "other", "v1");
    work.run("rm --store store other").exits(0);
    work.run("rm --store store demo").exits(0);
    work.poll_as("store", "other", "v2");
    let all = work.shards("store").len();
    let preview = work.gc("--dry-run");
    assert_eq!([&preview["dryRun"], &preview["state"]], [&json!(true), &json!("none")]);
    let garbage = preview["condemned"]["objects"].as_u64().unwrap();
    assert!(garbage >= 2, "{preview}");

    let condemned = work.gc("");
    assert_eq!([&condemned["step"], &condemned["state"]], ["condemn", "condemned"]);
    assert_eq!(condemned["condemned"], preview["condemned"]);
    let waiting = work.gc("");
    assert_eq!([&waiting["step"], &waiting["next"]["step"]], ["wait", "delete"]);
    let due = waiting["next"]["dueInSeconds"].as_u64().unwrap();
    assert!((7100..=7200).contains(&due), "{waiting}");
    assert_eq!(work.shards("store").len(), all);

    work.age(2);
    let deleted = work.gc("");
    assert_eq!([&deleted["step"], &deleted["state"]], ["delete", "deleting"]);
    assert_eq!(deleted["deleted"], preview["condemned"]);
    assert_eq!(deleted["left"]["objects"], 0);
    assert_eq!(work.shards("store").len(), 4, "those of v2");
    work.run("verify --store store").exits(0);
    work.age(2);
    assert_eq!(work.gc("")["step"], "finish");
    let sentence = work.run("gc --store store").exits(0);
    sentence.prints("the state is none; next: condemn");
}

#[test]
fn gc_offline_deletes_at_once() {
    let work = Work::published();
    work.poll_as("store", "other", "v2");
    work.run("rm --store store demo").exits(0);
    let report = work.gc("--offline");
    assert!(report["deleted"]["objects"].as_u64().unwrap() >= 2, "{report}");
    assert_eq!(
        [&report["left"]["objects"], &report["state"]],
        [&json!(0), &json!("none")]
    );
    assert_eq!(work.shards("store").len(), 4, "those of v2");
    work.run("verify --store store").exits(0);
    assert_eq!(work.gc("--offline")["deleted"]["objects"], 0);
    work.run("gc --offline --dry-run --store store").exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_repairs_missing_and_damaged_objects_from_other_mirror() {
    let work = Work::new();
    for store in ["broken", "sound"] {
        work.poll_as(store, "demo", "v1");
        work.poll_as(store, "demo", "v2");
    }
    let server = Server::of(work.command("serve --no-poll --store sound"));
    let current = work.json("broken/catalogs/demo/current.json");
    let broken = |key: &Value| work.path("broken").join(key.as_str().unwrap());
    fs::write(broken(&current["snapshot"]["key"]), "damaged").unwrap();
    fs::remove_file(broken(&current["all"]["gzip"]["key"])).unwrap();
    let index = fs::read_dir(work.path("broken/indexes/sha256"))
        .unwrap()
        .next()
        .unwrap();
    fs::write(index.unwrap().path(), "damaged").unwrap();
    let shards = work.shards("broken");
    fs::remove_file(&shards[0]).unwrap();
    fs::write(&shards[1], "damaged").unwrap();
    work.plays("1 verify --store broken\n> is missing\n> is damaged");
    let repair = |from: &str| work.run(&format!("verify --store broken --repair-from {from}"));
    fs::create_dir_all(work.path("nowhere/catalogs")).unwrap();
    repair("nowhere").exits(1).complains("cannot be repaired");
    let repaired = repair(&server.url).exits(0);
    assert_eq!(repaired.stderr.matches("was repaired").count(), 5, "{repaired:#?}");
    work.run("verify --store broken").exits(0);
    let bytes = |store: &str| catalogs::files(&work.path(store).join("packages"));
    assert_eq!(bytes("broken"), bytes("sound"));
}
