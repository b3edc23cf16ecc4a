use std::{fmt::Write as _, sync::Arc};

use layout::SignedBy;
use seal::PublicKey;

use crate::{Found, Identity, ImageName, Keyring, OpenPgpError, bundle, cosign, payload};

/// One thing that an image has to fulfil.
#[derive(Debug, Clone)]
pub(crate) enum Requirement {
    /// Nothing.
    Anything,
    /// What nothing can fulfil.
    Reject,
    /// A signature of cosign by one of the keys.
    Sigstore {
        keys: Vec<PublicKey>,
        /// `cosign verify` does not compare names; a `policy.json` does.
        identity: Option<Identity>,
    },
    /// An OpenPGP message by one of the keys.
    OpenPgp { keys: Arc<dyn Keyring>, identity: Identity },
}

/// Why an image is not published.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// The policy says so.
    #[error("the policy rejects every image of {0}")]
    Rejected(String),
    /// There is no signature at all.
    #[error("{digest} has no {kind} signature: it has to be signed by one of the policy's keys, and is not")]
    Unsigned {
        /// The image's digest.
        digest: String,
        /// Of what kind one would have to be.
        kind: &'static str,
    },
    /// None of those that there are will do.
    #[error("none of the {count} {kind} signatures of {digest} will do")]
    Flawed {
        /// The image's digest.
        digest: String,
        /// Of what kind they are.
        kind: &'static str,
        /// How many.
        count: usize,
        /// What is wrong with the one that came furthest.
        source: Flaw,
    },
}

/// What is wrong with a signature, in the order in which it is found out.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// Not base64.
    #[error("it is not base64")]
    Base64,
    /// A bundle of another kind.
    #[error("the bundle holds no signed statement about an image")]
    Envelope,
    /// A bundle where a name is asked for.
    #[error(
        "a Sigstore bundle signs a digest without a name, and the policy asks for one: sign without bundles, or give the keys as `cosign`"
    )]
    Unnamed,
    /// Not by one of the keys, or not of this.
    #[error("it is not made by one of the policy's keys, or what it signs was altered")]
    Key,
    /// The same in an OpenPGP message.
    #[error(transparent)]
    OpenPgp(#[from] OpenPgpError),
    /// Signed, but no payload that is known.
    #[error("what it signs cannot be read")]
    Payload(#[source] serde_json::Error),
    /// Signed, but not as the signature of an image.
    #[error("it signs something else than an image: {0:?}")]
    Type(String),
    /// Signed for another image.
    #[error("it signs another image, {0}")]
    Digest(String),
    /// Signed under another name.
    #[error("it signs the image as {0:?}, which the policy does not accept for this source")]
    Identity(String),
}

impl Rejection {
    /// Whether no signature whatever could help.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

impl Flaw {
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
    /// Who fulfils it; nobody has to for [`Self::Anything`].
    pub(crate) fn judge(&self, subject: (&ImageName, &str), found: &Found) -> Result<Option<SignedBy>, Rejection> {
        match self {
            Self::Anything => Ok(None),
            Self::Reject => Err(Rejection::Rejected(subject.0.repository.clone())),
            Self::Sigstore { keys, identity } => {
                let attached = found.attached.iter();
                let attached = attached.map(|attached| cosign::check(attached, keys, subject, identity.as_ref()));
                let bundles = found.bundles.iter().map(|bundle| match identity {
                    // It names only a digest.
                    Some(_) => Err(Flaw::Unnamed),
                    None => bundle::check(bundle, keys, subject.1),
                });
                first("cosign", subject.1, attached.chain(bundles)).map(Some)
            }
            Self::OpenPgp { keys, identity } => {
                let messages = found.simple.iter();
                let messages = messages.map(|message| open(&**keys, message, subject, identity));
                first("simple (OpenPGP)", subject.1, messages).map(Some)
            }
        }
    }

    /// All that there is to it, as a text that is the same for equal ones.
    pub(crate) fn describe(&self, text: &mut String) {
        let (kind, keys, identity) = match self {
            Self::Anything => ("anything", Vec::new(), None),
            Self::Reject => ("reject", Vec::new(), None),
            Self::Sigstore { keys, identity } => {
                let mut ids: Vec<_> = keys.iter().map(|key| key.id().to_string()).collect();
                ids.sort();
                ("sigstore", ids, identity.as_ref())
            }
            Self::OpenPgp { keys, identity } => ("openpgp", keys.fingerprints(), Some(identity)),
        };
        writeln!(text, "{kind} {keys:?} {identity:?}").expect("a text takes everything");
    }
}

fn open(
    keys: &dyn Keyring,
    message: &[u8],
    subject: (&ImageName, &str),
    identity: &Identity,
) -> Result<SignedBy, Flaw> {
    let signed = keys.open(message)?;
    payload::check(&signed.payload, payload::SIMPLE, subject, Some(identity))?;
    Ok(SignedBy {
        method: "openpgp".to_owned(),
        key: signed.key,
    })
}

/// The first signature that is right, else what is wrong with the one that came furthest: most images carry signatures of
/// several keys.
fn first(
    kind: &'static str,
    digest: &str,
    judged: impl Iterator<Item = Result<SignedBy, Flaw>>,
) -> Result<SignedBy, Rejection> {
    let digest = digest.to_owned();
    let mut flaws = Vec::new();
    for judged in judged {
        match judged {
            Ok(by) => return Ok(by),
            Err(flaw) => flaws.push(flaw),
        }
    }
    let count = flaws.len();
    match flaws.into_iter().max_by_key(Flaw::stage) {
        Some(source) => Err(Rejection::Flawed {
            digest,
            kind,
            count,
            source,
        }),
        None => Err(Rejection::Unsigned { digest, kind }),
    }
}
