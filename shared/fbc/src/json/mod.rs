//! A stream of JSON values, by the rules of Go's `encoding/json`.

mod number;
mod parse;
mod skim;
mod string;

pub(crate) use parse::{Fault, parse, skip_space};
pub(crate) use skim::value_end;

use std::borrow::Cow;

/// `bytes` as text; every invalid byte becomes a U+FFFD, as in Go.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 64);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// The offset in `bytes` of what stands at `offset` in `text(bytes)`.
pub(crate) fn raw_offset(bytes: &[u8], offset: usize) -> usize {
    let (mut raw, mut seen) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if seen + valid >= offset {
            return raw + offset - seen;
        }
        raw += valid + chunk.invalid().len();
        seen += valid + chunk.invalid().len() * char::REPLACEMENT_CHARACTER.len_utf8();
    }
    raw
}
