//! Cuts a YAML stream into documents by its lines, as apimachinery's `YAMLReader` does.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;
use memchr::memmem;

use crate::error::Problem;

const SEPARATOR: &[u8] = b"---";

/// One document in a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// Where the next one starts: after the separator.
    pub(crate) next: usize,
    /// Whether a separator was found; without one, the document may go on.
    pub(crate) separated: bool,
}

/// The document that starts at `at`. A separator line in front of it is part of it.
pub(crate) fn document(bytes: &[u8], at: usize) -> Result<Piece, (usize, Problem)> {
    if bytes[at..].starts_with(SEPARATOR) {
        check(bytes, at)?;
    }
    let found = memmem::find(&bytes[at..], b"\n---");
    let Some(line) = found.map(|found| at + found + 1) else {
        return Ok(Piece {
            range: at..bytes.len(),
            next: bytes.len(),
            separated: false,
        });
    };
    check(bytes, line)?;
    Ok(Piece {
        range: at..line,
        next: line_end(bytes, line),
        separated: true,
    })
}

/// Only white space and a comment may follow the separator on its line.
fn check(bytes: &[u8], line: usize) -> Result<(), (usize, Problem)> {
    let rest = &bytes[line + SEPARATOR.len()..line_end(bytes, line)];
    let rest = String::from_utf8_lossy(rest);
    match rest.trim() {
        comment if comment.is_empty() || comment.starts_with('#') => Ok(()),
        other => {
            let shown = other.chars().take(80).collect();
            Err((line, Problem::Separator(shown)))
        }
    }
}

/// Where the line at `at` ends, its line feed included.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found + 1)
}

/// The document as the Go reader hands it on: lines end in `\n`, the last one too.
pub(crate) fn lines(document: &[u8]) -> Cow<'_, [u8]> {
    let complete = document.ends_with(b"\n");
    if complete && memmem::find(document, b"\r\n").is_none() {
        return Cow::Borrowed(document);
    }
    let mut lines = Vec::with_capacity(document.len() + 1);
    let mut rest = document;
    while let Some(found) = memmem::find(rest, b"\r\n") {
        lines.extend_from_slice(&rest[..found]);
        lines.push(b'\n');
        rest = &rest[found + 2..];
    }
    lines.extend_from_slice(rest);
    if !complete {
        lines.push(b'\n');
    }
    Cow::Owned(lines)
}
