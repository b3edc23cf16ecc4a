#![doc = include_str!("README.md")]

mod containers;
mod cosign;
mod identity;
mod payload;

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

pub use model::{AttachedSignature, ImageSignatures};
use model::{ImageReference, Sha256, SignedBy, Verified};

use crate::PublicKey;

pub use containers::{KeySources, PolicyError};
pub use identity::IdentityRule;

/// Requirements on the signatures of one image.
#[derive(Debug, Clone)]
pub struct Policy {
    image: ImageReference,
    requirements: Vec<Requirement>,
    /// True if a signature of the pulled manifest is enough when the image is an index.
    /// `policy.json` means that manifest, `cosign verify` means the index.
    pub accepts_manifests: bool,
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

/// Requirement that an image must meet.
#[derive(Debug, Clone)]
enum Requirement {
    /// Every image is accepted, signed or not.
    Anything,
    /// No image is accepted, whatever its signatures.
    Reject,
    /// One of the keys must have signed with cosign.
    Sigstore {
        keys: Vec<PublicKey>,
        /// Rule for the signed name. `cosign verify` does not compare names; a `policy.json` does.
        identity: Option<IdentityRule>,
    },
    /// One of the keys must have signed an OpenPGP message.
    OpenPgp {
        keys: Arc<dyn Keyring>,
        identity: IdentityRule,
    },
}

/// Error of an image that does not meet its policy.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The policy rejects every image of this repository, and no signature could make it accept
    /// one.
    #[error("the policy rejects every image of {0}")]
    Rejected(String),
    /// The image has no signature of the required kind.
    #[error(
        "{digest} has no {kind} signature: it has to be signed by one of the policy's keys, and is not"
    )]
    Unsigned {
        /// Digest of the image, as `sha256:HEX`.
        digest: String,
        /// Required kind of signature: `cosign` or `simple (OpenPGP)`.
        kind: &'static str,
    },
    /// The image has signatures, but none is valid.
    #[error("none of the {count} {kind} signatures of {digest} will do")]
    Invalid {
        /// Digest of the image, as `sha256:HEX`.
        digest: String,
        /// Kind of the signatures: `cosign` or `simple (OpenPGP)`.
        kind: &'static str,
        /// Number of signatures of that kind.
        count: usize,
        /// Error of the signature that came furthest.
        source: SignatureError,
    },
}

