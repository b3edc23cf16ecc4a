//! Maintenance of a store: garbage collection, `verify` and repair.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{binary::Server, work::Work};

impl Work {
    fn shards(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("store/packages/sha256")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

#[test]
fn gc_prints_its_step_and_what_it_condemns_and_deletes() {
    // The first version under a name that is removed, and the second one under another.
    let work = Work::published();
    work.plays(
        "0 poll --store store --catalog other=oci:example:v2
         0 rm --store store demo",
    );
    let gc = |options: &str| {
        let collected = work.run(&format!("gc --json --store store {options}"));
        collected.exits(0).json()
    };
    let step = |report: &Value| ["dryRun", "step", "state"].map(|field| report[field].clone());
    let preview = gc("--dry-run");
    assert_eq!(step(&preview), [json!(true), json!("wait"), json!("none")]);
    assert!(
        preview["condemned"]["objects"].as_u64() >= Some(2),
        "{preview}"
    );
    let condemned = gc("");
    assert_eq!(
        step(&condemned),
        [json!(false), json!("condemn"), json!("condemned")]
    );
    assert_eq!(condemned["condemned"], preview["condemned"]);
    work.plays(
        "0 gc --store store
         > gc waited: no step is due; the state is condemned; next: delete what is condemned, due in ",
    );
    assert_eq!(gc("--offline")["deleted"], preview["condemned"]);
    assert_eq!(work.shards().len(), 4, "those of v2");
    work.plays(
        "0 gc --store store
         > the state is none; next: condemn
         0 verify --store store
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
