//! Reads a stream of JSON values, by the rules of Go's `encoding/json`.

mod parse;

pub(crate) use parse::{parse, skip_space};

use std::{iter, ops::Range};

use memchr::memchr2;

use crate::canon::memory::Text;

/// Bytes that are read as JSON.
#[derive(Clone, Copy)]
pub(crate) struct JsonText<'a> {
    pub(crate) bytes: &'a [u8],
    is_utf8: bool,
}

impl<'a> JsonText<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let is_utf8 = std::str::from_utf8(bytes).is_ok();
        Self { bytes, is_utf8 }
    }

    /// Appends a part of a string to `out`.
    fn copy(self, part: Range<usize>, out: &mut Text) {
        let part = &self.bytes[part];
        if self.is_utf8 {
            out.extend_from_slice(part);
        } else {
            replaced(part).for_each(|text| out.extend_from_slice(text.as_bytes()));
        }
    }
}

/// Returns `bytes` as parts of a text. Every invalid byte becomes U+FFFD, as in Go.
pub(crate) fn replaced(bytes: &[u8]) -> impl Iterator<Item = &str> {
    // `String::from_utf8_lossy` does not fit: it makes one U+FFFD of several invalid bytes.
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|_| REPLACEMENT);
        iter::once(chunk.valid()).chain(invalid)
    })
}

const REPLACEMENT: &str = "\u{fffd}";

/// Returns the end of the next object of the stream, found by its brackets alone; `None` if it is
/// not complete.
pub(crate) fn value_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    // In malformed JSON the end may be wrong. The parser then finds the error before that place.
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

/// Returns the end of the string whose text begins at this offset, behind its quote; `None` if it
/// is not complete.
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
