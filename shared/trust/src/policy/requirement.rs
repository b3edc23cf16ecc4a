use std::{fmt::Write as _, sync::Arc};

use crate::PublicKey;
use model::SignedBy;

use crate::policy::{IdentityRule, ImageSignatures, Keyring, OpenPgpError, Subject, cosign, payload};

/// Requirement that an image must meet.
#[derive(Debug, Clone)]
pub(crate) enum Requirement {
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
    /// The policy rejects every image of this repository.
    #[error("the policy rejects every image of {0}")]
    Rejected(String),
    /// The image has no signature of the required kind.
    #[error("{digest} has no {kind} signature: it has to be signed by one of the policy's keys, and is not")]
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
#[derive(Debug, thiserror::Error)]
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

impl VerifyError {
    /// Returns true if no signature could make the policy accept the image.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

impl SignatureError {
    /// Returns the number of the check that failed. The signature that passed most checks explains best what is missing.
    const fn stage(&self) -> u8 {
        match self {
            Self::Base64 | Self::Envelope | Self::Unnamed => 0,
            Self::Key | Self::OpenPgp(_) => 1,
            Self::Payload(_) => 2,
            Self::Type(_) => 3,
            Self::Digest(_) => 4,
            Self::Identity(_) => 5,
        }
    }
}

impl Requirement {
    /// Verifies the image against this requirement. Returns the signer; none for [`Self::Anything`].
    pub(crate) fn evaluate(
        &self,
        subject: Subject<'_>,
        signatures: &ImageSignatures,
    ) -> Result<Option<SignedBy>, VerifyError> {
        match self {
            Self::Anything => Ok(None),
            Self::Reject => Err(VerifyError::Rejected(subject.image.name())),
            Self::Sigstore { keys, identity } => {
                let payloads = signatures.attached.iter();
                let payloads = payloads.map(|signed| cosign::check_payload(signed, keys, subject, identity.as_ref()));
                let bundles = signatures.bundles.iter().map(|bundle| match identity {
                    // A bundle names only a digest, so the name cannot be compared.
                    Some(_) => Err(SignatureError::Unnamed),
                    None => cosign::check_bundle(bundle, keys, subject.digest),
                });
                first_valid("cosign", subject.digest, payloads.chain(bundles)).map(Some)
            }
            Self::OpenPgp { keys, identity } => {
                let messages = signatures.simple.iter();
                let messages = messages.map(|message| check_message(&**keys, message, subject, identity));
                first_valid("simple (OpenPGP)", subject.digest, messages).map(Some)
            }
        }
    }

    /// Appends a text that is equal for equal requirements.
    pub(crate) fn describe(&self, text: &mut String) {
        let (kind, keys, identity) = match self {
            Self::Anything => ("anything", Vec::new(), None),
            Self::Reject => ("reject", Vec::new(), None),
            Self::Sigstore { keys, identity } => {
                let mut ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
                // The order of keys in a configuration changes nothing, so it must not make every image verified again.
                ids.sort();
                ("sigstore", ids, identity.as_ref())
            }
            Self::OpenPgp { keys, identity } => ("openpgp", keys.fingerprints(), Some(identity)),
        };
        writeln!(text, "{kind} {keys:?} {identity:?}").expect("a text takes everything");
    }
}

/// Verifies an OpenPGP message and its payload.
fn check_message(
    keys: &dyn Keyring,
    message: &[u8],
    subject: Subject<'_>,
    identity: &IdentityRule,
) -> Result<SignedBy, SignatureError> {
    let signed = keys.open(message)?;
    payload::check(&signed.payload, payload::SIMPLE, subject, Some(identity))?;
    Ok(SignedBy {
        method: "openpgp".to_owned(),
        key: signed.key,
    })
}

/// Returns the signer of the first valid signature, else the error of the signature that came furthest.
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
    match errors.into_iter().max_by_key(SignatureError::stage) {
        Some(source) => Err(VerifyError::Invalid {
            digest,
            kind,
            count,
            source,
        }),
        None => Err(VerifyError::Unsigned { digest, kind }),
    }
}
