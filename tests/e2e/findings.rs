//! Faults that an attack on an earlier version found, each as a user meets it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use model::{Document, Garbage, GcPhase, GcState, Kind, ObjectDigest, ObjectKey, Sha256, StoredDocument};
use testkit::{S3, S3Call, S3Fault};

use crate::support::{binary::Ran, catalogs, work::Work};

/// Time in which a poll of the example catalog ends on a busy machine. A poll that waits for a collector takes minutes.
const POLL_MAX: Duration = Duration::from_secs(40);

impl Work {
    fn is_second_publication(&self) {
        assert_eq!(self.json("store/catalogs/demo/current.json")["serial"], 2);
        self.run("verify --store store").exits(0);
    }

    /// Returns the first file of the store whose path contains all these parts.
    fn object(&self, parts: &[&str]) -> PathBuf {
        let mut files = catalogs::files(&self.path("store")).into_iter().map(|(path, _)| path);
        let found = files.find(|path| parts.iter().all(|part| path.contains(part)) && !path.starts_with('.'));
        self.path("store").join(found.expect("each published state has one"))
    }

    fn spawn(&self, line: &str) -> Child {
        let mut command = self.command(line);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Polls the second version, and kills the poll if it does not end in time.
    fn poll_in_time(&self) {
        let mut child = self.spawn("poll --store store --catalog demo=oci:example:v2");
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
}

/// Adds objects that nothing names, as old as an earlier collector wanted them, and condemns them long enough ago. Returns
/// the path of the one that is deleted first.
fn add_garbage(work: &Work, count: u32) -> PathBuf {
    let folder = work.path("store/packages/sha256");
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
    write_gc_state(work, keys, |garbage| GcPhase::Condemned {
        garbage,
        spared: BTreeSet::new(),
    });
    folder.join(format!("{first}.json.zst"))
}

fn write_gc_state(work: &Work, keys: BTreeSet<ObjectKey>, phase: impl Fn(model::ObjectRef) -> GcPhase) {
    let list = Garbage { keys }.to_stored().unwrap();
    let object = ObjectDigest::of(&list).with_kind(Kind::Garbage);
    work.write(&format!("store/{}", object.key()), list);
    let state = GcState {
        counter: 7,
        since: Some(SystemTime::now() - Duration::from_secs(2 * 3600 + 60)),
        phase: phase(object),
    };
    work.write("store/gc.json", state.to_bytes());
}

/// Findings 1 and 9: a collector that died while it deleted stopped all publications for minutes, and on AWS for ever.
#[test]
fn poll_does_not_wait_for_a_collector_that_died() {
    let work = Work::published();
    let dead = ObjectKey {
        kind: Kind::Package,
        sha256: Sha256::of(b"garbage"),
    };
    write_gc_state(&work, [dead].into(), |garbage| GcPhase::Deleting { garbage });
    // The lock of the earlier version, as its collector left it.
    work.write("store/sweep.json", r#"{"formatVersion":1,"serial":1,"active":true}"#);
    work.poll_in_time();
    work.is_second_publication();
}

/// Finding 3: publications starved beside a collector of many objects. The collector is stopped in the middle of it.
#[test]
fn poll_does_not_wait_for_a_collector_that_is_slow() {
    let work = Work::published();
    let first = add_garbage(&work, 20_000);
    let mut collector = work.spawn("gc --store store");
    // Stopped between two deletes, which lock nothing. A process that is stopped while it holds the lock of the
    // documents, for microseconds, would hold up the other writers of the folder.
    let begin = Instant::now();
    while first.exists() && begin.elapsed() < POLL_MAX {
        thread::sleep(Duration::from_millis(1));
    }
    let id = collector.id().to_string();
    let sent = Command::new("kill").args(["-s", "STOP", &id]).status().unwrap();
    assert!(sent.success(), "the collector still runs");
    work.poll_in_time();
    collector.kill().unwrap();
    collector.wait().unwrap();
    work.is_second_publication();
}

/// Finding 4: a published state with missing or damaged objects stayed as it was, although its source has everything.
#[test]
fn poll_restores_missing_and_truncated_objects() {
    let work = Work::published();
    for parts in [
        &["snapshot"][..],
        &["packages/sha256"],
        &["all", "json.zst"],
        &["all", "json.gz"],
        &["index"],
        &["blobs/sha256"],
    ] {
        let path = work.object(parts);
        for damage in [true, false] {
            match damage {
                true => fs::write(&path, "cut").unwrap(),
                false => fs::remove_file(&path).unwrap(),
            }
            work.poll("v1");
            work.run("verify --store store").exits(0);
        }
    }
}

#[test]
fn poll_forced_restores_objects_with_flipped_bytes() {
    let work = Work::published();
    for parts in [
        &["snapshot"][..],
        &["packages/sha256"],
        &["all", "json.zst"],
        &["index"],
        &["blobs/sha256"],
    ] {
        let path = work.object(parts);
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
        work.run("verify --store store").exits(1);
        work.run("poll --force --store store --catalog demo=oci:example:v1");
        work.run("verify --store store").exits(0);
    }
}

/// Runs a line over the store in the bucket.
fn on_s3(work: &Work, bucket: &S3, line: &str) -> Ran {
    let (store, url) = (
        "--store s3://bucket --s3-region us-east-1 --s3-path-style",
        bucket.url(),
    );
    let mut command = work.command(&format!("{line} {store} --s3-endpoint {url}"));
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        command.env(name, "test");
    }
    Ran::of(command.env("AWS_EC2_METADATA_DISABLED", "true"))
}

/// Findings 5 and 12: a republication of equal content with other options replaced objects in place, so that its end in the
/// middle left a published state that does not verify. The store refuses all writes after some number of them.
#[tokio::test(flavor = "multi_thread")]
async fn republication_that_ends_after_any_write_leaves_a_sound_state() {
    let work = Work::new();
    work.run("keygen key").exits(0);
    for writes in 0..200 {
        // A server of its own: the faults of the one before would not be used up.
        let bucket = S3::start().await;
        if republish(&work, &bucket, writes) {
            assert!(writes > 10, "a republication makes some writes");
            return;
        }
    }
    panic!("a republication never succeeded");
}

/// Publishes, and republishes signed and with other options, which may write so many objects. Returns true if that was enough.
fn republish(work: &Work, bucket: &S3, writes: usize) -> bool {
    let poll = |options: &str| on_s3(work, bucket, &format!("poll --catalog demo=oci:example:v1 {options}"));
    poll("--identity=false");
    for _ in 0..writes {
        bucket.script(S3Call::Put, S3Fault::Late(Duration::ZERO));
    }
    for _ in 0..50 {
        bucket.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    }
    let done = poll("--identity=true --signing-key key");
    on_s3(work, bucket, "verify").exits(0);
    // The earlier version exits with 10 after a publication.
    matches!(done.code, Some(0 | 10))
}

/// Finding 6: collection did not say what it had done, and what was left.
#[test]
fn gc_says_its_step_its_state_and_what_is_next() {
    let work = Work::published();
    add_garbage(&work, 3);
    let report = work.run("gc --json --store store").exits(0).json();
    assert_eq!(
        (&report["step"], &report["state"]),
        (&"delete".into(), &"deleting".into())
    );
    assert_eq!(
        (&report["deleted"]["objects"], &report["left"]["objects"]),
        (&3.into(), &0.into())
    );
    assert_eq!(report["next"]["step"], "finish");
    let words = work.run("gc --store store").exits(0);
    words.prints("the state is deleting; next: end the round, due in");
}

/// Finding 14: a lost `catalogs.json` stayed lost, and every command succeeded on what looked like an empty store.
#[test]
fn lost_list_of_names_is_reported_worked_around_and_restored() {
    let work = Work::published();
    fs::remove_file(work.path("store/catalogs.json")).unwrap();
    work.run("ls --store store").exits(0).prints("demo");
    let found = work.run("verify --store store").exits(1);
    found.prints("catalogs.json does not list the catalog");
    work.poll("v1");
    assert!(work.read("store/catalogs.json").contains("demo"));
    work.run("verify --store store").exits(0);
}
