use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::Encoding;
use crate::crypto::digest::{Context, Digest, SHA256, digest};

/// The sha256 of some bytes: 64 lower-case hex digits in keys and documents.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr,
)]
pub struct Sha256([u8; 32]);

/// A text that is not 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a sha256 is 64 lower-case hex digits, not {0:?}")]
pub struct ParseSha256Error(String);

impl Sha256 {
    /// Returns the sha256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::take(&digest(&SHA256, bytes))
    }

    fn take(digest: &Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Takes a finished digest as it comes from a streaming hasher.
    pub const fn from_bytes(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Returns the 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns 43 characters of base64url, short enough for the 62 bytes that the `etag` crate can
    /// hold (hex is not).
    pub fn to_base64url(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the strong entity tag (RFC 9110, section 8.8.3) under which readers serve bytes with
    /// this hash, plain or encoded as they are sent, so that a client that holds the bytes can send
    /// a conditional request.
    pub fn to_entity_tag(self, encoding: Encoding) -> String {
        format!("\"{}{}\"", self.to_base64url(), encoding.tag_suffix())
    }
}

/// Hashes bytes that arrive in pieces.
///
/// On a processor with SHA instructions every implementation is alike; without them (many cloud
/// machines) that of *ring* is twice as fast as the portable one, and hashing is a third of the
/// work of publishing a catalog.
#[derive(Clone)]
pub struct Hasher(Context);

impl Hasher {
    /// Creates a hasher that has seen no bytes.
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Adds bytes to those that are hashed.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all bytes.
    pub fn finish(self) -> Sha256 {
        Sha256::take(&self.0.finish())
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.pad(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = ParseSha256Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        // Each hash has one text.
        let is_lower = !text.bytes().any(|digit| digit.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if is_lower => Ok(Self(bytes)),
            _ => Err(ParseSha256Error(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn hash_has_a_hex_text_that_reads_back_and_a_shorter_one_for_entity_tags() {
        assert_eq!(Sha256::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(Sha256::of(b"")));
        let short = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(Sha256::of(b"").to_base64url(), short);
    }

    #[test]
    fn parse_refuses_other_lengths_and_upper_case() {
        let (upper, other) = (EMPTY.to_uppercase(), EMPTY.replace('e', "g"));
        for bad in ["", &EMPTY[1..], &upper, &other, &format!("{EMPTY}0")] {
            assert!(bad.parse::<Sha256>().is_err(), "{bad}");
        }
    }
}
