#![doc = include_str!("README.md")]

mod containers;
mod cosign;
mod identity;
mod payload;
mod requirement;

use std::{fmt::Debug, sync::Arc};

pub use model::{AttachedSignature, ImageSignatures};
use model::{ImageReference, Sha256, Verified};

use crate::PublicKey;
use requirement::Requirement;

pub use containers::{KeySources, PolicyError};
pub use identity::IdentityRule;
pub use requirement::{SignatureError, VerifyError};

/// Requirements on the signatures of one image.
#[derive(Debug, Clone)]
pub struct Policy {
    image: ImageReference,
    requirements: Vec<Requirement>,
    /// True if a signature of the pulled manifest is enough, [`Policy::accepts_manifests`].
    accepts_manifests: bool,
}

/// Two policies are equal if they ask for the same.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl Eq for Policy {}

/// Name and digest of the image whose signatures are verified.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// Name under which the image is pulled.
    pub(crate) image: &'a ImageReference,
    /// Digest of the image, as `sha256:HEX`.
    pub(crate) digest: &'a str,
}

impl Policy {
    /// Creates a policy that one of the keys must have signed, as `cosign verify --key` checks it.
    pub fn cosign(image: ImageReference, keys: Vec<PublicKey>) -> Self {
        Self {
            image,
            requirements: vec![Requirement::Sigstore { keys, identity: None }],
            accepts_manifests: false,
        }
    }

    /// Returns true if a signature of the pulled manifest is enough when the image is an index. `policy.json` means that
    /// manifest, `cosign verify` means the index.
    pub const fn accepts_manifests(&self) -> bool {
        self.accepts_manifests
    }

    /// Returns true if the policy needs signatures of cosign.
    pub fn needs_cosign(&self) -> bool {
        let mut requirements = self.requirements.iter();
        requirements.any(|requirement| matches!(requirement, Requirement::Sigstore { .. }))
    }

    /// Returns true if the policy needs OpenPGP messages of simple signing.
    pub fn needs_simple(&self) -> bool {
        let mut requirements = self.requirements.iter();
        requirements.any(|requirement| matches!(requirement, Requirement::OpenPgp { .. }))
    }

    /// Returns a hash of the image name and all requirements. An image that was verified under another hash must be verified
    /// again.
    pub fn hash(&self) -> Sha256 {
        let mut text = format!("{} {}\n", self.image, self.accepts_manifests);
        self.requirements
            .iter()
            .for_each(|requirement| requirement.describe(&mut text));
        Sha256::of(text.as_bytes())
    }

    /// Verifies the image with this digest by its signatures. Returns the signers.
    ///
    /// # Errors
    /// Fails if a requirement is not met.
    pub fn verify(&self, digest: &str, signatures: &ImageSignatures) -> Result<Verified, VerifyError> {
        let image = &self.image;
        let subject = Subject { image, digest };
        let mut by = Vec::new();
        // All of them have to be met, as containers/image does (containers-policy.json(5)).
        for requirement in &self.requirements {
            let signed = requirement.evaluate(subject, signatures)?;
            by.extend(signed.filter(|signed| !by.contains(signed)));
        }
        Ok(Verified {
            policy: self.hash(),
            by,
        })
    }
}

/// Reader of OpenPGP keys, `openpgp::read_keyring`. A value, because that function brings ninety crates that some programs do
/// without.
pub type KeyringReader = fn(&[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError>;

/// Trusted OpenPGP keys of one policy.
pub trait Keyring: Debug + Send + Sync {
    /// Verifies an OpenPGP message and returns its payload and signer.
    ///
    /// # Errors
    /// Fails if none of the keys has signed it, or if the signature is not valid now.
    fn open(&self, message: &[u8]) -> Result<SignedMessage, OpenPgpError>;

    /// Returns the sorted fingerprints of all keys and subkeys that may sign. They identify the keyring; expiry dates do not.
    fn fingerprints(&self) -> Vec<String>;
}

/// OpenPGP message whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedMessage {
    /// Signed bytes that the message holds.
    pub payload: Vec<u8>,
    /// Fingerprint of the primary key, in lower-case hex.
    pub key: String,
}

/// Error of an OpenPGP key or message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenPgpError(pub String);

#[cfg(test)]
mod tests;
