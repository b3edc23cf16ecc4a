//! Signatures of published states: made by `poll` and `rollback`, verified by `serve`, `sync` and `import`.

use std::{fs, os::unix::fs::PermissionsExt};

use model::{Current, Document, Key, Outcome};
use publish::{MirrorSettings, PollError, PublishError};
use store::{Condition, DOCUMENT_MAX, Store, StoreExt};
use trust::{Signer, SigningKey, Trust};
use upkeep::RollbackOptions;

use crate::support::{
    binary::{Ran, Server},
    catalogs::{self, Files},
    site::{Site, ten, ten_but},
    work::Work,
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
    let site = Site::published_with(signing(&[&key])).await;
    assert!(site.is_signed_by(&key).await);
    let before = site.current().await;
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.current().await, before);

    let mut backwards = ten();
    backwards.reverse();
    site.push(&backwards);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert!(site.is_signed_by(&key).await);
    site.push(&ten_but(4, 4));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert!(site.is_signed_by(&key).await);
    assert_eq!(site.current().await.previous.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_with_both_keys_replaces_a_key() {
    let (old, new) = (key(), key());
    let mut site = Site::published_with(signing(&[&old])).await;
    site.restart_with(signing(&[&old, &new]));
    // Signed again, not pulled again.
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert!(site.is_signed_by(&old).await && site.is_signed_by(&new).await);
    site.restart_with(signing(&[&new]));
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert!(!site.is_signed_by(&old).await && site.is_signed_by(&new).await);
    assert_eq!(site.current().await.serial, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_publishes_forged_pointer_anew() {
    let key = key();
    let site = Site::published_with(signing(&[&key])).await;
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
    let mut site = Site::published().await;
    site.restart_with(signing(&[&key]));
    let report = site.poll().await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(2)));
    assert!(site.is_signed_by(&key).await);
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_without_key_does_not_replace_signed_pointer() {
    let key = key();
    let mut site = Site::published_with(signing(&[&key])).await;
    let signed = site.current().await;
    site.restart_with(MirrorSettings::default());
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.current().await, signed, "there is nothing new to sign");

    site.push(&ten()[..9].to_vec());
    let error = site.poll().await.error;
    assert!(
        matches!(error, Some(PollError::Publish(PublishError::NoKey))),
        "{error:?}"
    );
    assert_eq!(site.current().await, signed);
    let forced = site.poll_forced().await;
    assert_eq!(forced.outcome, Outcome::Published);
    assert!(site.current().await.signatures.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_signs_only_verified_states() {
    let (key, other) = (key(), key());
    let site = Site::published_with(signing(&[&key])).await;
    let first = site.current().await;
    site.push(&ten()[..9].to_vec());
    site.poll().await;
    let second = site.current().await;
    let back = async |signer: Option<Signer>| {
        let options = RollbackOptions {
            signer,
            ..RollbackOptions::default()
        };
        site.rollback(options).await
    };

    let error = back(None).await.error;
    assert!(
        matches!(error, Some(PollError::Publish(PublishError::NoKey))),
        "{error:?}"
    );
    let error = back(Some(signer(&[&other]))).await.error_text().unwrap();
    assert!(
        error.starts_with("cannot roll back: what is published is not signed"),
        "{error}"
    );
    assert_eq!(site.current().await, second);

    // The signed history names the snapshot by the hash of its bytes.
    let snapshot = first.snapshot.key();
    let (honest, _) = site.store.read_all(&snapshot, DOCUMENT_MAX).await.unwrap();
    let put = async |bytes: Vec<u8>| {
        let put = site.store.put(&snapshot, bytes.into(), Condition::Always);
        put.await.unwrap();
    };
    put([&honest[..], b"\n"].concat()).await;
    let error = back(Some(signer(&[&key]))).await.error_text().unwrap();
    let expected = format!("cannot roll back: 1 objects of {} cannot be served", first.content_hash);
    assert!(error.starts_with(&expected), "{error}");
    put(honest.into()).await;
    let report = back(Some(signer(&[&key]))).await;
    assert_eq!((report.outcome, report.serial), (Outcome::Published, Some(3)));
    assert_eq!(site.current().await.content_hash, first.content_hash);
    assert!(site.is_signed_by(&key).await);
}

/// Returns a folder with the keys `a` and `b`.
fn with_keys() -> Work {
    let work = Work::new();
    for name in ["a", "b"] {
        work.run(&format!("keygen {name}")).exits(0);
    }
    work
}

impl Work {
    fn poll_with(&self, version: &str, option: &str) -> Ran {
        self.run(&format!(
            "poll --store store --catalog demo=oci:example:{version} {option}"
        ))
    }

    /// Publishes a version, signed by the key `a`.
    fn signed(&self, version: &str) {
        self.poll_with(version, "--signing-key a").exits(0);
    }

    /// Returns all published files of a store except `status.json`, which records refusals too.
    fn published_files(&self, store: &str) -> Files {
        if !self.exists(store) {
            return Vec::new();
        }
        let mut files = catalogs::files(&self.path(store));
        files.retain(|(path, _)| path.starts_with("catalogs") && !path.ends_with("status.json"));
        files
    }
}

#[test]
fn keygen_writes_private_file_and_never_overwrites() {
    let work = with_keys();
    let mode = |name: &str| fs::metadata(work.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a.pub") & 0o600), (0o600, 0o600));
    let before = work.read("a");
    work.run("keygen a").exits(1);
    fs::remove_file(work.path("a")).unwrap();
    work.run("keygen a").exits(1);
    assert!(!work.exists("a"), "the public key of another one is beside it");
    work.write("a", before);
    work.signed("v1");
    let swapped = work.poll_with("v1", "--signing-key a.pub").exits(1);
    swapped.complains("no PRIVATE KEY");
    let swapped = work.poll_with("v1", "--verify-key a").exits(1);
    swapped.complains("private key");
    assert!(!swapped.stderr.contains("BEGIN"), "{swapped:?}");
}

#[test]
fn sync_with_verify_key_copies_only_signed_states() {
    let work = with_keys();
    work.signed("v1");
    work.plays("1 sync store copy --json --verify-key b.pub\n> none of these keys is trusted");
    assert!(work.published_files("copy").is_empty());
    work.plays(
        "0 sync store copy --json --verify-key b.pub --verify-key a.pub
         0 sync store copy --json --verify-key a.pub
         1 sync store copy --json --verify-key b.pub",
    );
    let pointer = work.read("store/catalogs/demo/current.json");
    let copied = work.read("copy/catalogs/demo/current.json");
    assert_eq!(copied, pointer, "the signature is copied untouched");

    let altered = pointer.replace("\"serial\": 1", "\"serial\": 2");
    work.write("store/catalogs/demo/current.json", altered);
    let before = work.published_files("copy");
    work.plays("1 sync store copy --json --verify-key a.pub\n> was altered after the key");
    assert_eq!(work.published_files("copy"), before);
}

#[test]
fn import_with_verify_key_accepts_only_signed_states() {
    let work = with_keys();
    work.signed("v1");
    work.run("export --store store --to a.tar").exits(0);
    let import = |key: &str| work.run(&format!("import --store high --verify-key {key} a.tar"));
    import("b.pub").exits(1).complains("none of these keys is trusted");
    assert!(work.published_files("high").is_empty());
    import("a.pub").exits(0);
}

#[test]
fn signature_of_one_catalog_is_invalid_for_another() {
    let work = with_keys();
    work.signed("v1");
    let signed = work.read("store/catalogs/demo/current.json");
    work.write("store/catalogs/other/current.json", signed);
    let refused = work.run("sync store copy other --json --verify-key a.pub").exits(1);
    refused.prints("signed for another catalog");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_with_verify_key_keeps_last_verified_state() {
    const HASH: &str = "/catalogs/demo/content-hash";
    let work = with_keys();
    work.signed("v1");
    let start = |key: &str| -> Server { work.serve(&format!("--verify-key {key}")) };
    let server = start("a.pub");
    let first = server.text(HASH).await;

    let signed = work.read("store/catalogs/demo/current.json");
    let mut unsigned = Current::from_bytes(signed.as_bytes()).unwrap();
    unsigned.signatures.clear();
    unsigned.content_hash = model::Sha256::of(b"another content");
    work.write("store/catalogs/demo/current.json", unsigned.to_bytes());
    for _ in 0..3 {
        assert_eq!(server.text(HASH).await, first);
    }
    server.says("serving the last verified one");
    for key in ["a.pub", "b.pub"] {
        assert_eq!(start(key).status(HASH).await, 503);
    }

    work.write("store/catalogs/demo/current.json", signed);
    work.signed("v2");
    assert_ne!(server.text(HASH).await, first);
}

#[test]
fn config_keys_sign_and_verify() {
    let work = with_keys();
    let inline = work.read("b.pub");
    let text = serde_json::json!({
        "store": "store",
        "signing": {"keys": ["a"]},
        "trust": {"keys": [inline]},
        "catalogs": [{"name": "demo", "source": "oci:example:v1"}],
    });
    work.write("catalogs.yaml", text.to_string());
    work.run("poll --config catalogs.yaml").exits(0);
    let listed = work.run("ls --store store --json").exits(0).json();
    assert_eq!(listed[0]["current"]["signatures"].as_array().unwrap().len(), 1);

    let wrong = serde_json::json!({"signing": {"keys": ["none", inline]}, "trust": {"keys": ["/none"]}});
    work.write("catalogs.yaml", wrong.to_string());
    work.plays(
        "1 poll --config catalogs.yaml
         ! signing: none cannot be read
         ! name its file
         ! trust: /none cannot be read",
    );
}
