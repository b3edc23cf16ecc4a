//! Content digests: parsing, hashing and printing `sha256:<hex>` and `sha512:<hex>`.

use std::{fmt, str::FromStr};

use model::crypto::digest::{Context, SHA256, SHA512, digest};
use serde::Serialize;
use serde_with::DeserializeFromStr;

use crate::shown;

/// A valid content digest: `sha256:<64 hex>` or `sha512:<128 hex>`, in lower case.
///
/// ```
/// use oci::Digest;
///
/// let digest = Digest::of(b"");
/// assert_eq!(digest.algorithm(), "sha256");
/// assert!(digest.hex().starts_with("e3b0c442"));
/// assert!("sha256:E3B0".parse::<Digest>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, DeserializeFromStr)]
pub struct Digest(String);

/// The text is not a digest. Holds the text, made printable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a digest: write sha256:<64 hex digits in lower case>")]
pub struct DigestError(pub String);

/// A digest and a size in bytes, as a manifest declares them.
///
/// The `urls` of a descriptor are left out on purpose: a manifest must not choose the servers that
/// are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRef {
    /// Digest of the stored, mostly compressed bytes.
    pub digest: Digest,
    /// Size of the stored bytes, as declared by the manifest.
    pub size: u64,
}

/// A running hash of one of the algorithms that a digest may name.
// *ring* is twice as fast as the portable crates on processors without SHA instructions, which many
// clouds have.
pub struct DigestHasher(Context);

impl Digest {
    /// Returns the sha256 digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(digest(&SHA256, bytes).as_ref())))
    }

    /// Returns the whole digest as text, `algorithm:hex`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the colon.
    pub fn algorithm(&self) -> &str {
        self.0
            .split_once(':')
            .map_or("", |(algorithm, _)| algorithm)
    }

    /// Returns the part after the colon.
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// Starts a hash with the algorithm of this digest.
    pub fn hasher(&self) -> DigestHasher {
        match self.algorithm() {
            "sha512" => DigestHasher(Context::new(&SHA512)),
            _ => DigestHasher::default(),
        }
    }
}

impl Default for DigestHasher {
    /// Starts a sha256 hash, the algorithm of nearly all digests.
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl DigestHasher {
    /// Adds bytes to those that are hashed.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes.
    pub fn finish(self) -> Digest {
        let is_sha512 = *self.0.algorithm() == SHA512;
        let algorithm = if is_sha512 { "sha512" } else { "sha256" };
        Digest(format!("{algorithm}:{}", hex(self.0.finish().as_ref())))
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let is_digest = match text.split_once(':') {
            Some(("sha256", hex)) if is_hex(hex) => hex.len() == 64,
            Some(("sha512", hex)) if is_hex(hex) => hex.len() == 128,
            _ => false,
        };
        if !is_digest {
            return Err(DigestError(shown(text.as_bytes())));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_only_complete_lower_case_digests() {
        let good = format!("sha256:{}", "a".repeat(64));
        assert_eq!(good.parse::<Digest>().unwrap().hex().len(), 64);
        assert!(
            format!("sha512:{}", "0".repeat(128))
                .parse::<Digest>()
                .is_ok()
        );
        for bad in [
            "",
            "sha256:",
            "sha256:ab",
            "md5:abc",
            &good.to_uppercase(),
            &good[7..],
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert!(
            format!("sha256:{}", "../".repeat(22))
                .parse::<Digest>()
                .is_err()
        );
    }

    #[test]
    fn hasher_uses_algorithm_of_digest() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").as_str(), empty);
        let long: Digest = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
        assert!(
            long.hasher()
                .finish()
                .as_str()
                .starts_with("sha512:cf83e135")
        );
    }
}
