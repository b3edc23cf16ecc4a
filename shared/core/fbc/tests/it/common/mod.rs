//! Helpers for the tests of this crate.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::error::Error as _;

use fbc::{Chunks, FbcLimits};

/// Returns the canonical lines of a file, or the text of the error.
pub(crate) fn lines(file: &[u8]) -> Result<String, String> {
    lines_with(file, FbcLimits::default(), usize::MAX >> 1)
}

/// Returns the canonical lines of a file that is read with these limits in chunks of about `target`
/// bytes.
pub(crate) fn lines_with(file: &[u8], limits: FbcLimits, target: usize) -> Result<String, String> {
    let mut lines = Vec::new();
    for chunk in Chunks::new(file, limits, target) {
        chunk
            .and_then(|chunk| chunk.metas(&limits, &mut |meta| lines.extend_from_slice(meta.line)))
            .map_err(|error| match error.source() {
                Some(kind) => format!("{error}: {kind}"),
                None => error.to_string(),
            })?;
    }
    String::from_utf8(lines).map_err(|error| error.to_string())
}
