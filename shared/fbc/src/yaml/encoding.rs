use std::borrow::Cow;

use crate::error::Problem;

/// The text of a document: UTF-8, or UTF-16 with a byte order mark. On failure, the line and why.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, (usize, Problem)> {
    let text = match bytes {
        [0xFE, 0xFF, units @ ..] => Cow::Owned(utf16(units, u16::from_be_bytes)?),
        [0xFF, 0xFE, units @ ..] => Cow::Owned(utf16(units, u16::from_le_bytes)?),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest)?,
        _ => utf8(bytes)?,
    };
    if printable(text.as_bytes()) {
        return Ok(text);
    }
    match text.char_indices().find(|(_, c)| !allowed(*c)) {
        None => Ok(next_lines(text)),
        Some((at, _)) => Err((
            line(&text.as_bytes()[..at]),
            Problem::Encoding("text: it holds a control character"),
        )),
    }
}

/// In YAML 1.1, U+0085 is a line feed everywhere; the parser knows 1.2 only.
fn next_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\u{85}') {
        text.replace('\u{85}', "\n").into()
    } else {
        text
    }
}

fn line(before: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', before).count() + 1
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, (usize, Problem)> {
    std::str::from_utf8(bytes)
        .map(Cow::Borrowed)
        .map_err(|error| (line(&bytes[..error.valid_up_to()]), Problem::Encoding("UTF-8")))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, (usize, Problem)> {
    let fault = || (1, Problem::Encoding("UTF-16"));
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(fault());
    }
    let units = units.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| fault())
}

/// Whether a quick look finds only characters that need no second one.
fn printable(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, byte| {
        all & matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E)
    })
}

/// The characters that YAML 1.1 lets stand in a stream.
fn allowed(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}'
        | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{1_0000}'..)
}
