use std::io::Read;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use model::Sha256;

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
        let mut lines = Vec::new();
        let read = match self.field("content-encoding") {
            "gzip" => flate2::read::GzDecoder::new(&self.body[..]).read_to_end(&mut lines),
            "zstd" => zstd::stream::read::Decoder::new(&self.body[..]).and_then(|mut all| all.read_to_end(&mut lines)),
            _ => return Ok(self.body.to_vec()),
        };
        read.map_err(|error| format!("{path} does not decompress: {error}"))?;
        Ok(lines)
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
