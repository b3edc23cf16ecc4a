//! Faults that an attack on an earlier version found, each as a user meets it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use model::{Document, Garbage, GcPhase, GcState, Kind, ObjectDigest, ObjectKey, Sha256, StoredDocument};
use serde_json::Value;
use tempfile::TempDir;
use testkit::{S3, S3Call, S3Fault};

use crate::support::{
    binary::{Ran, command, run},
    catalogs,
};

/// Time in which a poll of the example catalog ends on a busy machine. A poll that waits for a collector takes minutes.
const POLL_MAX: Duration = Duration::from_secs(40);

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

fn source(version: &str) -> String {
    format!("demo=oci:{}:{version}", catalogs::example_layout().display())
}

fn poll(store: &Path, version: &str, more: &[&str]) -> Ran {
    let source = source(version);
    let fixed = ["poll", "--store", text(store), "--catalog", &source];
    run([&fixed, more].concat())
}

fn serial(store: &Path) -> u64 {
    let bytes = fs::read(store.join("catalogs/demo/current.json")).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()["serial"]
        .as_u64()
        .unwrap()
}

fn is_second_publication(store: &Path) {
    assert_eq!(serial(store), 2);
    run(["verify", "--store", text(store)]).exits(0);
}

/// Returns the files of a store whose paths contain all these parts.
fn objects(store: &Path, parts: &[&str]) -> Vec<PathBuf> {
    let files = catalogs::files(store).into_iter().map(|(path, _)| path);
    let found = files.filter(|path| parts.iter().all(|part| path.contains(part)) && !path.starts_with('.'));
    found.map(|path| store.join(path)).collect()
}

/// Starts a poll, and kills it if it does not end in time.
fn poll_in_time(store: &Path, version: &str) {
    let source = source(version);
    let mut child = quiet(["poll", "--store", text(store), "--catalog", &source]);
    let begin = Instant::now();
    while begin.elapsed() < POLL_MAX {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the poll waited for more than {POLL_MAX:?}");
}

fn quiet<const N: usize>(arguments: [&str; N]) -> Child {
    let mut command = command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Adds objects that nothing names, as old as an earlier collector wanted them, and condemns them long enough ago. Returns
/// the path of the one that is deleted first.
fn add_garbage(store: &Path, count: u32) -> PathBuf {
    let folder = store.join("packages/sha256");
    let long_ago = SystemTime::now() - Duration::from_secs(48 * 3600);
    let mut keys = BTreeSet::new();
    for number in 0..count {
        let bytes = number.to_be_bytes();
        let sha256 = Sha256::of(&bytes);
        let path = folder.join(format!("{sha256}.json.zst"));
        fs::write(&path, bytes).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        keys.insert(ObjectKey {
            kind: Kind::Package,
            sha256,
        });
    }
    let first = keys.first().expect("there is garbage").sha256;
    write_gc_state(store, keys, |garbage| GcPhase::Condemned {
        garbage,
        spared: BTreeSet::new(),
    });
    folder.join(format!("{first}.json.zst"))
}

fn write_gc_state(store: &Path, keys: BTreeSet<ObjectKey>, phase: impl Fn(model::ObjectRef) -> GcPhase) {
    let list = Garbage { keys }.to_stored().unwrap();
    let object = ObjectDigest::of(&list).with_kind(Kind::Garbage);
    let path = store.join(object.key().to_string());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, list).unwrap();
    let state = GcState {
        counter: 7,
        since: Some(SystemTime::now() - Duration::from_secs(2 * 3600 + 60)),
        phase: phase(object),
    };
    fs::write(store.join("gc.json"), state.to_bytes()).unwrap();
}

/// Findings 1 and 9: a collector that died while it deleted stopped all publications for minutes, and on AWS for ever.
#[test]
fn poll_does_not_wait_for_a_collector_that_died() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    let dead = ObjectKey {
        kind: Kind::Package,
        sha256: Sha256::of(b"garbage"),
    };
    write_gc_state(store, [dead].into(), |garbage| GcPhase::Deleting { garbage });
    // The lock of the earlier version, as its collector left it.
    fs::write(
        store.join("sweep.json"),
        r#"{"formatVersion":1,"serial":1,"active":true}"#,
    )
    .unwrap();
    poll_in_time(store, "v2");
    is_second_publication(store);
}

/// Finding 3: publications starved beside a collector of many objects. The collector is stopped in the middle of it.
#[test]
fn poll_does_not_wait_for_a_collector_that_is_slow() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    let first = add_garbage(store, 20_000);
    let mut collector = quiet(["gc", "--store", text(store)]);
    // Stopped between two deletes, which lock nothing. A process that is stopped while it holds the lock of the
    // documents, for microseconds, would hold up the other writers of the folder.
    let begin = Instant::now();
    while first.exists() && begin.elapsed() < POLL_MAX {
        thread::sleep(Duration::from_millis(1));
    }
    signal(&collector, "STOP");
    poll_in_time(store, "v2");
    collector.kill().unwrap();
    collector.wait().unwrap();
    is_second_publication(store);
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
    assert!(sent.success(), "the collector still runs");
}

