//! An image is published only if it is signed as the policy of its catalog asks.

use layout::{Key, Outcome, Status};
use policy::{Files, ImageName, Policy, Rejection};
use poll::{Look, PollError, Target, Terms, rollback, rollback_on};
use seal::PublicKey;
use serde_json::json;
use store::StoreExt;
use testkit::{Cosign, Fault, Image, Kind};

use crate::support::{
    binary::run,
    catalogs,
    site::{Site, ten},
};

/// The repository that is signed for, whatever is pulled.
const SIGNED_FOR: &str = "any.io/name";

fn public(signer: &Cosign) -> PublicKey {
    PublicKey::from_der(signer.public()).unwrap()
}

impl Site {
    /// One whose image is there and signed as it is asked for.
    async fn signed_by(signer: &Cosign) -> (Self, Image) {
        let mut site = Self::start().await;
        site.ask_for(&[signer]);
        let image = catalogs::image(&ten());
        site.push_image(&image);
        site.sign(signer, &image);
        (site, image)
    }

    /// Asks for a signature by one of these.
    fn ask_for(&mut self, signers: &[&Cosign]) {
        let keys = signers.iter().map(|signer| public(signer)).collect();
        self.catalog.policy = Some(Policy::cosign(self.image_name(), keys));
    }

    fn image_name(&self) -> ImageName {
        ImageName {
            repository: format!("{}/ns/catalog", self.registry.host()),
            tag: Some("latest".to_owned()),
            digest: None,
        }
    }

    fn sign(&self, signer: &Cosign, image: &Image) {
        let tag = format!("{}.sig", image.digest.replace(':', "-"));
        self.registry
            .push("ns/catalog", &tag, &signer.signature(&image.digest, SIGNED_FOR));
    }

    async fn verified_by(&self) -> Vec<String> {
        let verified = self.current().await.source.verified.expect("there is a policy");
        verified.by.into_iter().map(|by| by.key).collect()
    }
}

fn unverified() -> Terms {
    Terms {
        unverified: true,
        ..Terms::default()
    }
}

