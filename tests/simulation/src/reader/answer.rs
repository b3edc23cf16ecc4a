use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use model::{Encoding, Sha256};

use crate::snapshot::decode;

/// Answer that was read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    fn field(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns the decoded body.
    pub(super) fn lines(&self, path: &str) -> Result<Vec<u8>, String> {
        let encoding = match self.field("content-encoding") {
            "gzip" => Encoding::Gzip,
            "zstd" => Encoding::Zstd,
            _ => Encoding::Identity,
        };
        decode(&self.body, encoding).map_err(|what| format!("{path}: {what}"))
    }

    /// Checks the ETag: it names the stored bytes of the body, or the lines of a body that was encoded for the answer.
    pub(super) fn check_tag(&self, path: &str, lines: Sha256) -> Result<(), String> {
        let tag = self.field("etag");
        let hashes = [Sha256::of(&self.body), lines];
        if hashes
            .iter()
            .any(|hash| tag.starts_with(&format!("\"{}", hash.to_base64url())))
        {
            Ok(())
        } else {
            Err(format!("{path}: the tag {tag} is not that of {lines}"))
        }
    }
}
