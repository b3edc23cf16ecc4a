use std::borrow::Cow;

use crate::{buffer::newlines, error::FbcErrorKind};

/// Returns the text of a document in UTF-8, or in UTF-16 with a byte order mark. An error carries
/// its line.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, (usize, FbcErrorKind)> {
    let text = match bytes {
        [0xFE, 0xFF, units @ ..] => Cow::Owned(utf16(units, u16::from_be_bytes)?),
        [0xFF, 0xFE, units @ ..] => Cow::Owned(utf16(units, u16::from_le_bytes)?),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest)?,
        _ => utf8(bytes)?,
    };
    if printable(text.as_bytes()) {
        return Ok(text);
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| !allowed(*c)) {
        let problem = FbcErrorKind::malformed("invalid text: it holds a control character");
        return Err((line_at(&text, at), problem));
    }
    if let Some(at) = line_with_mark(&text) {
        let problem = FbcErrorKind::malformed("invalid text: a line starts with a byte order mark");
        return Err((line_at(&text, at), problem));
    }
    Ok(next_lines(text))
}

/// Returns the number of the line that holds an offset, from 1.
fn line_at(text: &str, offset: usize) -> usize {
    newlines(&text.as_bytes()[..offset]) + 1
}

/// Returns the offset of a byte order mark that only white space precedes on its line. The parser
/// skips some of them, and for go-yaml they are a part of the word that follows.
fn line_with_mark(text: &str) -> Option<usize> {
    let mut marks = text.match_indices('\u{feff}').map(|(at, _)| at);
    marks.find(|at| {
        let before = text[..*at].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    })
}

/// Replaces U+0085 by a line feed: it is one in YAML 1.1, but the parser knows 1.2 only.
fn next_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains('\u{85}') {
        return text;
    }
    // `str::replace` would take up to twice the memory.
    let mut replaced = String::with_capacity(text.len());
    for (at, line) in text.split('\u{85}').enumerate() {
        if at > 0 {
            replaced.push('\n');
        }
        replaced.push_str(line);
    }
    replaced.into()
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, (usize, FbcErrorKind)> {
    std::str::from_utf8(bytes)
        .map(Cow::Borrowed)
        .map_err(|error| {
            (
                newlines(&bytes[..error.valid_up_to()]) + 1,
                FbcErrorKind::malformed("invalid UTF-8"),
            )
        })
}

/// Returns the error of a document that is no UTF-16, at its first line.
fn not_utf16() -> (usize, FbcErrorKind) {
    (1, FbcErrorKind::malformed("invalid UTF-16"))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, (usize, FbcErrorKind)> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(not_utf16());
    }
    let characters = || char::decode_utf16(units.iter().map(|pair| unit(*pair)));
    let size = characters()
        .map(|read| read.map_or(0, char::len_utf8))
        .sum();
    // Of the right size from the start: `collect` would take up to twice as much.
    let mut text = String::with_capacity(size);
    for read in characters() {
        text.push(read.map_err(|_| not_utf16())?);
    }
    Ok(text)
}

/// Returns true if all bytes are printable ASCII, which most documents are. The check of each
/// character is slower.
fn printable(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, byte| {
        all & matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E)
    })
}

/// Returns true for the characters that YAML 1.1 allows in a stream.
fn allowed(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}'
        | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{1_0000}'..)
}
