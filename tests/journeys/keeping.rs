//! A store is kept clean and sound: what nothing names goes, what is damaged comes from another mirror.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use keep::{GcSettings, gc};
use layout::{Key, Outcome};
use serde_json::Value;
use store::{
    Condition, MemoryStore, Store,
    memory::{Action, Answer, Moment},
};
use tempfile::TempDir;

use crate::support::{
    binary::{Server, run},
    catalogs,
    site::{Site, ten},
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn poll(store: &Path, name: &str, version: &str) {
    let source = format!("{name}=oci:{}:{version}", catalogs::example_layout().display());
    run(["poll", "--store", text(store), "--catalog", &source]).exits(10);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn gc_report(store: &Path, more: &[&str]) -> Value {
    let arguments = [&["gc", "--json", "--store", text(store)], more].concat();
    serde_json::from_str(&run(arguments).exits(0).stdout).unwrap()
}

/// Files as they would look after two days.
fn age(folder: &Path) {
    for (path, _) in catalogs::files(folder) {
        let file = File::options().write(true).open(folder.join(path)).unwrap();
        file.set_modified(SystemTime::now() - 2 * DAY).unwrap();
    }
}

fn shards(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store.join("packages/sha256")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn what_nothing_names_goes_after_the_grace_period() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "demo", "v1");
    poll(store, "demo", "v2");
    poll(store, "other", "v1");
    let all = shards(store).len();
    run(["rm", "--store", text(store), "other"]).exits(0);
    let young = gc_report(store, &["--keep-generations", "0"]);
    assert_eq!(
        young["swept"]["objects"], 0,
        "what was replaced just now stays in any case: {young}"
    );

    poll(store, "other", "v2");
    run(["rm", "--store", text(store), "demo"]).exits(0);
    age(store);
    let told = gc_report(store, &["--dry-run"]);
    assert_eq!((told["dryRun"].as_bool(), shards(store).len()), (Some(true), all));
    let done = gc_report(store, &[]);
    assert_eq!(done["swept"], told["swept"]);
    assert!(done["swept"]["objects"].as_u64().unwrap() >= 2, "{done}");
    assert_eq!(shards(store).len(), 4, "those of v2");
    let left = catalogs::files(store)
        .into_iter()
        .filter(|(path, _)| !path.starts_with('.'));
    assert_eq!(done["kept"]["objects"], left.count(), "{done}");
    assert_eq!(done["waiting"]["objects"], 0, "{done}");
    run(["verify", "--store", text(store)]).exits(0);
    assert_eq!(gc_report(store, &[])["swept"]["objects"], 0);

    let table = run(["gc", "--store", text(store)]).exits(0).stdout;
    assert!(table.contains("kept") && table.contains("waiting"), "{table}");
    let short = run(["gc", "--store", text(store), "--grace", "10m"]).exits(1);
    assert!(short.stderr.contains("3600 s"), "{}", short.stderr);
}

#[test]
fn a_retention_that_cannot_be_kept_is_a_problem_of_the_configuration() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("catalogs.yaml");
    for (retention, problem) in [
        ("{grace: 10m}", "3600 s"),
        ("{grace: soon}", "24h"),
        ("{weeks: 3}", "weeks"),
    ] {
        fs::write(&file, format!("retention: {retention}\ncatalogs: []\n")).unwrap();
        let failed = run(["poll", "--config", text(&file)]).exits(1);
        assert!(failed.stderr.contains(problem), "{problem}: {}", failed.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_damaged_comes_from_another_mirror() {
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
    fs::remove_file(snapshot.with_file_name("all.json.gz")).unwrap();
    fs::write(snapshot.with_file_name("index.json.zst"), "damaged").unwrap();
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

/// A poller that relies on shards which a collection takes right before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_shards_were_collected_writes_them_again() {
    let aged = Arc::new(AtomicBool::new(false));
    let clock = aged.clone();
    let store = MemoryStore::with_clock(move || {
        let age = if clock.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            2 * DAY
        };
        SystemTime::now() - age
    });
    let site = Site::start_on(store).await;
    site.push(&ten());
    site.turn().await;
    keep::remove(&site.store, &site.catalog.name).await.unwrap();
    aged.store(true, Ordering::Relaxed);

    let (hooked, collected) = (site.store.clone(), AtomicBool::new(false));
    site.store.set_hook(move |call, moment| {
        let written = matches!(call.action, Action::Put(_)) && matches!(call.key, Some(Key::Snapshot(..)));
        if written && moment == Moment::After && !collected.swap(true, Ordering::Relaxed) {
            let store = hooked.clone();
            return Answer::Wait(Box::pin(async move {
                // As if the snapshot had not been written yet: it would protect what it names.
                let snapshots = store
                    .objects()
                    .into_keys()
                    .filter(|key| matches!(key, Key::Snapshot(..)));
                for key in snapshots {
                    store.delete(&key).await.unwrap();
                }
                let report = gc(&store, &GcSettings::default()).await.unwrap();
                assert!(report.swept.objects >= 10, "{report:?}");
                Answer::GoOn
            }));
        }
        Answer::GoOn
    });
    let report = site.turn().await;
    assert_eq!(
        (report.outcome, report.serial),
        (Outcome::Published, Some(1)),
        "{report:?}"
    );
    site.is_sound().await;
    site.store.clear_hook();
    let intents = |key: &Key| matches!(key, Key::Intent(..));
    assert!(!site.store.objects().keys().any(intents), "it is withdrawn");
    let orphan = Key::Shard(layout::Sha256::of(b"orphan"));
    site.store
        .put(&orphan, "orphan".into(), Condition::CreateOnly)
        .await
        .unwrap();
    gc(&site.store, &GcSettings::default()).await.unwrap();
    site.is_sound().await;
}
