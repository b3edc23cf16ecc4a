//! Reads a stream of JSON values, by the rules of Go's `encoding/json`.

mod parse;
mod scalar;

pub(crate) use parse::{JsonError, parse, skip_space};

use std::borrow::Cow;

use memchr::memchr2;

/// Returns `bytes` as text. Every invalid byte becomes U+FFFD, as in Go.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    // `String::from_utf8_lossy` does not fit: it makes one U+FFFD of several invalid bytes.
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(replaced_size(bytes));
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// Returns the size of the copy that `text(bytes)` makes; 0 if it makes none.
pub(crate) fn replaced_size(bytes: &[u8]) -> usize {
    if std::str::from_utf8(bytes).is_ok() {
        return 0;
    }
    let chunks = bytes.utf8_chunks();
    chunks
        .map(|chunk| chunk.valid().len() + chunk.invalid().len() * char::REPLACEMENT_CHARACTER.len_utf8())
        .sum()
}

/// Returns the offset in `bytes` of the character at `offset` in `text(bytes)`.
pub(crate) fn raw_offset(bytes: &[u8], offset: usize) -> usize {
    let (mut raw, mut seen) = (0, 0);
    // A replaced text is never shorter, so the bytes after the offset do not matter.
    for chunk in bytes[..bytes.len().min(offset)].utf8_chunks() {
        let valid = chunk.valid().len();
        if seen + valid >= offset {
            return raw + offset - seen;
        }
        raw += valid + chunk.invalid().len();
        seen += valid + chunk.invalid().len() * char::REPLACEMENT_CHARACTER.len_utf8();
    }
    raw
}

/// Returns the end of the next object of the stream, found by its brackets alone; `None` if it is not complete.
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

/// Returns the end of the string whose text begins at this offset, behind its quote; `None` if it is not complete.
pub(crate) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
