//! Signatures of images: an image is published only if it satisfies the policy of its catalog.

use model::{ImageReference, Key, Outcome};
use publish::{PollError, Report, UpdateCheck};
use serde_json::json;
use testkit::{Cosign, Fault, Image, Kind};
use trust::PublicKey;
use trust::policy::{KeySources, Policy, VerifyError};
use upkeep::RollbackOptions;

use crate::support::catalogs;
use crate::support::site::{Site, ten, ten_but};

/// Repository that the signatures name.
const SIGNED_FOR: &str = "any.io/name";

fn public(signer: &Cosign) -> PublicKey {
    PublicKey::from_der(signer.public()).unwrap()
}

impl Site {
    /// Starts a mirror of one signed image, with a policy that accepts the signature.
    async fn signed_by(signer: &Cosign) -> (Self, Image) {
        let mut site = Self::start().await;
        site.ask_for(&[signer]);
        let image = catalogs::image(&ten());
        site.push_image(&image);
        site.sign(signer, &image);
        (site, image)
    }

    /// Sets a policy that accepts a signature by any of these keys.
    fn ask_for(&mut self, signers: &[&Cosign]) {
        self.set_policy(Some(&self.by_cosign(signers)));
    }

    fn by_cosign(&self, signers: &[&Cosign]) -> Policy {
        let keys = signers.iter().map(|signer| public(signer)).collect();
        Policy::cosign(self.image_name(), keys)
    }

    fn set_policy(&mut self, policy: Option<&Policy>) {
        for pulled in self.catalog.source.pulled_sources_mut() {
            pulled.policy = policy.cloned();
        }
    }

    fn image_name(&self) -> ImageReference {
        ImageReference::new(&format!("{}/ns/catalog:latest", self.registry.host()))
    }

    fn sign(&self, signer: &Cosign, image: &Image) {
        let tag = format!("{}.sig", image.digest.replace(':', "-"));
        self.registry.push(
            "ns/catalog",
            &tag,
            &signer.signature(&image.digest, SIGNED_FOR),
        );
    }

    async fn verified_by(&self) -> Vec<String> {
        let verified = self
            .current()
            .await
            .source
            .verified
            .expect("there is a policy");
        verified.by.into_iter().map(|by| by.key).collect()
    }
}

async fn rollback(site: &Site, target: Option<&str>, unverified: bool) -> Report {
    let options = RollbackOptions {
        unverified,
        target: target.map(ToOwned::to_owned),
        ..RollbackOptions::default()
    };
    site.rollback(options).await
}

