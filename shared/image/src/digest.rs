//! Digests as registries write them, and the check that bytes match one.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use ring::digest::{Context, SHA256, SHA512, digest};

use crate::error::Error;
use crate::path::shown;
use serde::{Deserialize, Serialize};

/// A validated content digest: `sha256:<64 hex>` or `sha512:<128 hex>`, lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// Why a text is not a digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a digest: write sha256:<64 hex digits in lower case>")]
pub struct DigestError(String);

impl DigestError {
    /// Says so of a text that is shown in another form.
    pub(crate) fn of(shown: String) -> Self {
        Self(shown)
    }
}

impl Digest {
    /// The sha256 digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(digest(&SHA256, bytes).as_ref())))
    }

    /// The whole text, `algorithm:hex`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the colon.
    pub fn algorithm(&self) -> &str {
        self.0.split_once(':').map_or("", |(algorithm, _)| algorithm)
    }

    /// The part after the colon.
    pub fn hex(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// Passes `bytes` on if this is their digest.
    pub(crate) fn verify(&self, what: &'static str, bytes: Bytes) -> Result<Bytes, Error> {
        let mut hasher = self.hasher();
        hasher.update(&bytes);
        let actual = hasher.finish();
        if actual == *self {
            return Ok(bytes);
        }
        Err(Error::Digest {
            what,
            expected: self.clone(),
            actual,
        })
    }

    pub(crate) fn hasher(&self) -> Hasher {
        match self.algorithm() {
            "sha512" => Hasher {
                algorithm: "sha512",
                context: Context::new(&SHA512),
            },
            _ => Hasher::default(),
        }
    }
}

/// A running hash of one of the algorithms a digest may name. *ring* is twice as fast as the portable crates on the
/// many cloud machines whose processors have no SHA instructions.
pub(crate) struct Hasher {
    algorithm: &'static str,
    context: Context,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            algorithm: "sha256",
            context: Context::new(&SHA256),
        }
    }
}

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(format!("{}:{}", self.algorithm, hex(self.context.finish().as_ref())))
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let length = match text.split_once(':') {
            Some(("sha256", hex)) if is_hex(hex) => hex.len() == 64,
            Some(("sha512", hex)) if is_hex(hex) => hex.len() == 128,
            _ => false,
        };
        if length {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError(shown(text.as_bytes())))
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lower_case_digests_parse() {
        let good = format!("sha256:{}", "a".repeat(64));
        assert_eq!(good.parse::<Digest>().unwrap().hex().len(), 64);
        assert!(format!("sha512:{}", "0".repeat(128)).parse::<Digest>().is_ok());
        for bad in ["", "sha256:", "sha256:ab", "md5:abc", &good.to_uppercase(), &good[7..]] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert!(format!("sha256:{}", "../".repeat(22)).parse::<Digest>().is_err());
    }

    #[test]
    fn a_digest_hashes_with_its_own_algorithm() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").as_str(), empty);
        let long: Digest = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
        assert!(long.hasher().finish().as_str().starts_with("sha512:cf83e135"));
        assert!(matches!(long.verify("blob", Bytes::new()), Err(Error::Digest { .. })));
    }
}
