//! Splits a YAML stream into documents by its lines, as apimachinery's `YAMLReader` does.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memmem};

use crate::error::{FbcErrorKind, excerpt};

const SEPARATOR: &[u8] = b"---";

/// Position of one document in a stream.
pub(crate) struct DocumentRange {
    /// Position of the document's bytes in the stream.
    pub(crate) range: Range<usize>,
    /// Start of the next document, after the separator.
    pub(crate) next: usize,
    /// True if a separator follows. Without one, the document may continue.
    pub(crate) separated: bool,
}

/// Returns the document that starts at `at`. A separator line before it is part of it.
pub(crate) fn document(bytes: &[u8], at: usize) -> Result<DocumentRange, (usize, FbcErrorKind)> {
    if bytes[at..].starts_with(SEPARATOR) {
        check(bytes, at)?;
    }
    let found = memmem::find(&bytes[at..], b"\n---");
    let end = found.map_or(bytes.len(), |found| at + found + 1);
    if found.is_some() {
        check(bytes, end)?;
    }
    Ok(DocumentRange {
        range: at..end,
        next: line_end(bytes, end),
        separated: found.is_some(),
    })
}

/// Refuses text other than a comment after the separator on its line.
fn check(bytes: &[u8], line: usize) -> Result<(), (usize, FbcErrorKind)> {
    let rest = &bytes[line + SEPARATOR.len()..line_end(bytes, line)];
    let rest = String::from_utf8_lossy(rest);
    match rest.trim() {
        comment if comment.is_empty() || comment.starts_with('#') => Ok(()),
        other => {
            let other = excerpt(other);
            let problem =
                format!("only a comment may follow the document separator, not `{other}`");
            Err((line, FbcErrorKind::Malformed(problem)))
        }
    }
}

/// Returns the end of the line at `at`, including its line feed.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found + 1)
}

/// Returns the document with `\n` at the end of every line, also of the last one, as Go's reader
/// does.
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
