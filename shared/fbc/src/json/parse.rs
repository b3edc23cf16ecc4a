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
                b'"' => return self.string(),
                b'{' => self.open(Container::Object, b'}')?,
                b'[' => self.open(Container::Array, b']')?,
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                b'-' | b'0'..=b'9' => return self.number(),
                _ => return Err(invalid("a value is expected")),
            };
            if !opened {
                return Ok(());
            }
        }
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

    fn string(&mut self) -> Result<(), FbcErrorKind> {
        self.at = scalar::copy_string(self.text, self.at + 1, self.builder.value())?;
        Ok(())
    }

    fn number(&mut self) -> Result<(), FbcErrorKind> {
        self.at = scalar::copy_number(self.text.bytes, self.at, self.builder.value())?;
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), FbcErrorKind> {
        let rest = &self.text.bytes[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            // An incomplete word at the end of the input may be cut off; the caller then reads more of the file.
            return Err(if word.as_bytes().starts_with(rest) {
                FbcErrorKind::JsonEnd
            } else {
                invalid("a value is expected")
            });
        }
        self.builder.value().extend_from_slice(word.as_bytes());
        self.at += word.len();
        Ok(())
    }
}
