use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use layout::{CatalogName, Current, Document, Sha256, Signature};
use serde_json::{Value, json};

use crate::{PublicKey, SigningKey, canonical::canonical, dsse::pae};

/// What is signed, for DSSE: the name of the catalog and the document.
const PAYLOAD_TYPE: &str = "application/vnd.catalog-mirror.current.v1+json";

/// The member of the document that holds its signatures.
const SIGNATURES: &str = "signatures";

/// The keys of which one has to have signed what is published.
#[derive(Debug, Clone)]
pub struct Trust(Vec<PublicKey>);

/// The keys that sign what is published. Several while one is being replaced: each of them signs.
#[derive(Debug, Clone)]
pub struct Signer {
    keys: Vec<SigningKey>,
    trust: Trust,
}

/// Why a published state is not taken for its publisher's.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Not JSON.
    #[error("current.json is not JSON")]
    Malformed(#[source] serde_json::Error),
    /// It has no signature at all.
    #[error("current.json is not signed: its publisher has to be given a signing key, or is not who it should be")]
    Unsigned,
    /// Other keys have signed it.
    #[error("current.json is signed by {}, and none of these keys is trusted", .0.join(", "))]
    Unknown(Vec<String>),
    /// A trusted key is named, and has not signed this.
    #[error("current.json was altered after the key {0} had signed it, or was signed for another catalog")]
    Wrong(Sha256),
}

impl Trust {
    /// Trusts each of these keys. Without any, nothing is trusted.
    pub const fn new(keys: Vec<PublicKey>) -> Self {
        Self(keys)
    }

    /// Checks that one of the keys has signed `document`, byte for byte as it is stored, for this catalog. Returns the id
    /// of that key.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn verify(&self, catalog: &CatalogName, document: &[u8]) -> Result<Sha256, TrustError> {
        let mut document: Value = serde_json::from_slice(document).map_err(TrustError::Malformed)?;
        let signatures = take_signatures(&mut document);
        if signatures.is_empty() {
            return Err(TrustError::Unsigned);
        }
        let message = message(catalog, &document);
        let mut wrong = None;
        for key in &self.0 {
            let id = key.id().to_string();
            // A key id is only a hint (DSSE v1.0.2, protocol.md): it saves trying every key on every signature.
            for signature in signatures.iter().filter(|signature| signature.keyid == id) {
                match STANDARD.decode(&signature.sig) {
                    Ok(bytes) if key.verify(&message, &bytes).is_ok() => return Ok(key.id()),
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
    /// Signs with all of `keys`. What was published is believed if one of them or of `also` has signed it.
    pub fn new(keys: Vec<SigningKey>, also: Vec<PublicKey>) -> Self {
        let trusted = keys.iter().map(SigningKey::public).chain(also).collect();
        Self {
            keys,
            trust: Trust(trusted),
        }
    }

    /// The document with a signature of each key, and no others.
    #[must_use]
    pub fn sign(&self, catalog: &CatalogName, current: Current) -> Current {
        let unsigned = Current {
            signatures: Vec::new(),
            ..current
        };
        let document = serde_json::from_slice(&unsigned.to_bytes()).expect("a document is JSON");
        let message = message(catalog, &document);
        let signature = |key: &SigningKey| Signature {
            keyid: key.public().id().to_string(),
            sig: STANDARD.encode(key.sign(&message)),
        };
        Current {
            signatures: self.keys.iter().map(signature).collect(),
            ..unsigned
        }
    }

    /// Whose signatures are believed on what was published before. To sign what somebody else wrote would make it
    /// one's own.
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }
}

fn take_signatures(document: &mut Value) -> Vec<Signature> {
    let taken = document.as_object_mut().and_then(|members| members.remove(SIGNATURES));
    taken
        .and_then(|signatures| serde_json::from_value(signatures).ok())
        .unwrap_or_default()
}

/// What is signed. The name is in it, so that no catalog's signature fits another one.
fn message(catalog: &CatalogName, document: &Value) -> Vec<u8> {
    let bound = json!({"catalog": catalog.as_str(), "current": document});
    pae(PAYLOAD_TYPE, canonical(&bound).as_bytes())
}

/// Each once, in a stable order; they come from outside, so they are cut.
fn names(signatures: Vec<Signature>) -> Vec<String> {
    let names = signatures
        .into_iter()
        .map(|signature| signature.keyid.chars().take(64).collect());
    names.collect::<BTreeSet<String>>().into_iter().take(8).collect()
}

#[cfg(test)]
mod tests;
