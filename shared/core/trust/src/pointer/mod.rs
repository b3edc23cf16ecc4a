//! Signatures of `current.json`, the pointer to the published state.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{CatalogName, Current, Document, Sha256, Signature};
use serde_json::{Value, json};

use crate::{PublicKey, SigningKey, pae};

/// DSSE payload type of the signed message: the name of the catalog and the document.
const PAYLOAD_TYPE: &str = "application/vnd.catalog-mirror.current.v1+json";

/// Field of the document that holds its signatures.
const SIGNATURES: &str = "signatures";

/// Trusted keys. A published state is trusted if one of them has signed it.
///
/// ```
/// use trust::{SigningKey, Trust, TrustError};
///
/// let key = SigningKey::from_pem(SigningKey::generate_pem().unwrap().as_bytes()).unwrap();
/// let trust = Trust::new(vec![key.public()]);
/// let result = trust.verify(&"demo".parse().unwrap(), b"{}");
/// assert!(matches!(result, Err(TrustError::Unsigned)));
/// ```
#[derive(Debug, Clone)]
pub struct Trust(Vec<PublicKey>);

/// Keys that sign `current.json`. Each of them signs, so that clients can change from one key to
/// the next.
#[derive(Debug, Clone)]
pub struct Signer {
    keys: Vec<SigningKey>,
    trust: Trust,
}

/// Error of a published state that is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The document is not valid JSON.
    #[error("current.json is not JSON")]
    Malformed(#[source] serde_json::Error),
    /// The document has no signature at all.
    #[error(
        "current.json is not signed: its publisher has to be given a signing key, or is not who it should be"
    )]
    Unsigned,
    /// Only other keys have signed the document. The list holds at most 8 of their ids.
    #[error("current.json is signed by {}, and none of these keys is trusted", .0.join(", "))]
    Unknown(Vec<String>),
    /// The document names a trusted key, but that key has not signed this content for this catalog.
    #[error(
        "current.json was altered after the key {0} had signed it, or was signed for another catalog"
    )]
    Wrong(Sha256),
}

impl Trust {
    /// Trusts each of these keys. Without keys, nothing is trusted.
    pub const fn new(keys: Vec<PublicKey>) -> Self {
        Self(keys)
    }

    /// Verifies that one of the keys has signed `document` for this catalog, and returns the id of
    /// that key. `document` holds the stored bytes.
    ///
    /// # Errors
    /// Fails if the document is malformed, unsigned, or not signed by one of the keys.
    pub fn verify(&self, catalog: &CatalogName, document: &[u8]) -> Result<Sha256, TrustError> {
        // As a value and not as `Current`: fields that this program does not know are signed too.
        let mut document: Value =
            serde_json::from_slice(document).map_err(TrustError::Malformed)?;
        let signatures = take_signatures(&mut document);
        if signatures.is_empty() {
            return Err(TrustError::Unsigned);
        }
        let message = message(catalog, &document);
        let mut wrong = None;
        for key in &self.0 {
            let id = key.id().to_string();
            // A key id is only a hint (DSSE v1.0.2, protocol.md). It saves trying every key on
            // every signature.
            for signature in signatures.iter().filter(|signature| signature.keyid == id) {
                match STANDARD.decode(&signature.sig) {
                    // Another signature may still be valid, so an invalid one is only remembered.
                    Ok(bytes) if key.verifies(&message, &bytes) => return Ok(key.id()),
                    _ => wrong = Some(key.id()),
                }
            }
        }
        Err(match wrong {
            Some(key) => TrustError::Wrong(key),
            None => TrustError::Unknown(names(signatures)),
        })
    }
}

impl Signer {
    /// Creates a signer with `keys`. Earlier states are trusted if one of `keys` or of
    /// `also_trusted` has signed them.
    pub fn new(keys: Vec<SigningKey>, also_trusted: Vec<PublicKey>) -> Self {
        let mut trusted: Vec<PublicKey> = keys.iter().map(SigningKey::public).collect();
        trusted.extend(also_trusted);
        Self {
            keys,
            trust: Trust(trusted),
        }
    }

    /// Returns the document with one signature of each key, in place of all it had.
    #[must_use]
    pub fn sign(&self, catalog: &CatalogName, current: Current) -> Current {
        // The signatures cannot sign themselves, so the field is taken out before signing and
        // verifying.
        let unsigned = Current {
            signatures: Vec::new(),
            ..current
        };
        let document = serde_json::from_slice(&unsigned.to_bytes()).expect("a document is JSON");
        let message = message(catalog, &document);
        let signatures = self.keys.iter().map(|key| Signature {
            keyid: key.public().id().to_string(),
            sig: STANDARD.encode(key.sign(&message)),
        });
        Current {
            signatures: signatures.collect(),
            ..unsigned
        }
    }

    /// Returns the keys whose signatures are trusted on earlier states.
    // A publication keeps parts of the state before. To sign parts that another party wrote would
    // approve them, so that state must be verified first.
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }
}

fn take_signatures(document: &mut Value) -> Vec<Signature> {
    let members = document.as_object_mut();
    match members.and_then(|members| members.remove(SIGNATURES)) {
        Some(signatures) => serde_json::from_value(signatures).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Returns the signed bytes: JSON with keys sorted by their bytes and no spaces. They include the
/// name, so that a signature is not valid for another catalog.
fn message(catalog: &CatalogName, document: &Value) -> Vec<u8> {
    let mut bound = json!({"catalog": catalog.as_str(), "current": document});
    // Any crate of the workspace can switch the library to keep the order of insertion.
    bound.sort_all_objects();
    pae(PAYLOAD_TYPE, bound.to_string().as_bytes())
}

/// Returns the distinct key ids, sorted.
fn names(signatures: Vec<Signature>) -> Vec<String> {
    // They come from outside and end in an error text, so their length and number are limited.
    let mut names: BTreeSet<String> = BTreeSet::new();
    for signature in signatures {
        names.insert(signature.keyid.chars().take(64).collect());
    }
    names.into_iter().take(8).collect()
}

#[cfg(test)]
mod tests;
