//! The stream of documents in a file: JSON or YAML, as apimachinery's `YAMLOrJSONDecoder` decides.

use std::borrow::Cow;

use crate::canon::Canon;
use crate::error::{Error, Problem};
use crate::json;
use crate::limits::Limits;
use crate::meta::{self, Meta};
use crate::yaml;

/// How far the decoder looks for the first brace.
pub(crate) const PEEK: usize = 4096;

/// What the documents to come are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The start of a file.
    Unknown,
    /// JSON after so many JSON values. With less than two, YAML may follow.
    Json(usize),
    Yaml,
}

/// JSON, if the first character is a brace.
pub(crate) fn guess(start: &[u8]) -> Mode {
    let peeked = &start[..start.len().min(PEEK)];
    let space = space_end(peeked);
    if peeked[space..].starts_with(b"{") {
        Mode::Json(0)
    } else {
        Mode::Yaml
    }
}

/// Parses documents and hands on what is in them.
pub(crate) struct Decoder<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) canon: Canon,
    /// The number of documents before the next one, and of lines before `bytes`.
    pub(crate) documents: usize,
    pub(crate) lines: usize,
    pub(crate) bytes: &'a [u8],
}

type Sink<'s> = &'s mut dyn FnMut(Meta<'_>);

impl Decoder<'_> {
    pub(crate) fn run(&mut self, mode: Mode, sink: Sink<'_>) -> Result<(), Error> {
        match mode {
            Mode::Unknown => self.run(guess(self.bytes), sink),
            Mode::Json(count) => self.json(count, sink),
            Mode::Yaml => self.yaml(0, None, sink),
        }
    }

    fn json(&mut self, mut count: usize, sink: Sink<'_>) -> Result<(), Error> {
        let text = json::text(self.bytes);
        let mut at = 0;
        loop {
            let start = json::skip_space(text.as_bytes(), at);
            if start == text.len() {
                return Ok(());
            }
            match self.json_value(&text, start, sink) {
                Ok(end) => {
                    at = end;
                    count += 1;
                    self.documents += 1;
                }
                Err(fault) => {
                    let raw = |at| match text {
                        Cow::Borrowed(_) => at,
                        Cow::Owned(_) => json::raw_offset(self.bytes, at),
                    };
                    let error = self.error(raw(fault.at), fault.problem);
                    return self.fall_back(count, raw(at), error, sink);
                }
            }
        }
    }

    fn json_value(&mut self, text: &str, at: usize, sink: Sink<'_>) -> Result<usize, json::Fault> {
        let fault = |problem| json::Fault { at, problem };
        self.canon.clear();
        let end = json::parse(text, at, &mut self.canon)?;
        let what = match text.as_bytes()[at] {
            b'[' => "a list",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'-' | b'0'..=b'9' => "a number",
            _ => "",
        };
        if !what.is_empty() {
            return Err(fault(Problem::NotAnObject(what)));
        }
        self.check_size(end - at).map_err(fault)?;
        meta::emit(&mut self.canon, sink).map_err(fault)?;
        Ok(end)
    }

    /// After a JSON error: the rest may be YAML, as long as there was at most one JSON value.
    fn fall_back(&mut self, count: usize, at: usize, error: Error, sink: Sink<'_>) -> Result<(), Error> {
        match yaml_start(self.bytes, at) {
            Some(start) if count < 2 && !error.problem().is_final() => self.yaml(start, Some(error), sink),
            _ => Err(error),
        }
    }

    /// Parses YAML from `at` on. If that fails at once, a JSON error before it is the better one.
    fn yaml(&mut self, mut at: usize, mut before: Option<Error>, sink: Sink<'_>) -> Result<(), Error> {
        while at < self.bytes.len() {
            match self.yaml_document(at, sink) {
                Ok(next) => at = next,
                Err(error) => return Err(before.unwrap_or(error)),
            }
            before = None;
            self.documents += 1;
        }
        Ok(())
    }

    fn yaml_document(&mut self, at: usize, sink: Sink<'_>) -> Result<usize, Error> {
        let piece = yaml::split::document(self.bytes, at).map_err(|(at, problem)| self.error(at, problem))?;
        let document = &self.bytes[piece.range];
        self.check_size(document.len())
            .map_err(|problem| self.error(at, problem))?;
        let lines = yaml::split::lines(document);
        let mut emit = |canon: &mut Canon| meta::emit(canon, sink);
        yaml::parse(&lines, self.limits, &mut self.canon, &mut emit).map_err(|fault| {
            let before = self.lines + newlines(&self.bytes[..at]);
            let line = fault.line.map(|line| before + line);
            Error::new(self.documents + 1, line, fault.problem)
        })?;
        Ok(piece.next)
    }

    fn check_size(&self, size: usize) -> Result<(), Problem> {
        if size > self.limits.document_bytes {
            return Err(too_large(self.limits));
        }
        Ok(())
    }

    fn error(&self, at: usize, problem: Problem) -> Error {
        let line = self.lines + newlines(&self.bytes[..at]) + 1;
        Error::new(self.documents + 1, Some(line), problem)
    }
}

pub(crate) fn too_large(limits: &Limits) -> Problem {
    Problem::Limit {
        name: "documentBytes",
        limit: limits.document_bytes,
    }
}

/// The number of line feeds.
pub(crate) fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Where YAML starts after a JSON value that ended at `at`: after white space, but not beyond the
/// end of the line. `None` where the Go decoder gives up: it looks at four bytes at a time and
/// takes a shorter rest for the end of the file.
pub(crate) fn yaml_start(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
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

/// Whether there is nothing but white space, as far as can be told before the last character is
/// complete.
pub(crate) fn is_space(bytes: &[u8]) -> bool {
    space_end(bytes) + "\u{2028}".len() > bytes.len()
}

/// Where the white space ends that `bytes` start with; Unicode's, as Go's `unicode.IsSpace` has it.
fn space_end(bytes: &[u8]) -> usize {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    text.len() - text.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::{Mode, PEEK, guess, yaml_start};

    #[test]
    fn json_is_guessed_by_the_first_bytes_only() {
        let brace_after = |spaces| [" ".repeat(spaces), "{".into()].concat();
        assert_eq!(guess(brace_after(PEEK - 1).as_bytes()), Mode::Json(0));
        assert_eq!(guess(brace_after(PEEK).as_bytes()), Mode::Yaml);
        assert_eq!(guess("\u{a0}\u{2028}{".as_bytes()), Mode::Json(0));
        assert_eq!(guess("\u{feff}{".as_bytes()), Mode::Yaml);
        assert_eq!(guess(b"[{}]"), Mode::Yaml);
    }

    #[test]
    fn yaml_starts_after_the_line_of_a_json_value() {
        assert_eq!(yaml_start(b" \t\n a: 1", 0), Some(3));
        assert_eq!(yaml_start(b"  #cc\n", 0), Some(2));
        assert_eq!(yaml_start(b"  #c\n", 0), None, "the last three bytes are not looked at");
        assert_eq!(yaml_start(b"\xff\n\n\n\n", 0), None);
    }
}
