//! Reads the stream of documents in a file as JSON or YAML, by the rules of apimachinery's
//! `YAMLOrJSONDecoder`.

use crate::buffer::{PEEK, newlines};
use crate::error::{FbcError, FbcErrorKind};
use crate::meta::{self, DocumentPosition, Meta};
use crate::{FbcLimits, canon::LineBuilder, chunks::Chunk, json, yaml};

/// Format of the next documents in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// JSON values only so far. After fewer than two, YAML may follow.
    Json,
    Yaml,
}

/// Returns JSON if the first character that is not white space is a brace, else YAML.
pub(crate) fn guess(start: &[u8]) -> Mode {
    let peeked = &start[..start.len().min(PEEK)];
    let space = space_end(peeked);
    match peeked[space..] {
        [b'{', ..] => Mode::Json,
        _ => Mode::Yaml,
    }
}

/// Parses the documents of one chunk and passes each Meta to a closure.
pub(crate) struct Decoder<'a> {
    chunk: &'a Chunk,
    limits: &'a FbcLimits,
    builder: LineBuilder,
    /// Number of documents in the file before the next one.
    documents: usize,
    /// Number of lines in the file before the offset `counted` of the chunk, so that every line is
    /// counted once.
    lines: usize,
    counted: usize,
}

type Sink<'s> = &'s mut dyn FnMut(Meta<'_>);

impl<'a> Decoder<'a> {
    pub(crate) fn run(
        chunk: &'a Chunk,
        limits: &'a FbcLimits,
        sink: Sink<'_>,
    ) -> Result<(), FbcError> {
        let mut decoder = Self {
            chunk,
            limits,
            builder: LineBuilder::new(limits, chunk.bytes.len(), &chunk.budget),
            documents: chunk.documents,
            lines: chunk.lines,
            counted: 0,
        };
        match chunk.mode {
            Mode::Json => decoder.json(sink),
            Mode::Yaml => decoder.yaml(0, None, sink),
        }
    }

    fn json(&mut self, sink: Sink<'_>) -> Result<(), FbcError> {
        let text = json::JsonText::new(&self.chunk.bytes);
        let mut at = 0;
        loop {
            let start = json::skip_space(&self.chunk.bytes, at);
            if start == self.chunk.bytes.len() {
                return Ok(());
            }
            match self.json_value(text, start, sink) {
                Ok(end) => at = end,
                Err(error) => return self.fall_back(at, error, sink),
            }
            self.documents += 1;
        }
    }

    fn json_value(
        &mut self,
        text: json::JsonText<'_>,
        at: usize,
        sink: Sink<'_>,
    ) -> Result<usize, FbcError> {
        self.builder.clear();
        let parsed = json::parse(text, at, &mut self.builder);
        let end = parsed.map_err(|error| self.error(error.at, error.kind))?;
        let what = match self.chunk.bytes[at] {
            b'[' => "a list",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'-' | b'0'..=b'9' => "a number",
            _ => "",
        };
        if !what.is_empty() {
            return Err(self.error(at, FbcErrorKind::NotAnObject(what)));
        }
        let size = self.limits.check_document(end - at);
        size.map_err(|kind| self.error(at, kind))?;
        let position = self.position(at);
        let emitted = meta::emit(&mut self.builder, position, sink);
        emitted.map_err(|kind| self.error(at, kind))?;
        Ok(end)
    }

    /// Handles a JSON error: after at most one JSON value, the rest may be YAML.
    fn fall_back(&mut self, at: usize, error: FbcError, sink: Sink<'_>) -> Result<(), FbcError> {
        match yaml_start(&self.chunk.bytes, at) {
            Some(start) if !self.chunk.is_json && self.documents < 2 && !error.kind.is_final() => {
                // The lines up to the value that is not JSON may be counted, and YAML may start
                // before it.
                self.lines = self.chunk.lines;
                self.counted = 0;
                self.yaml(start, Some(error), sink)
            }
            _ => Err(error),
        }
    }

    /// Parses YAML from offset `at` on. If its first document is malformed, returns `before`, an
    /// earlier JSON error: it describes the input better.
    fn yaml(
        &mut self,
        mut at: usize,
        mut before: Option<FbcError>,
        sink: Sink<'_>,
    ) -> Result<(), FbcError> {
        while at < self.chunk.bytes.len() {
            match self.yaml_document(at, sink) {
                Ok(next) => at = next,
                Err(error) => return Err(before.unwrap_or(error)),
            }
            before = None;
            self.documents += 1;
        }
        Ok(())
    }

    fn yaml_document(&mut self, at: usize, sink: Sink<'_>) -> Result<usize, FbcError> {
        let piece = yaml::split::document(&self.chunk.bytes, at)
            .map_err(|(at, kind)| self.error(at, kind))?;
        let document = &self.chunk.bytes[piece.range];
        let position = self.position(at);
        let error = |line, kind| FbcError::new(position.document, line, kind);
        let size = self.limits.check_document(document.len());
        size.map_err(|kind| error(Some(position.line), kind))?;
        let parsed = yaml::parse(
            document,
            self.limits,
            &mut self.builder,
            &mut |builder: &mut LineBuilder| meta::emit(builder, position, sink),
        );
        parsed.map_err(|found| {
            // The parser counts lines from the start of its document.
            let line = found.line.map(|line| position.line - 1 + line);
            error(line, found.kind)
        })?;
        Ok(piece.next)
    }

    /// Returns the position of the next document, which starts at offset `at`.
    fn position(&mut self, at: usize) -> DocumentPosition {
        self.lines += newlines(&self.chunk.bytes[self.counted..at]);
        self.counted = at;
        DocumentPosition {
            document: self.documents + 1,
            line: self.lines + 1,
        }
    }

    fn error(&self, at: usize, kind: FbcErrorKind) -> FbcError {
        let line = self.chunk.lines + newlines(&self.chunk.bytes[..at]) + 1;
        FbcError::new(self.documents + 1, Some(line), kind)
    }
}

/// Returns the offset at which YAML starts after a JSON value that ended at `at`: after white
/// space, but not beyond the end of the line. Returns `None` where Go's decoder gives up.
pub(crate) fn yaml_start(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        // Go's decoder reads four bytes at a time and takes a shorter rest for the end of the file.
        let four = bytes.get(at..at + 4)?;
        let first = four.utf8_chunks().next()?.valid().chars().next()?;
        if first == char::REPLACEMENT_CHARACTER {
            return None;
        }
        if !first.is_whitespace() {
            return Some(at);
        }
        at += first.len_utf8();
        if first == '\n' {
            return Some(at);
        }
    }
}

/// Returns true if `bytes` may be white space only. The last character may be incomplete.
pub(crate) fn is_space(bytes: &[u8]) -> bool {
    space_end(bytes) + "\u{2028}".len() > bytes.len()
}

/// Returns the length of the white space at the start of `bytes`, as Go's `unicode.IsSpace` defines
/// it.
fn space_end(bytes: &[u8]) -> usize {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    text.len() - text.trim_start().len()
}
