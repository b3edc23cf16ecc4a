//! Signatures of published states: made by `poll` and `rollback`, verified by `serve`, `sync` and
//! `import`.

use std::{fs, os::unix::fs::PermissionsExt};

use model::{Current, Document as _, Key, Outcome};
use publish::{MirrorSettings, PollError, PublishError, Report};
use serde_json::json;
use store::{DOCUMENT_MAX, StoreExt};
use trust::{Signer, SigningKey, Trust};
use upkeep::RollbackOptions;

use crate::support::binary::Server;
use crate::support::site::{Site, ten, ten_but};
use crate::support::work::Work;

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

fn lacks_key(report: &Report) {
    let is_refused = matches!(report.error, Some(PollError::Publish(PublishError::NoKey)));
    assert!(is_refused, "{report:?}");
}

impl Site {
    async fn is_signed_by(&self, key: &SigningKey) -> bool {
        let (bytes, _) = self
            .store
            .read_all(&self.pointer(), DOCUMENT_MAX)
            .await
            .unwrap();
        let trust = Trust::new(vec![key.public()]);
        trust.verify(&self.catalog.name, &bytes).is_ok()
    }

    fn pointer(&self) -> Key {
        Key::Current(self.catalog.name.clone())
    }

    async fn forge(&self, forge: impl FnOnce(&mut Current)) {
        let mut current = self.current().await;
        forge(&mut current);
        self.put(&self.pointer(), current.to_bytes()).await;
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
    assert_eq!(
        (report.outcome, report.serial),
        (Outcome::Published, Some(8))
    );
    let after = site.current().await;
    assert_eq!(after.content_hash, honest.content_hash);
    assert!(
        after.previous.is_empty(),
        "a forged history is not made one's own"
    );
    assert!(site.is_signed_by(&key).await);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_with_new_key_publishes_unsigned_state_anew_once() {
    let key = key();
    let mut site = Site::published().await;
    site.restart_with(signing(&[&key]));
    let report = site.poll().await;
    assert_eq!(
        (report.outcome, report.serial),
        (Outcome::Published, Some(2))
    );
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
    lacks_key(&site.poll().await);
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

    lacks_key(&back(None).await);
    let error = back(Some(signer(&[&other]))).await.error_text().unwrap();
    assert!(
        error.starts_with("cannot roll back: what is published is not signed"),
        "{error}"
    );
    assert_eq!(site.current().await, second);

    // The signed history names the snapshot by the hash of its bytes.
    let snapshot = first.snapshot.key();
    let (honest, _) = site.store.read_all(&snapshot, DOCUMENT_MAX).await.unwrap();
    site.put(&snapshot, [&honest[..], b"\n"].concat()).await;
    let error = back(Some(signer(&[&key]))).await.error_text().unwrap();
    let expected = format!(
        "cannot roll back: 1 objects of {} cannot be served",
        first.content_hash
    );
    assert!(error.starts_with(&expected), "{error}");
    site.put(&snapshot, honest).await;
    let report = back(Some(signer(&[&key]))).await;
    assert_eq!(
        (report.outcome, report.serial),
        (Outcome::Published, Some(3))
    );
    assert_eq!(site.current().await.content_hash, first.content_hash);
    assert!(site.is_signed_by(&key).await);
}

/// Returns a folder with the keys `a` and `b`, and a store with the first version, signed by `a`.
fn signed_by_a() -> Work {
    let work = Work::new();
    work.plays("0 keygen a\n0 keygen b\n0 poll --store store --catalog demo=oci:example:v1 --signing-key a");
    work
}

const POINTER: &str = "store/catalogs/demo/current.json";

#[test]
fn keygen_writes_private_file_and_never_overwrites() {
    let work = signed_by_a();
    let mode = |name: &str| fs::metadata(work.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a.pub") & 0o600), (0o600, 0o600));
    let poll = "1 poll --store store --catalog demo=oci:example:v1";
    work.plays(&format!(
        "1 keygen a
         {poll} --signing-key a.pub
         ! no PRIVATE KEY
         {poll} --verify-key a
         ! private key
         - BEGIN"
    ));
    fs::remove_file(work.path("a")).unwrap();
    work.run("keygen a").exits(1);
    assert!(
        !work.exists("a"),
        "the public key of another one is beside it"
    );
}

#[test]
fn sync_and_import_with_verify_key_accept_only_signed_states() {
    let work = signed_by_a();
    work.run("export --store store --to a.tar").exits(0);
    for copy in ["sync store copy", "import --store copy a.tar"] {
        work.plays(&format!(
            "1 {copy} --verify-key b.pub\n! none of these keys is trusted"
        ));
        assert!(!work.exists("copy/catalogs/demo/current.json"));
        work.plays(&format!(
            "0 {copy} --verify-key b.pub --verify-key a.pub
             1 {copy} --verify-key b.pub"
        ));
        let copied = work.read("copy/catalogs/demo/current.json");
        assert_eq!(
            copied,
            work.read(POINTER),
            "the signature is copied untouched"
        );
        fs::remove_dir_all(work.path("copy")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_with_verify_key_keeps_last_verified_state() {
    const HASH: &str = "/catalogs/demo/content-hash";
    let work = signed_by_a();
    let start = |key: &str| -> Server { work.serve(&format!("--verify-key {key}")) };
    let server = start("a.pub");
    let first = server.text(HASH).await;
    assert_eq!(start("b.pub").status(HASH).await, 503);
    let altered = work.read(POINTER).replace(first.trim(), &"0".repeat(64));
    work.write(POINTER, altered);
    assert_eq!(server.text(HASH).await, first);
    server.says("serving the last verified one");
}

#[test]
fn config_keys_sign_and_verify() {
    let work = signed_by_a();
    let inline = work.read("b.pub");
    let text = json!({
        "store": "configured",
        "signing": {"keys": ["a"]},
        "trust": {"keys": [inline]},
        "catalogs": [{"name": "demo", "source": "oci:example:v1"}],
    });
    work.write("catalogs.yaml", text.to_string());
    work.run("poll --config catalogs.yaml").exits(0);
    let signatures = work.json("configured/catalogs/demo/current.json")["signatures"].clone();
    assert_eq!(signatures.as_array().map(Vec::len), Some(1));
}