/// Error of one signature, in the order of the checks.
#[derive(Debug, thiserror::Error, strum::EnumDiscriminants)]
#[strum_discriminants(name(SignatureCheck), vis(), derive(PartialOrd, Ord))]
pub enum SignatureError {
    /// The signature or its payload is not base64.
    #[error("it is not base64")]
    Base64,
    /// The bundle has no signed statement.
    #[error("the bundle holds no signed statement about an image")]
    Envelope,
    /// A bundle has no name, but the policy requires one.
    #[error(
        "a Sigstore bundle signs a digest without a name, and the policy asks for one: sign without bundles, or give the keys as `cosign`"
    )]
    Unnamed,
    /// None of the policy's keys has made this signature over this content.
    #[error("it is not made by one of the policy's keys, or what it signs was altered")]
    Key,
    /// The OpenPGP message is not valid.
    #[error(transparent)]
    OpenPgp(#[from] OpenPgpError),
    /// The signed content is not a known payload.
    #[error("what it signs cannot be read")]
    Payload(#[source] serde_json::Error),
    /// The signed content is not about an image.
    #[error("it signs something else than an image: {0:?}")]
    Type(String),
    /// The signature is for another image.
    #[error("it signs another image, {0}")]
    Digest(String),
    /// The signature is for another name.
    #[error("it signs the image as {0:?}, which the policy does not accept for this source")]
    Identity(String),
}

impl Policy {
    /// Creates a policy that one of the keys must have signed, as `cosign verify --key` checks it.
    pub fn cosign(image: ImageReference, keys: Vec<PublicKey>) -> Self {
        Self {
            image,
            requirements: vec![Requirement::Sigstore {
                keys,
                identity: None,
            }],
            accepts_manifests: false,
        }
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

    /// Returns a hash of the image name and all requirements. An image that was verified under
    /// another hash must be verified again.
    pub fn hash(&self) -> Sha256 {
        let mut text = format!("{} {}\n", self.image, self.accepts_manifests);
        for requirement in &self.requirements {
            requirement.describe(&mut text);
        }
        Sha256::of(text.as_bytes())
    }

    /// Verifies the image with this digest by its signatures. Returns the signers.
    ///
    /// # Errors
    /// Fails if a requirement is not met.
    pub fn verify(
        &self,
        digest: &str,
        signatures: &ImageSignatures,
    ) -> Result<Verified, VerifyError> {
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

/// Reader of OpenPGP keys, `openpgp::read_keyring`. A value, because that function brings ninety
/// crates that some programs do without.
pub type KeyringReader = fn(&[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError>;

/// Trusted OpenPGP keys of one policy.
pub trait Keyring: Debug + Send + Sync {
    /// Verifies an OpenPGP message and returns its payload and signer.
    ///
    /// # Errors
    /// Fails if none of the keys has signed it, or if the signature is not valid now.
    fn open(&self, message: &[u8]) -> Result<SignedMessage, OpenPgpError>;

    /// Returns the sorted fingerprints of all keys and subkeys that may sign. They identify the
    /// keyring; expiry dates do not.
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

impl Requirement {
    /// Verifies the image against this requirement. Returns the signer; none for
    /// [`Self::Anything`].
    fn evaluate(
        &self,
        subject: Subject<'_>,
        signatures: &ImageSignatures,
    ) -> Result<Option<SignedBy>, VerifyError> {
        match self {
            Self::Anything => Ok(None),
            Self::Reject => Err(VerifyError::Rejected(subject.image.name())),
            Self::Sigstore { keys, identity } => {
                let payloads = signatures
                    .attached
                    .iter()
                    .map(|signed| cosign::check_payload(signed, keys, subject, identity.as_ref()));
                let bundles = signatures.bundles.iter().map(|bundle| match identity {
                    // A bundle names only a digest, so the name cannot be compared.
                    Some(_) => Err(SignatureError::Unnamed),
                    None => cosign::check_bundle(bundle, keys, subject.digest),
                });
                first_valid("cosign", subject.digest, payloads.chain(bundles)).map(Some)
            }
            Self::OpenPgp { keys, identity } => {
                let messages = signatures.simple.iter().map(|message| {
                    let signed = keys.open(message)?;
                    payload::check(&signed.payload, payload::SIMPLE, subject, Some(identity))?;
                    Ok(SignedBy {
                        method: "openpgp".to_owned(),
                        key: signed.key,
                    })
                });
                first_valid("simple (OpenPGP)", subject.digest, messages).map(Some)
            }
        }
    }

    /// Appends a text that is equal for equal requirements.
    fn describe(&self, text: &mut String) {
        let (kind, keys, identity) = match self {
            Self::Anything => ("anything", Vec::new(), None),
            Self::Reject => ("reject", Vec::new(), None),
            Self::Sigstore { keys, identity } => {
                let mut ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
                // The order of keys in a configuration changes nothing, so it must not make every
                // image verified again.
                ids.sort();
                ("sigstore", ids, identity.as_ref())
            }
            Self::OpenPgp { keys, identity } => ("openpgp", keys.fingerprints(), Some(identity)),
        };
        writeln!(text, "{kind} {keys:?} {identity:?}").expect("a text takes everything");
    }
}

/// Returns the signer of the first valid signature, else the error of the signature that came
/// furthest.
fn first_valid(
    kind: &'static str,
    digest: &str,
    results: impl Iterator<Item = Result<SignedBy, SignatureError>>,
) -> Result<SignedBy, VerifyError> {
    let digest = digest.to_owned();
    // Most images carry signatures of several keys, so an invalid one must not hide a valid one.
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(by) => return Ok(by),
            Err(error) => errors.push(error),
        }
    }
    let count = errors.len();
    // The signature that passed most checks explains best what is missing.
    match errors
        .into_iter()
        .max_by_key(|error| SignatureCheck::from(error))
    {
        Some(source) => Err(VerifyError::Invalid {
            digest,
            kind,
            count,
            source,
        }),
        None => Err(VerifyError::Unsigned { digest, kind }),
    }
}

#[cfg(test)]
mod tests;