fn changed() -> Image {
    let mut files = ten();
    files[4] = catalogs::package("p4", 4);
    catalogs::image(&files)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_before_it_is_signed_by_the_right_key() {
    let (right, wrong) = (Cosign::new(), Cosign::new());
    let mut site = Site::start().await;
    site.ask_for(&[&right]);
    let image = catalogs::image(&ten());
    site.push_image(&image);
    let report = site.turn().await;
    assert_eq!(report.outcome, Outcome::Refused);
    assert!(matches!(
        report.error,
        Some(PollError::Rejected(Rejection::Unsigned { .. }))
    ));
    site.sign(&wrong, &image);
    let report = site.turn().await;
    assert!(matches!(
        report.error,
        Some(PollError::Rejected(Rejection::Flawed { .. }))
    ));
    assert_eq!(
        site.registry.count(Kind::Blob),
        1,
        "the payload of the signature, and nothing of the image"
    );
    let written: Vec<Key> = site.store.written();
    assert!(written.iter().all(|key| matches!(key, Key::Status(_))), "{written:?}");

    site.sign(&right, &image);
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    assert_eq!(site.verified_by().await, [public(&right).id().to_string()]);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_verified_is_not_asked_for_again_until_the_policy_is_another() {
    let (old, new) = (Cosign::new(), Cosign::new());
    let (mut site, image) = Site::signed_by(&old).await;
    site.turn().await;
    site.registry.reset();
    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "one HEAD");

    // A key is replaced: what is published stays, and is said not to be what is asked for, until it is signed again.
    site.ask_for(&[&new]);
    let before = site.current().await;
    let report = site.turn().await;
    assert_eq!(report.outcome, Outcome::Refused);
    assert_eq!(site.current().await, before);
    let Look::Done(report) = site.mirror.look(&site.catalog, None).await else {
        panic!("there is nothing to pull")
    };
    assert_eq!(report.outcome, Outcome::Refused);
    site.sign(&new, &image);
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    assert_eq!(site.verified_by().await, [public(&new).id().to_string()]);
    assert_eq!(site.current().await.serial, 1);
    site.catalog.policy = None;
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    assert_eq!(site.current().await.source.verified, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_is_not_signed_leaves_the_old_state() {
    let key = Cosign::new();
    let (site, image) = Site::signed_by(&key).await;
    site.turn().await;
    let before = site.current().await;
    let next = changed();
    site.push_image(&next);
    assert_eq!(site.turn().await.outcome, Outcome::Refused);
    assert_eq!(site.current().await, before);
    // The signature of the old image under the new one's tag.
    let tag = format!("{}.sig", next.digest.replace(':', "-"));
    site.registry
        .push("ns/catalog", &tag, &key.signature(&image.digest, SIGNED_FOR));
    let report = site.turn().await;
    assert!(
        report.error_text().unwrap().contains("signs another image"),
        "{report:?}"
    );
    let status = Key::Status(site.catalog.name.clone());
    let (status, _) = site.store.read_document::<Status>(&status).await.unwrap().unwrap();
    assert!(status.error.unwrap().contains("signs another image"));
    assert_eq!(site.current().await, before);
    site.sign(&key, &next);
    assert_eq!(site.turn().await.outcome, Outcome::Published);
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_that_cannot_be_fetched_are_as_good_as_none() {
    let key = Cosign::new();
    let (site, _) = Site::signed_by(&key).await;
    for fault in [Fault::Status(403, None), Fault::Body("{".into())] {
        site.registry.script(Kind::Manifest, fault);
        let report = site.turn().await;
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(matches!(report.error, Some(PollError::Signatures(_))), "{report:?}");
    }
    site.registry.script(Kind::Blob, Fault::Body("another payload".into()));
    let report = site.turn().await;
    assert!(matches!(report.error, Some(PollError::Signatures(_))), "{report:?}");
    assert_eq!(site.turn().await.outcome, Outcome::Published);
}

/// Podman and CRI-O ask for the signature of what they pull of an index, `cosign verify` for that of the index.
#[tokio::test(flavor = "multi_thread")]
async fn of_an_index_a_policy_json_takes_the_manifest_and_cosign_the_index() {
    let key = Cosign::new();
    let mut site = Site::start().await;
    let image = catalogs::image(&ten());
    let other = changed();
    let index = testkit::index(&[("linux/s390x", &other), ("linux/amd64", &image)]);
    site.push_image(&index);
    let policy = |site: &Site| {
        let identity = json!({"type": "exactRepository", "dockerRepository": SIGNED_FOR});
        let requirement = json!({"type": "sigstoreSigned", "keyPath": "/key", "signedIdentity": identity});
        let text = json!({"default": [requirement]}).to_string();
        let files = Files {
            read: &|_| Ok(public(&key).to_pem().into_bytes()),
            keyrings: None,
        };
        Policy::containers(site.image_name(), text.as_bytes(), &files).unwrap()
    };
    site.ask_for(&[&key]);
    let by_cosign = site.catalog.policy.clone();
    let by_policy = Some(policy(&site));
    site.sign(&key, &other);
    site.catalog.policy = by_policy.clone();
    assert_eq!(site.turn().await.outcome, Outcome::Refused, "another platform's");
    site.sign(&key, &image);
    site.catalog.policy = by_cosign.clone();
    assert_eq!(site.turn().await.outcome, Outcome::Refused, "not the index");
    site.catalog.policy = by_policy;
    assert_eq!(site.turn().await.outcome, Outcome::Published);
    assert_eq!(site.current().await.source.digest, index.digest);
    site.registry.reset();
    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "one HEAD");
    site.catalog.policy = by_cosign;
    assert_eq!(site.turn().await.outcome, Outcome::Refused);
    site.sign(&key, &index);
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    assert_eq!(site.verified_by().await, [public(&key).id().to_string()]);
}

#[test]
fn a_configuration_that_cannot_be_understood_is_told_at_once() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("catalogs.yaml");
    let pem = public(&Cosign::new()).to_pem();
    let wrong = |text: serde_json::Value| {
        std::fs::write(&file, text.to_string()).unwrap();
        let store = folder.path().join("store");
        let arguments = [
            "poll",
            "--config",
            file.to_str().unwrap(),
            "--store",
            store.to_str().unwrap(),
        ];
        run(arguments).exits(1).stderr
    };
    let catalog =
        |source: &str, signature: serde_json::Value| json!({"name": "a", "source": source, "signature": signature});
    let cosign = json!({"cosign": {"keys": [pem]}});
    for (catalog, part) in [
        (
            catalog("oci:somewhere", cosign.clone()),
            "is not in a registry, so nothing vouches for it",
        ),
        (catalog("dir:somewhere", cosign), "insecureAcceptAnything"),
        (catalog("a.io/b:c", json!({})), "one of cosign and policy"),
        (catalog("a.io/b:c", json!("acceptAnything")), "signature"),
        (
            catalog("a.io/b:c", json!({"cosign": {"keys": []}})),
            "cosign.keys is empty",
        ),
        (
            catalog("a.io/b:c", json!({"cosign": {"keys": ["/none"]}})),
            "/none cannot be read",
        ),
        (
            catalog(
                "a.io/b:c",
                json!({"cosign": {"keys": ["-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----"]}}),
            ),
            "private key",
        ),
        (catalog("a.io/b:c", json!({"policy": "/none"})), "/none cannot be read"),
        (catalog("a.io/b:c", json!({"keys": ["x"]})), "unknown field"),
    ] {
        let told = wrong(json!({"catalogs": [catalog]}));
        assert!(told.contains(part) && told.contains("catalog a"), "{part}: {told}");
    }
    let told = wrong(json!({
        "signature": {"cosign": {"keys": [pem]}},
        "catalogs": [{"name": "a", "source": "dir:x"}, {"name": "b", "source": "dir:y", "signature": "insecureAcceptAnything"}],
    }));
    assert!(
        told.contains("for the catalog a: ") && !told.contains("for the catalog b: "),
        "{told}"
    );
}

/// A policy holds for what is served, wherever that comes from.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_brings_back_what_was_verified_under_the_same_policy() {
    let (key, new) = (Cosign::new(), Cosign::new());
    let mut site = Site::start().await;
    let publish = async |site: &Site, bundles, signer: Option<&Cosign>| {
        let mut files = ten();
        files[4] = catalogs::package("p4", bundles);
        let image = catalogs::image(&files);
        site.push_image(&image);
        signer.iter().for_each(|signer| site.sign(signer, &image));
        let report = site.turn().await;
        assert_eq!(report.outcome, Outcome::Published);
        (Target::Hash(report.content_hash.unwrap().to_string()), image)
    };
    let back = async |site: &Site, target| rollback(&site.store, &site.catalog.name, target, None).await;
    let (unsigned, _) = publish(&site, 4, None).await;
    site.ask_for(&[&key]);
    let (signed, _) = publish(&site, 5, Some(&key)).await;
    let before = site.current().await;

    let refused = back(&site, &unsigned).await;
    let text = refused.error_text().unwrap();
    assert!(
        text.contains("was not verified") && text.contains("`unverified`"),
        "{text}"
    );
    assert_eq!(site.current().await, before);

    // Whoever insists gets it, and nobody is told that it was verified: not now, and not once it is history.
    let report = rollback_on(&site.store, &site.catalog.name, &unsigned, None, &unverified()).await;
    assert_eq!(report.outcome, Outcome::Published);
    let brought_back = site.current().await;
    assert_eq!((&brought_back.source, brought_back.verified()), (&before.source, None));
    assert_eq!(site.turn().await.outcome, Outcome::Unchanged);
    let (newest, image) = publish(&site, 6, Some(&key)).await;
    assert!(site.current().await.verified().is_some());
    assert!(
        back(&site, &unsigned)
            .await
            .error_text()
            .unwrap()
            .contains("was not verified")
    );

    assert_eq!(back(&site, &signed).await.outcome, Outcome::Published);
    assert_eq!(site.current().await.verified(), before.verified());
    assert_eq!(back(&site, &newest).await.outcome, Outcome::Published);

    site.ask_for(&[&new]);
    site.sign(&new, &image);
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    let text = back(&site, &signed).await.error_text().unwrap();
    assert!(text.contains("under another policy"), "{text}");
    site.catalog.policy = None;
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    assert_eq!(back(&site, &unsigned).await.outcome, Outcome::Published);
}

/// Then it is no rollback any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_brought_back_and_is_pulled_after_all_is_verified_as_its_source_is() {
    let key = Cosign::new();
    let mut site = Site::start().await;
    let image = catalogs::image(&ten());
    site.push_image(&image);
    site.turn().await;
    site.ask_for(&[&key]);
    let changed = changed();
    site.sign(&key, &changed);
    site.push_image(&changed);
    site.turn().await;
    rollback_on(&site.store, &site.catalog.name, &Target::Previous, None, &unverified()).await;
    site.sign(&key, &image);
    site.push_image(&image);
    assert_eq!(site.turn().await.outcome, Outcome::Retagged);
    let current = site.current().await;
    assert_eq!((current.brought_back, current.serial), (None, 3));
    assert!(site.current().await.verified().is_some());
}