fn changed() -> Image {
    catalogs::image(&ten_but(4, 4))
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_image_without_trusted_signature_publishes_nothing() {
    let (right, wrong) = (Cosign::new(), Cosign::new());
    let mut site = Site::start().await;
    site.ask_for(&[&right]);
    let image = catalogs::image(&ten());
    site.push_image(&image);
    let rejected = async || {
        let report = site.poll().await;
        assert_eq!(report.outcome, Outcome::Refused);
        assert_eq!(site.status().await.unwrap().error, report.error_text());
        let Some(PollError::Rejected(error)) = report.error else {
            panic!("{report:?}");
        };
        error
    };
    assert!(matches!(rejected().await, VerifyError::Unsigned { .. }));
    site.sign(&wrong, &image);
    assert!(matches!(rejected().await, VerifyError::Invalid { .. }));
    // The payload of the signature, and nothing of the image.
    assert_eq!(site.registry.count(Kind::Blob), 1);
    let written: Vec<Key> = site.store.written();
    assert!(
        written.iter().all(|key| matches!(key, Key::Status(_))),
        "{written:?}"
    );

    site.sign(&right, &image);
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert_eq!(site.verified_by().await, [public(&right).id().to_string()]);
    site.is_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_verifies_again_only_when_policy_changes() {
    let (old, new) = (Cosign::new(), Cosign::new());
    let (mut site, image) = Site::signed_by(&old).await;
    site.poll().await;
    site.registry.reset();
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "one HEAD");

    // With another key the published state stays, and each poll fails until the image is signed
    // again.
    site.ask_for(&[&new]);
    let before = site.current().await;
    let report = site.poll().await;
    assert_eq!(report.outcome, Outcome::Refused);
    assert_eq!(site.current().await, before);
    let UpdateCheck::Done(report) = site.mirror.check_for_update(&site.catalog, None).await else {
        panic!("there is nothing to pull")
    };
    assert_eq!(report.outcome, Outcome::Refused);
    site.sign(&new, &image);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert_eq!(site.verified_by().await, [public(&new).id().to_string()]);
    assert_eq!(site.current().await.serial, 1);
    site.set_policy(None);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert_eq!(site.current().await.source.verified, None);
}

/// The registry fails, and is not taken for one without signatures.
#[tokio::test(flavor = "multi_thread")]
async fn poll_fails_when_signatures_cannot_be_fetched() {
    let key = Cosign::new();
    let (site, _) = Site::signed_by(&key).await;
    for (kind, fault) in [
        (Kind::Manifest, Fault::Status(403, None)),
        (Kind::Manifest, Fault::Body("{".into())),
        (Kind::Blob, Fault::Body("another payload".into())),
    ] {
        site.registry.script(kind, fault);
        let report = site.poll().await;
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(
            matches!(report.error, Some(PollError::Signatures(_))),
            "{report:?}"
        );
    }
    assert_eq!(site.poll().await.outcome, Outcome::Published);
}

/// Podman and CRI-O verify the manifest that they pull from an index. `cosign verify` verifies the
/// index.
#[tokio::test(flavor = "multi_thread")]
async fn index_is_verified_by_manifest_with_policy_and_by_index_with_cosign() {
    let key = Cosign::new();
    let mut site = Site::start().await;
    let image = catalogs::image(&ten());
    let other = changed();
    let index = testkit::index(&[("linux/s390x", &other), ("linux/amd64", &image)]);
    site.push_image(&index);
    let policy = |site: &Site| {
        let identity = json!({"type": "exactRepository", "dockerRepository": SIGNED_FOR});
        let requirement =
            json!({"type": "sigstoreSigned", "keyPath": "/key", "signedIdentity": identity});
        let text = json!({"default": [requirement]}).to_string();
        let files = KeySources {
            read: &|_| Ok(public(&key).to_pem().into_bytes()),
            keyrings: None,
        };
        Policy::containers(site.image_name(), text.as_bytes(), &files).unwrap()
    };
    let by_cosign = site.by_cosign(&[&key]);
    let by_policy = policy(&site);
    site.sign(&key, &other);
    site.set_policy(Some(&by_policy));
    assert_eq!(
        site.poll().await.outcome,
        Outcome::Refused,
        "another platform's"
    );
    site.sign(&key, &image);
    site.set_policy(Some(&by_cosign));
    assert_eq!(site.poll().await.outcome, Outcome::Refused, "not the index");
    site.set_policy(Some(&by_policy));
    assert_eq!(site.poll().await.outcome, Outcome::Published);
    assert_eq!(site.current().await.source.revision, index.digest);
    site.registry.reset();
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    assert_eq!(site.registry.requests().len(), 1, "one HEAD");
    site.set_policy(Some(&by_cosign));
    assert_eq!(site.poll().await.outcome, Outcome::Refused);
    site.sign(&key, &index);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert_eq!(site.verified_by().await, [public(&key).id().to_string()]);
}

/// The policy holds for every published state, also for one that a rollback publishes.
#[tokio::test(flavor = "multi_thread")]
async fn rollback_needs_verification_under_present_policy() {
    let (key, new) = (Cosign::new(), Cosign::new());
    let mut site = Site::start().await;
    let publish = async |site: &Site, bundles, signer: Option<&Cosign>| {
        let image = catalogs::image(&ten_but(4, bundles));
        site.push_image(&image);
        signer.iter().for_each(|signer| site.sign(signer, &image));
        let report = site.poll().await;
        assert_eq!(report.outcome, Outcome::Published);
        (report.content_hash.unwrap().to_string(), image)
    };
    let back = async |site: &Site, target: &str| rollback(site, Some(target), false).await;
    let (unsigned, _) = publish(&site, 4, None).await;
    site.ask_for(&[&key]);
    let (signed, _) = publish(&site, 5, Some(&key)).await;
    let before = site.current().await;

    let text = back(&site, &unsigned).await.error_text().unwrap();
    assert!(text.contains("was not verified"), "{text}");
    assert!(text.contains("`unverified`"), "{text}");
    assert_eq!(site.current().await, before);

    // With `unverified` it is published, and neither the pointer nor the history says that it was
    // verified.
    let report = rollback(&site, Some(&unsigned), true).await;
    assert_eq!(report.outcome, Outcome::Published);
    let rolled_back = site.current().await;
    assert_eq!(
        (&rolled_back.source, rolled_back.verified()),
        (&before.source, None)
    );
    assert_eq!(site.poll().await.outcome, Outcome::Unchanged);
    let (newest, image) = publish(&site, 6, Some(&key)).await;
    assert!(site.current().await.verified().is_some());
    let text = back(&site, &unsigned).await.error_text().unwrap();
    assert!(text.contains("was not verified"), "{text}");

    assert_eq!(back(&site, &signed).await.outcome, Outcome::Published);
    assert_eq!(site.current().await.verified(), before.verified());
    assert_eq!(back(&site, &newest).await.outcome, Outcome::Published);

    site.ask_for(&[&new]);
    site.sign(&new, &image);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    let text = back(&site, &signed).await.error_text().unwrap();
    assert!(text.contains("under another policy"), "{text}");
    site.set_policy(None);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    assert_eq!(back(&site, &unsigned).await.outcome, Outcome::Published);
}

/// The pointer is not marked as a rollback any more, because the source has the same content.
#[tokio::test(flavor = "multi_thread")]
async fn poll_of_rolled_back_content_records_verification_of_source() {
    let key = Cosign::new();
    let mut site = Site::start().await;
    let image = catalogs::image(&ten());
    site.push_image(&image);
    site.poll().await;
    site.ask_for(&[&key]);
    let changed = changed();
    site.sign(&key, &changed);
    site.push_image(&changed);
    site.poll().await;
    rollback(&site, None, true).await;
    site.sign(&key, &image);
    site.push_image(&image);
    assert_eq!(site.poll().await.outcome, Outcome::SourceDigestUpdated);
    let current = site.current().await;
    assert_eq!((current.rolled_back, current.serial), (None, 3));
    assert!(site.current().await.verified().is_some());
}
