//! Signatures of published states: made by `poll` and `rollback`, verified by `serve`, `sync` and `import`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{CatalogName, Current, Document, Key, Outcome};
use publish::{MirrorSettings, PollError, PublishError, RollbackError, RollbackOptions, RollbackTarget};
use serde_json::Value;
use store::{Condition, DOCUMENT_MAX, Store, StoreExt};
use tempfile::TempDir;
use trust::{Signer, SigningKey, Trust};

use crate::support::{
    binary::{Server, run},
    catalogs, http,
    site::{Site, ten},
};

fn key() -> SigningKey {
    SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap()
}

fn signer(keys: &[&SigningKey]) -> Signer {
    Signer::new(keys.iter().map(|key| (*key).clone()).collect(), Vec::new())
}

fn signing(keys: &[&SigningKey]) -> MirrorSettings {
    MirrorSettings {
        signer: Some(signer(keys)),
        ..MirrorSettings::default()
    }
}

impl Site {
    async fn is_signed_by(&self, key: &SigningKey) -> bool {
        let (bytes, _) = self.store.read_all(&self.pointer(), DOCUMENT_MAX).await.unwrap();
        let trust = Trust::new(vec![key.public()]);
        trust.verify(&self.catalog.name, &bytes).is_ok()
    }

    fn pointer(&self) -> Key {
        Key::Current(self.catalog.name.clone())
    }

