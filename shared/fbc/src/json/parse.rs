use crate::canon::{Canon, Kind};
use crate::error::Problem;

use super::{number, string};

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) problem: Problem,
}

impl Fault {
    pub(super) fn new(at: usize, what: &'static str) -> Self {
        Self {
            at,
            problem: Problem::Json(what),
        }
    }

    pub(super) fn end(at: usize) -> Self {
        Self {
            at,
            problem: Problem::JsonEnd,
        }
    }
}

/// Parses the value that starts at `at` into `canon`; returns where it ends.
pub(crate) fn parse(text: &str, at: usize, canon: &mut Canon) -> Result<usize, Fault> {
    let mut parser = Parser { text, at, canon };
    // A loop instead of recursion: how deep it goes is the input's choice.
    loop {
        parser.value()?;
        if parser.close()? {
            return Ok(parser.at);
        }
    }
}

/// Where the white space that starts at `at` ends.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    canon: &'a mut Canon,
}

impl Parser<'_> {
    /// The next byte that is no white space.
    #[inline]
    fn next(&mut self) -> Result<u8, Fault> {
        self.at = skip_space(self.text.as_bytes(), self.at);
        let byte = self.text.as_bytes().get(self.at);
        byte.copied().ok_or_else(|| Fault::end(self.at))
    }

    /// Reads a scalar or an empty container, or opens containers up to the first scalar in them.
    fn value(&mut self) -> Result<(), Fault> {
        loop {
            let opened = match self.next()? {
                b'"' => return self.string(),
                b'{' => self.open(Kind::Object, b'}')?,
                b'[' => self.open(Kind::Array, b']')?,
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                b'-' | b'0'..=b'9' => return self.number(),
                _ => return Err(Fault::new(self.at, "a value is expected")),
            };
            if !opened {
                return Ok(());
            }
        }
    }

    /// Opens a container; false if it is empty, and so closed again.
    fn open(&mut self, kind: Kind, close: u8) -> Result<bool, Fault> {
        let fault = |problem| Fault { at: self.at, problem };
        self.canon.begin(kind).map_err(fault)?;
        self.at += 1;
        if self.next()? == close {
            self.at += 1;
            self.canon.end();
            return Ok(false);
        }
        if kind == Kind::Object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a value: closes what ends here, up to the next comma; true if nothing is open any more.
    fn close(&mut self) -> Result<bool, Fault> {
        while let Some(kind) = self.canon.kind() {
            match (self.next()?, kind) {
                (b',', Kind::Array) => {
                    self.at += 1;
                    return Ok(false);
                }
                (b',', Kind::Object) => {
                    self.at += 1;
                    self.next()?;
                    self.key()?;
                    return Ok(false);
                }
                (b']', Kind::Array) | (b'}', Kind::Object) => {
                    self.at += 1;
                    self.canon.end();
                }
                _ => return Err(Fault::new(self.at, "a comma or the end is expected")),
            }
        }
        Ok(true)
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), Fault> {
        if self.text.as_bytes().get(self.at) != Some(&b'"') {
            return Err(Fault::new(self.at, "a key is expected"));
        }
        let start = self.at + 1;
        let plain = string::plain_end(self.text, start);
        if self.text.as_bytes().get(plain) == Some(&b'"') {
            self.canon.plain_key(&self.text[start..plain]);
            self.at = plain + 1;
        } else {
            let mut key = String::new();
            self.at = string::decode(self.text, start, &mut key)?;
            self.canon.key(&key);
        }
        if self.next()? != b':' {
            return Err(Fault::new(self.at, "a colon is expected"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at = string::copy(self.text, self.at + 1, self.canon.value())?;
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.at = number::copy(self.text, self.at, self.canon.value())?;
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            return Err(if word.as_bytes().starts_with(rest) {
                Fault::end(self.text.len())
            } else {
                Fault::new(self.at, "a value is expected")
            });
        }
        self.canon.value().extend_from_slice(word.as_bytes());
        self.at += word.len();
        Ok(())
    }
}
