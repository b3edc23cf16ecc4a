use crate::canon::{Container, LineBuilder};
use crate::error::FbcErrorKind;

use super::{JsonText, scalar};

/// Error at a byte of the JSON text.
#[derive(Debug)]
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) kind: FbcErrorKind,
}

pub(super) fn invalid(what: &str) -> FbcErrorKind {
    FbcErrorKind::Malformed(format!("invalid JSON: {what}"))
}

/// Parses the value that starts at `at` into `builder` and returns its end.
pub(crate) fn parse(text: JsonText<'_>, at: usize, builder: &mut LineBuilder) -> Result<usize, JsonError> {
    let mut parser = Parser { text, at, builder };
    match parser.whole_value() {
        Ok(()) => Ok(parser.at),
        Err(kind) => Err(JsonError { at: parser.at, kind }),
    }
}

/// Returns the offset of the first byte from `at` on that is not white space.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

struct Parser<'a> {
    text: JsonText<'a>,
    at: usize,
    builder: &'a mut LineBuilder,
}

impl Parser<'_> {
    fn whole_value(&mut self) -> Result<(), FbcErrorKind> {
        // A loop instead of recursion: the input decides the depth, and a deep one must not overflow the thread's stack.
        loop {
            self.value()?;
            self.builder.check_memory()?;
            if self.close()? {
                return Ok(());
            }
        }
    }

    /// Skips white space and returns the next byte without reading it.
    #[inline]
    fn next(&mut self) -> Result<u8, FbcErrorKind> {
        self.at = skip_space(self.text.bytes, self.at);
        let byte = self.text.bytes.get(self.at);
        byte.copied().ok_or(FbcErrorKind::JsonEnd)
    }

    /// Reads a scalar or an empty container, or opens containers up to the first scalar in them.
    fn value(&mut self) -> Result<(), FbcErrorKind> {
        loop {
            let opened = match self.next()? {
                b'{' => self.open(Container::Object, b'}')?,
                b'[' => self.open(Container::Array, b']')?,
                first => return self.scalar(first),
            };
            if !opened {
                return Ok(());
            }
        }
    }

    #[inline]
    fn scalar(&mut self, first: u8) -> Result<(), FbcErrorKind> {
        let (text, at, out) = (self.text, self.at, self.builder.value());
        self.at = match first {
            b'"' => scalar::copy_string(text, at + 1, out)?,
            b'-' | b'0'..=b'9' => scalar::copy_number(text.bytes, at, out)?,
            b't' => scalar::copy_word(text.bytes, at, b"true", out)?,
            b'f' => scalar::copy_word(text.bytes, at, b"false", out)?,
            b'n' => scalar::copy_word(text.bytes, at, b"null", out)?,
            _ => return Err(invalid("a value is expected")),
        };
        Ok(())
    }

    /// Opens a container. Returns false if it is empty; then it is closed again.
    fn open(&mut self, container: Container, close: u8) -> Result<bool, FbcErrorKind> {
        self.builder.begin(container)?;
        self.at += 1;
        if self.next()? == close {
            self.at += 1;
            self.builder.end();
            return Ok(false);
        }
        if container == Container::Object {
            self.key()?;
        }
        Ok(true)
    }

    /// Closes the containers that end after a value, up to the next comma. Returns true if none is open any more.
    fn close(&mut self) -> Result<bool, FbcErrorKind> {
        while let Some(kind) = self.builder.kind() {
            match (self.next()?, kind) {
                (b',', Container::Array) => {
                    self.at += 1;
                    return Ok(false);
                }
                (b',', Container::Object) => {
                    self.at += 1;
                    self.next()?;
                    self.key()?;
                    return Ok(false);
                }
                (b']', Container::Array) | (b'}', Container::Object) => {
                    self.at += 1;
                    self.builder.end();
                }
                _ => return Err(invalid("a comma or the end is expected")),
            }
        }
        Ok(true)
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), FbcErrorKind> {
        if self.text.bytes.get(self.at) != Some(&b'"') {
            return Err(invalid("a key is expected"));
        }
        let start = self.builder.begin_key();
        self.at = scalar::copy_string(self.text, self.at + 1, self.builder.value())?;
        self.builder.end_key(start);
        if self.next()? != b':' {
            return Err(invalid("a colon is expected"));
        }
        self.at += 1;
        Ok(())
    }
}
