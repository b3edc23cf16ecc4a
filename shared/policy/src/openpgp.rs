use std::{fmt::Debug, sync::Arc};

/// Reads OpenPGP keys. It is not in here because it is large: programs that can do without leave it out.
pub trait Keyrings: Sync {
    /// The keys of these files, binary or armoured, together.
    ///
    /// # Errors
    /// [`OpenPgpError`] if one of them is no public key.
    fn read(&self, files: &[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError>;
}

/// OpenPGP keys that are trusted.
pub trait Keyring: Debug + Send + Sync {
    /// What is signed in an OpenPGP message, and by which of the keys.
    ///
    /// # Errors
    /// [`OpenPgpError`] if none of the keys has.
    fn open(&self, message: &[u8]) -> Result<Signed, OpenPgpError>;

    /// The fingerprints of the keys that may sign, subkeys too, sorted: what tells one keyring from another. Dates of expiry
    /// do not.
    fn fingerprints(&self) -> Vec<String>;
}

/// A message whose signature is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// What is signed.
    pub payload: Vec<u8>,
    /// The fingerprint of the key, in lower-case hex.
    pub key: String,
}

/// Why a key or a message cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenPgpError(pub String);
