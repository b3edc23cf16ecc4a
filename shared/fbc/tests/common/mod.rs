//! What the tests share.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::error::Error as _;

use fbc::{Chunks, Limits};

/// All lines of a file, or what is wrong with it.
pub(crate) fn lines(file: &[u8]) -> Result<String, String> {
    lines_with(file, Limits::default(), usize::MAX >> 1)
}

/// The same with limits, and cut into chunks.
pub(crate) fn lines_with(file: &[u8], limits: Limits, target: usize) -> Result<String, String> {
    let mut lines = Vec::new();
    for chunk in Chunks::new(file, limits, target) {
        chunk
            .and_then(|chunk| chunk.metas(&limits, &mut |meta| lines.extend_from_slice(meta.line)))
            .map_err(|error| match error.source() {
                Some(problem) => format!("{error}: {problem}"),
                None => error.to_string(),
            })?;
    }
    String::from_utf8(lines).map_err(|error| error.to_string())
}
