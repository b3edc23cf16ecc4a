//! Maintenance of a store: garbage collection, `verify` and repair.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::{binary::Server, work::Work};

impl Work {
    fn gc(&self, options: &str) -> Value {
        self.run(&format!("gc --json --store store {options}")).exits(0).json()
    }

    /// Makes the state of garbage collection two hours old.
    fn age(&self) {
        // A folder dates a file by the later of the times of its content and of its entry. The latter cannot be set, but the
        // state may carry its own time.
        let mut state = self.json("store/gc.json");
        let since = SystemTime::now() - Duration::from_secs(7200);
        state["since"] = humantime::format_rfc3339_seconds(since).to_string().into();
        self.write("store/gc.json", state.to_string());
    }

    fn shards(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("store/packages/sha256")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Publishes the first version under a name that is removed, and the second one under another.
fn with_garbage() -> Work {
    let work = Work::published();
    work.plays(
        "0 poll --store store --catalog other=oci:example:v2
         0 rm --store store demo",
    );
    work
}

#[test]
fn gc_takes_one_step_per_run_and_deletes_after_two_hours() {
    let work = with_garbage();
    let step = |report: &Value| ["dryRun", "step", "state"].map(|field| report[field].clone());
    let preview = work.gc("--dry-run");
    assert_eq!(step(&preview), [json!(true), json!("wait"), json!("none")]);
    assert!(preview["condemned"]["objects"].as_u64() >= Some(2), "{preview}");
    let all = work.shards().len();
    for (is_due, expected) in [
        (false, ["condemn", "condemned"]),
        (false, ["wait", "condemned"]),
        (true, ["delete", "deleting"]),
        (true, ["finish", "none"]),
    ] {
        if is_due {
            assert_eq!(work.shards().len(), if expected[0] == "delete" { all } else { 4 });
            work.age();
        }
        let report = work.gc("");
        assert_eq!(step(&report)[1..], expected);
        match expected[0] {
            "condemn" => assert_eq!(report["condemned"], preview["condemned"]),
            "delete" => assert_eq!(report["deleted"], preview["condemned"]),
            "wait" => {
                let due = report["next"]["dueInSeconds"].as_u64();
                assert!(matches!(due, Some(7100..=7200)), "{report}");
            }
            _ => {}
        }
    }
    work.plays(
        "0 gc --store store
         > the state is none; next: condemn
         0 verify --store store",
    );
}

#[test]
fn gc_offline_deletes_at_once() {
    let work = with_garbage();
    let report = work.gc("--offline");
    assert!(report["deleted"]["objects"].as_u64() >= Some(2), "{report}");
    assert_eq!(work.shards().len(), 4, "those of v2");
    work.plays(
        "0 verify --store store
         2 gc --offline --dry-run --store store",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_repairs_missing_and_damaged_objects_from_other_mirror() {
    let work = Work::published();
    work.run("sync store sound").exits(0);
    let server = Server::of(work.command("serve --no-poll --store sound"));
    let shards = work.shards();
    fs::remove_file(&shards[0]).unwrap();
    fs::write(&shards[1], "damaged").unwrap();
    fs::create_dir_all(work.path("nowhere/catalogs")).unwrap();
    work.plays(&format!(
        "1 verify --store store
         > is missing
         > does not decode to
         1 verify --store store --repair-from nowhere
         ! cannot be repaired
         0 verify --store store --repair-from {}
         ! was repaired
         0 verify --store store",
        server.url
    ));
}