    async fn forge(&self, forge: impl FnOnce(&mut Current)) {
        let mut current = self.current().await;
        forge(&mut current);
        let pointer = self.pointer();
        let written = self.store.write_document(&pointer, &current, Condition::Always);
        written.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn publication_is_signed_and_unchanged_poll_writes_nothing() {
    let key = key();
    let site = Site::start_with(signing(&[&key])).await;
    site.push(&ten());
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert!(site.is_signed_by(&key).await);
    let before = site.current().await;
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.current().await, before);

    let mut backwards = ten();
    backwards.reverse();
    site.push(&backwards);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert!(site.is_signed_by(&key).await);
    let mut files = ten();
    files[4] = catalogs::package("p4", 4);
    site.push(&files);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert!(site.is_signed_by(&key).await);
    assert_eq!(site.current().await.previous.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_with_both_keys_replaces_a_key() {
    let (old, new) = (key(), key());
    let mut site = Site::start_with(signing(&[&old])).await;
    site.push(&ten());
    site.poll().await;
    site.restart_with(signing(&[&old, &new]));
    assert_eq!(
        site.poll().await.outcome,
        Outcome::SourceDigestUpdated,
        "signed again, not pulled again"
    );
    assert!(site.is_signed_by(&old).await && site.is_signed_by(&new).await);
    site.restart_with(signing(&[&new]));
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert!(!site.is_signed_by(&old).await && site.is_signed_by(&new).await);
    assert_eq!(site.current().await.serial, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_publishes_forged_pointer_anew() {
    let key = key();
    let site = Site::start_with(signing(&[&key])).await;
    site.push(&ten());
    site.poll().await;
    let honest = site.current().await;
    site.forge(|current| {
        current.content_hash = model::Sha256::of(b"another content");
        current.serial = 7;
        current.previous = current.as_previous();
    })
    .await;
    let report = site.poll().await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(8)));
    let after = site.current().await;
    assert_eq!(after.content_hash, honest.content_hash);
    assert!(after.previous.is_empty(), "a forged history is not made one's own");
    assert!(site.is_signed_by(&key).await);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_with_new_key_publishes_unsigned_state_anew_once() {
    let key = key();
    let mut site = Site::start().await;
    site.push(&ten());
    site.poll().await;
    site.restart_with(signing(&[&key]));
    let report = site.poll().await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(2)));
    assert!(site.is_signed_by(&key).await);
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_without_key_does_not_replace_signed_pointer() {
    let key = key();
    let mut site = Site::start_with(signing(&[&key])).await;
    site.push(&ten());
    site.poll().await;
    let signed = site.current().await;
    site.restart_with(MirrorSettings::default());
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.current().await, signed, "there is nothing new to sign");

    site.push(&ten()[..9].to_vec());
    let report = site.poll().await;
    assert!(
        matches!(report.error, Some(PollError::Publish(PublishError::NoKey))),
        "{report:?}"
    );
    assert_eq!(site.current().await, signed);
    let forced = site.poll_forced().await;
    assert_eq!(forced.outcome, Outcome::Published);
    assert!(site.current().await.signatures.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_signs_only_verified_states() {
    let (key, other) = (key(), key());
    let site = Site::start_with(signing(&[&key])).await;
    site.push(&ten());
    site.poll().await;
    let first = site.current().await;
    site.push(&ten()[..9].to_vec());
    site.poll().await;
    let second = site.current().await;
    let store: Arc<dyn Store> = Arc::new(site.store.clone());
    let back = async |signer: Option<Signer>| {
        let options = RollbackOptions {
            signer,
            ..RollbackOptions::new(RollbackTarget::Previous)
        };
        publish::rollback(&store, &site.catalog.name, &options).await
    };

    let report = back(None).await;
    assert!(matches!(report.error, Some(PollError::Publish(PublishError::NoKey))));
    let report = back(Some(signer(&[&other]))).await;
    assert!(matches!(
        report.error,
        Some(PollError::Rollback(RollbackError::Untrusted))
    ));
    assert_eq!(site.current().await, second);

    // The signed history names the snapshot by the hash of its bytes.
    let snapshot = first.snapshot.key();
    let (honest, _) = site.store.read_all(&snapshot, DOCUMENT_MAX).await.unwrap();
    let forged = [&honest[..], b"\n"].concat();
    site.store.put_always(&snapshot, forged).await;
    let report = back(Some(signer(&[&key]))).await;
    assert!(
        matches!(&report.error, Some(PollError::Rollback(RollbackError::Incomplete { content_hash, .. })) if *content_hash == first.content_hash),
        "{report:?}"
    );
    site.store.put_always(&snapshot, honest.to_vec()).await;
    let report = back(Some(signer(&[&key]))).await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(3)));
    assert_eq!(site.current().await.content_hash, first.content_hash);
    assert!(site.is_signed_by(&key).await);
}

trait PutAlways {
    async fn put_always(&self, key: &Key, bytes: Vec<u8>);
}

impl PutAlways for storekit::MemoryStore {
    async fn put_always(&self, key: &Key, bytes: Vec<u8>) {
        let put = store::Store::put(self, key, bytes.into(), Condition::Always);
        put.await.unwrap();
    }
}

/// A folder with two keys and the stores that are signed with them.
struct Work {
    folder: TempDir,
}

impl Work {
    fn new() -> Self {
        let work = Self {
            folder: TempDir::new().unwrap(),
        };
        for name in ["a", "b"] {
            run(["keygen", &work.text(name)]).exits(0);
        }
        work
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn poll(&self, version: &str, more: &[&str]) -> crate::support::binary::Ran {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        let store = self.text("store");
        let fixed = ["poll", "--store", &store, "--catalog", &source];
        run([&fixed[..], more].concat())
    }

    fn signed(&self, version: &str) {
        self.poll(version, &["--signing-key", &self.text("a")]).exits(0);
    }
}

/// Returns all files of a folder except `status.json`, which records refusals too.
fn published(folder: &Path) -> catalogs::Files {
    if !folder.exists() {
        return Vec::new();
    }
    let mut files = catalogs::files(folder);
    files.retain(|(path, _)| path.starts_with("catalogs") && !path.ends_with("status.json"));
    files
}

#[test]
fn keygen_writes_private_file_and_never_overwrites() {
    let work = Work::new();
    let mode = |name: &str| fs::metadata(work.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a.pub") & 0o600), (0o600, 0o600));
    let before = fs::read(work.path("a")).unwrap();
    run(["keygen", &work.text("a")]).exits(1);
    fs::remove_file(work.path("a")).unwrap();
    run(["keygen", &work.text("a")]).exits(1);
    assert!(!work.path("a").exists(), "the public key of another one is beside it");
    fs::write(work.path("a"), before).unwrap();
    work.signed("v1");
    let swapped = work.poll("v1", &["--signing-key", &work.text("a.pub")]).exits(1);
    assert!(swapped.stderr.contains("no PRIVATE KEY"), "{swapped:?}");
    let swapped = work.poll("v1", &["--verify-key", &work.text("a")]).exits(1);
    assert!(swapped.stderr.contains("private key"), "{swapped:?}");
    assert!(!swapped.stderr.contains("BEGIN"), "{swapped:?}");
}

#[test]
fn sync_with_verify_key_copies_only_signed_states() {
    let work = Work::new();
    work.signed("v1");
    let sync = |more: &[&str]| {
        let (from, to) = (work.text("store"), work.text("copy"));
        run([&["sync", &from, &to, "--json"][..], more].concat())
    };
    let (a, b) = (work.text("a.pub"), work.text("b.pub"));
    let refused = sync(&["--verify-key", &b]).exits(1);
    assert!(refused.stdout.contains("none of these keys is trusted"), "{refused:?}");
    assert!(published(&work.path("copy")).is_empty());
    sync(&["--verify-key", &b, "--verify-key", &a]).exits(0);
    sync(&["--verify-key", &a]).exits(0);
    sync(&["--verify-key", &b]).exits(1);
    let pointer = |store: &str| fs::read(work.path(store).join("catalogs/demo/current.json")).unwrap();
    assert_eq!(pointer("copy"), pointer("store"), "the signature is copied untouched");

    let altered = String::from_utf8(pointer("store"))
        .unwrap()
        .replace("\"serial\": 1", "\"serial\": 2");
    fs::write(work.path("store/catalogs/demo/current.json"), altered).unwrap();
    let before = published(&work.path("copy"));
    let refused = sync(&["--verify-key", &a]).exits(1);
    assert!(refused.stdout.contains("was altered after the key"), "{refused:?}");
    assert_eq!(published(&work.path("copy")), before);
}

#[test]
fn import_with_verify_key_accepts_only_signed_states() {
    let work = Work::new();
    work.signed("v1");
    let (store, archive) = (work.text("store"), work.text("a.tar"));
    run(["export", "--store", &store, "--to", &archive]).exits(0);
    let import = |key: &str| {
        let (to, key) = (work.text("high"), work.text(key));
        run(["import", "--store", &to, "--verify-key", &key, &archive])
    };
    let refused = import("b.pub").exits(1);
    assert!(refused.stderr.contains("none of these keys is trusted"), "{refused:?}");
    assert!(published(&work.path("high")).is_empty());
    import("a.pub").exits(0);
}

#[test]
fn signature_of_one_catalog_is_invalid_for_another() {
    let work = Work::new();
    work.signed("v1");
    let demo = work.path("store/catalogs/demo");
    let other = work.path("store/catalogs/other");
    fs::create_dir(&other).unwrap();
    fs::copy(demo.join("current.json"), other.join("current.json")).unwrap();
    let (from, to, key) = (work.text("store"), work.text("copy"), work.text("a.pub"));
    let refused = run(["sync", &from, &to, "other", "--json", "--verify-key", &key]).exits(1);
    assert!(refused.stdout.contains("signed for another catalog"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_with_verify_key_keeps_last_verified_state() {
    let work = Work::new();
    work.signed("v1");
    let start = |key: &str| {
        let (store, key) = (work.text("store"), work.text(key));
        Server::start(["serve", "--no-poll", "--store", &store, "--verify-key", &key])
    };
    let server = start("a.pub");
    let hash = |server: &Server| format!("{}/catalogs/demo/content-hash", server.url);
    let first = http::text(&hash(&server)).await;

    let pointer = work.path("store/catalogs/demo/current.json");
    let signed = fs::read(&pointer).unwrap();
    let mut unsigned = Current::from_bytes(&signed).unwrap();
    unsigned.signatures.clear();
    unsigned.content_hash = model::Sha256::of(b"another content");
    fs::write(&pointer, unsigned.to_bytes()).unwrap();
    for _ in 0..3 {
        assert_eq!(http::text(&hash(&server)).await, first);
    }
    server.wait_for(|line| line.contains("serving the last verified one").then_some(()));
    assert_eq!(http::get(&hash(&start("a.pub")), &[]).await.status(), 503);
    assert_eq!(http::get(&hash(&start("b.pub")), &[]).await.status(), 503);

    fs::write(&pointer, signed).unwrap();
    work.signed("v2");
    assert_ne!(http::text(&hash(&server)).await, first);
}

#[test]
fn config_keys_sign_and_verify() {
    let work = Work::new();
    let name: CatalogName = "demo".parse().unwrap();
    let config = work.path("catalogs.yaml");
    let inline = fs::read_to_string(work.path("b.pub")).unwrap();
    let text = serde_json::json!({
        "store": work.text("store"),
        "signing": {"keys": [work.text("a")]},
        "trust": {"keys": [inline]},
        "catalogs": [{"name": name.as_str(), "source": format!("oci:{}:v1", catalogs::example_layout().display())}],
    });
    fs::write(&config, text.to_string()).unwrap();
    run(["poll", "--config", &work.text("catalogs.yaml")]).exits(0);
    let listed = run(["ls", "--store", &work.text("store"), "--json"]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed[0]["current"]["signatures"].as_array().unwrap().len(), 1);

    let wrong = serde_json::json!({"signing": {"keys": [work.text("none"), inline]}, "trust": {"keys": ["/none"]}});
    fs::write(&config, wrong.to_string()).unwrap();
    let stderr = run(["poll", "--config", &work.text("catalogs.yaml")]).exits(1).stderr;
    for part in [
        "signing: ",
        "none cannot be read",
        "name its file",
        "trust: /none cannot be read",
    ] {
        assert!(stderr.contains(part), "{stderr}");
    }
}
