//! Reads YAML as `sigs.k8s.io/yaml` does: granit-parser's events under the rules of go-yaml v2.

mod anchors;
mod build;
mod encoding;
mod error;
mod resolve;
mod separator;
mod source;
pub(crate) mod split;

use std::borrow::Cow;

use work::Budget;

use crate::{FbcLimits, canon::LineBuilder, error::FbcErrorKind};

use build::DocumentBuilder;
pub(crate) use error::YamlError;
use source::YamlSource;

/// Memory that the parser takes for a `%TAG` directive, in bytes: an entry of a B-tree whose nodes
/// are half empty, and two short strings.
const DIRECTIVE_BYTES: usize = 192;

/// Parses one part of a stream and calls `emit` for every document in it that is not null.
///
/// Most parts hold one document, but `...` can end it and another one can follow.
pub(crate) fn parse(
    part: &[u8],
    limits: &FbcLimits,
    builder: &mut LineBuilder,
    emit: &mut dyn FnMut(&mut LineBuilder) -> Result<(), FbcErrorKind>,
) -> Result<(), YamlError> {
    let lines = split::lines(part);
    let text = encoding::decode(&lines).map_err(|(line, kind)| YamlError {
        line: Some(line),
        kind,
    })?;
    let mut held = 0;
    if let Cow::Owned(lines) = &lines {
        held += lines.capacity();
    }
    if let Cow::Owned(text) = &text {
        held += text.capacity();
    }
    builder.memory().take(held);
    builder
        .memory()
        .take(directives(&text).saturating_mul(DIRECTIVE_BYTES));
    let enough = builder.check_memory();
    enough.map_err(|kind| YamlError { line: None, kind })?;
    let mut source = YamlSource::new(&text, limits);
    while source.document()? {
        builder.clear();
        let line = source.line();
        let object = DocumentBuilder::new(builder, limits).build(&mut source)?;
        if object {
            emit(builder).map_err(|kind| YamlError {
                line: Some(line),
                kind,
            })?;
        }
    }
    builder.memory().give_back(held);
    Ok(())
}

/// Returns the first document as JSON with sorted keys, within the default limits; `None` if it is
/// null.
fn first_as_json(bytes: &[u8]) -> Result<Option<String>, FbcErrorKind> {
    let limits = FbcLimits::default();
    let first = split::document(bytes, 0).map_err(|(_, kind)| kind)?;
    let mut builder = LineBuilder::new(&limits, first.range.len(), &Budget::default());
    let mut json = None;
    let parsed = parse(&bytes[first.range], &limits, &mut builder, &mut |builder| {
        if json.is_none() {
            builder.finish()?;
            json = Some(String::from_utf8_lossy(builder.line().trim_ascii_end()).into_owned());
        }
        Ok(())
    });
    parsed.map_err(|error| error.kind)?;
    Ok(json)
}

/// Returns true if the first document is YAML, of any kind. `sigs.k8s.io/yaml` ignores all others.
pub fn is_yaml(bytes: &[u8]) -> bool {
    matches!(
        first_as_json(bytes),
        Ok(_) | Err(FbcErrorKind::NotAnObject(_))
    )
}

/// Returns the first document as JSON with sorted keys, as `sigs.k8s.io/yaml` converts an object.
///
/// # Errors
/// Fails if the document is malformed, is no object, or exceeds the default limits.
pub fn yaml_to_json(mut bytes: &[u8]) -> Result<String, FbcErrorKind> {
    FbcLimits::default().check_document(bytes.len())?;
    let first = split::document(bytes, 0).map_err(|(_, kind)| kind)?;
    // Comments before the separator are no document.
    if is_comment(&bytes[first.range]) && first.next < bytes.len() {
        bytes = &bytes[first.next..];
    }
    Ok(first_as_json(bytes)?.unwrap_or_else(|| "null".to_owned()))
}

/// Returns true if each line is empty or a comment.
fn is_comment(document: &[u8]) -> bool {
    let mut lines = document
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii);
    lines.all(|line| line.is_empty() || line.starts_with(b"#"))
}

/// Returns the number of lines that start like a directive.
fn directives(text: &str) -> usize {
    let text = text.as_bytes();
    memchr::memchr_iter(b'%', text)
        .filter(|at| *at == 0 || matches!(text[*at - 1], b'\n' | b'\r'))
        .count()
}
