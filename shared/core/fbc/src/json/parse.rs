use crate::canon::memory::Text;
use crate::canon::text::{escape, escape_one, float, plain_run};
use crate::canon::{Container, LineBuilder};
use crate::error::{FbcErrorKind, excerpt};

use super::{JsonText, REPLACEMENT};

/// Error at a byte of the JSON text.
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) kind: FbcErrorKind,
}

fn invalid(what: &str) -> FbcErrorKind {
    FbcErrorKind::Malformed(format!("invalid JSON: {what}"))
}

/// Parses the value that starts at `at` into `builder` and returns its end.
pub(crate) fn parse(
    text: JsonText<'_>,
    at: usize,
    builder: &mut LineBuilder,
) -> Result<usize, JsonError> {
    let mut parser = Parser { text, at, builder };
    match parser.whole_value() {
        Ok(()) => Ok(parser.at),
        Err(kind) => Err(JsonError {
            at: parser.at,
            kind,
        }),
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
        // A loop instead of recursion: the input decides the depth, and a deep one must not
        // overflow the thread's stack.
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
        let text = self.text;
        let at = self.at;
        let out = self.builder.value();
        self.at = match first {
            b'"' => copy_string(text, at + 1, out)?,
            b'-' | b'0'..=b'9' => copy_number(text.bytes, at, out)?,
            b't' => copy_word(text.bytes, at, b"true", out)?,
            b'f' => copy_word(text.bytes, at, b"false", out)?,
            b'n' => copy_word(text.bytes, at, b"null", out)?,
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

    /// Closes the containers that end after a value, up to the next comma. Returns true if none is
    /// open any more.
    fn close(&mut self) -> Result<bool, FbcErrorKind> {
        while let Some(kind) = self.builder.kind() {
            match (self.next()?, kind) {
                (b',', _) => {
                    self.at += 1;
                    if kind == Container::Object {
                        self.key()?;
                    }
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
        if self.next()? != b'"' {
            return Err(invalid("a key is expected"));
        }
        let start = self.builder.begin_key();
        self.at = copy_string(self.text, self.at + 1, self.builder.value())?;
        self.builder.end_key(start);
        if self.next()? != b':' {
            return Err(invalid("a colon is expected"));
        }
        self.at += 1;
        Ok(())
    }
}

/// Copies the string whose first character is at `at` in canonical form and returns its end.
fn copy_string(text: JsonText<'_>, mut at: usize, out: &mut Text) -> Result<usize, FbcErrorKind> {
    let bytes = text.bytes;
    out.push(b'"');
    loop {
        let plain = at + plain_run(&bytes[at..]);
        text.copy(at..plain, out);
        at = plain;
        match bytes[at..] {
            [b'"', ..] => {
                out.push(b'"');
                return Ok(at + 1);
            }
            // These escapes are canonical already.
            [
                b'\\',
                short @ (b'n' | b't' | b'"' | b'\\' | b'r' | b'b' | b'f'),
                ..,
            ] => {
                out.extend_from_slice(&[b'\\', short]);
                at += 2;
            }
            [b'\\', ..] => {
                let (character, end) = unescape(bytes, at)?;
                escape(character.encode_utf8(&mut [0; 4]), out);
                at = end;
            }
            // 0xE2 starts U+2028 and U+2029, which Go escapes, and many characters that it does
            // not.
            [0xE2, 0x80..=0xBF, 0x80..=0xBF, ..] => at += escape_one(&bytes[at..], out),
            [0xE2, ..] => {
                out.extend_from_slice(REPLACEMENT.as_bytes());
                at += 1;
            }
            [] => return Err(FbcErrorKind::JsonEnd),
            _ => return Err(invalid("a control character in a string")),
        }
    }
}

/// Returns the character of the escape at `at` and the end of the escape.
fn unescape(bytes: &[u8], at: usize) -> Result<(char, usize), FbcErrorKind> {
    let character = match bytes.get(at + 1) {
        None => return Err(FbcErrorKind::JsonEnd),
        Some(b'u') => return unicode(bytes, at),
        Some(quoted @ (b'"' | b'\\' | b'/')) => char::from(*quoted),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(_) => return Err(invalid("an unknown escape in a string")),
    };
    Ok((character, at + 2))
}

/// Returns the character of the `\u` escape at `at` and its end. Half a surrogate pair becomes
/// U+FFFD, as in Go.
fn unicode(bytes: &[u8], at: usize) -> Result<(char, usize), FbcErrorKind> {
    let high = hex(bytes, at)?;
    if (0xD800..0xDC00).contains(&high)
        && bytes[at + 6..].starts_with(b"\\u")
        && let Ok(low) = hex(bytes, at + 6)
        && let Some(Ok(pair)) = char::decode_utf16([high, low]).next()
    {
        return Ok((pair, at + 12));
    }
    let character = char::from_u32(high.into()).unwrap_or(char::REPLACEMENT_CHARACTER);
    Ok((character, at + 6))
}

fn hex(bytes: &[u8], at: usize) -> Result<u16, FbcErrorKind> {
    let digits = bytes.get(at + 2..at + 6).ok_or(FbcErrorKind::JsonEnd)?;
    // `from_str_radix` would take a sign.
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits);
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let value = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
    value.ok_or_else(|| invalid("an invalid \\u escape"))
}

/// Copies the number at `at` in canonical form and returns its end.
fn copy_number(bytes: &[u8], at: usize, out: &mut Text) -> Result<usize, FbcErrorKind> {
    let mut end = at + usize::from(bytes[at] == b'-');
    end = match bytes.get(end) {
        Some(b'0') => end + 1,
        _ => digits(bytes, end)?,
    };
    let integer = end;
    if bytes.get(end) == Some(&b'.') {
        end = digits(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        end += 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(bytes, end)?;
    }
    // An integer keeps all its digits. catalogd rounds integers beyond 2^53, see the list of
    // deviations.
    if end == integer {
        out.extend_from_slice(&bytes[at..end]);
        return Ok(end);
    }
    // It is ASCII, so the conversion never fails.
    let number = std::str::from_utf8(&bytes[at..end]).unwrap_or_default();
    match number.parse() {
        Ok(value) if f64::is_finite(value) => float(value, out),
        _ => return Err(FbcErrorKind::NumberRange(excerpt(number))),
    }
    Ok(end)
}

/// Copies the word at `at` and returns its end.
fn copy_word(bytes: &[u8], at: usize, word: &[u8], out: &mut Text) -> Result<usize, FbcErrorKind> {
    let rest = &bytes[at..];
    if rest.starts_with(word) {
        out.extend_from_slice(word);
        return Ok(at + word.len());
    }
    // An incomplete word at the end of the input may be cut off; the caller then reads more of the
    // file.
    match word.starts_with(rest) {
        true => Err(FbcErrorKind::JsonEnd),
        false => Err(invalid("a value is expected")),
    }
}

/// Returns the end of the digits at `at`. Fails if there is none.
fn digits(bytes: &[u8], at: usize) -> Result<usize, FbcErrorKind> {
    let count = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    match count {
        0 if at == bytes.len() => Err(FbcErrorKind::JsonEnd),
        0 => Err(invalid("a digit is expected")),
        _ => Ok(at + count),
    }
}