/// Finding 4: a published state with missing or damaged objects stayed as it was, although its source has everything.
#[test]
fn poll_restores_missing_and_truncated_objects() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    for parts in [
        &["snapshot"][..],
        &["packages/sha256"],
        &["all", "json.zst"],
        &["all", "json.gz"],
        &["index"],
        &["blobs/sha256"],
    ] {
        let path = &objects(store, parts)[0];
        for damage in [true, false] {
            match damage {
                true => fs::write(path, "cut").unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
            poll(store, "v1", &[]);
            run(["verify", "--store", text(store)]).exits(0);
        }
    }
}

#[test]
fn poll_forced_restores_objects_with_flipped_bytes() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    for parts in [
        &["snapshot"][..],
        &["packages/sha256"],
        &["all", "json.zst"],
        &["index"],
        &["blobs/sha256"],
    ] {
        let path = &objects(store, parts)[0];
        let mut bytes = fs::read(path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
        run(["verify", "--store", text(store)]).exits(1);
        poll(store, "v1", &["--force"]);
        run(["verify", "--store", text(store)]).exits(0);
    }
}

fn on_s3(bucket: &S3, arguments: &[&str]) -> Ran {
    let endpoint = [
        "--s3-endpoint",
        bucket.url(),
        "--s3-region",
        "us-east-1",
        "--s3-path-style",
    ];
    let mut command = command([arguments, &endpoint].concat());
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        command.env(name, "test");
    }
    Ran::of(&command.env("AWS_EC2_METADATA_DISABLED", "true").output().unwrap())
}

/// Findings 5 and 12: a republication of equal content with other options replaced objects in place, so that its end in the
/// middle left a published state that does not verify. The store refuses all writes after some number of them.
#[tokio::test(flavor = "multi_thread")]
async fn republication_that_ends_after_any_write_leaves_a_sound_state() {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("key");
    run(["keygen", text(&key)]).exits(0);
    for writes in 0..200 {
        // A server of its own: the faults of the one before would not be used up.
        let bucket = S3::start().await;
        if tokio::task::block_in_place(|| republish(&bucket, &key, writes)) {
            assert!(writes > 10, "a republication makes some writes");
            return;
        }
    }
    panic!("a republication never succeeded");
}

/// Publishes, and republishes signed and with other options, which may write so many objects. Returns true if that was enough.
fn republish(bucket: &S3, key: &Path, writes: usize) -> bool {
    let (store, source) = ("s3://bucket", source("v1"));
    let poll = |more: &[&str]| {
        on_s3(
            bucket,
            &[&["poll", "--store", store, "--catalog", &source], more].concat(),
        )
    };
    poll(&["--identity=false"]);
    for _ in 0..writes {
        bucket.script(S3Call::Put, S3Fault::Late(Duration::ZERO));
    }
    for _ in 0..50 {
        bucket.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    }
    let done = poll(&["--identity=true", "--signing-key", text(key)]);
    on_s3(bucket, &["verify", "--store", store]).exits(0);
    // The earlier version exits with 10 after a publication.
    matches!(done.code, Some(0 | 10))
}

/// Finding 6: collection did not say what it had done, and what was left.
#[test]
fn gc_says_its_step_its_state_and_what_is_next() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    add_garbage(store, 3);
    let report = run(["gc", "--json", "--store", text(store)]).exits(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["step"], &report["state"]),
        (&"delete".into(), &"deleting".into())
    );
    assert_eq!(
        (&report["deleted"]["objects"], &report["left"]["objects"]),
        (&3.into(), &0.into())
    );
    assert_eq!(report["next"]["step"], "finish");
    let words = run(["gc", "--store", text(store)]).exits(0).stdout;
    assert!(
        words.contains("the state is deleting; next: end the round, due in"),
        "{words}"
    );
}

/// Finding 14: a lost `catalogs.json` stayed lost, and every command succeeded on what looked like an empty store.
#[test]
fn lost_list_of_names_is_reported_worked_around_and_restored() {
    let folder = TempDir::new().unwrap();
    let store = folder.path();
    poll(store, "v1", &[]);
    let names = store.join("catalogs.json");
    fs::remove_file(&names).unwrap();
    let listed = run(["ls", "--store", text(store)]).exits(0).stdout;
    assert!(listed.contains("demo"), "{listed}");
    let found = run(["verify", "--store", text(store)]).exits(1).stdout;
    assert!(found.contains("catalogs.json does not list the catalog"), "{found}");
    poll(store, "v1", &[]);
    assert!(fs::read_to_string(&names).unwrap().contains("demo"));
    run(["verify", "--store", text(store)]).exits(0);
}
