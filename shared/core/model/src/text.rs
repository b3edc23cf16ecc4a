//! Texts for errors and logs: an error with its causes, and foreign texts, which another party
//! chose.

use std::error::Error;
use std::fmt;

/// An error and its causes as the value of a field in a log line: `error = %Chain(&error)`. Foreign
/// text in it cannot start a line of its own.
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in chain(self.0).chars() {
            write_printable(f, c)?;
        }
        Ok(())
    }
}

/// An error and its causes on one line, to be printed once, where the error is handled.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        // Some libraries repeat their source in their own text.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    without_numbers(&text)
}

/// Removes the numbers that the standard library adds to errors of the system, such as
/// ` (os error 2)`.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((_, rest)) => text.push_str(rest),
            None => text.push_str(part),
        }
    }
    text
}

/// Least similarity of a name that is suggested, from 0 to 1: one that lacks a letter or has two of
/// them swapped.
const SIMILAR: f64 = 0.9;

/// Returns a question for the known name that is most similar to an unknown one, to be added to an
/// error. Empty if none is similar.
///
/// ```
/// use model::text::did_you_mean;
///
/// assert_eq!(did_you_mean("etdc", ["argocd", "etcd"]), " (did you mean etcd?)");
/// assert_eq!(did_you_mean("kafka", ["argocd", "etcd"]), "");
/// ```
pub fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut best = SIMILAR;
    let mut question = String::new();
    for name in known {
        let similarity = strsim::jaro_winkler(unknown, name);
        // Of several that are equally similar, the last one.
        if similarity >= best {
            best = similarity;
            question = format!(" (did you mean {name}?)");
        }
    }
    question
}

/// The most that is kept of an error: enough for what is wrong with five files.
const MOST_CHARS: usize = 4000;

/// An error and its causes to be kept, on one line of bounded length, as they may repeat foreign
/// texts.
pub fn error_line(error: &dyn Error) -> String {
    line(&chain(error), MOST_CHARS)
}

/// A foreign text on one line of at most so many characters and an ellipsis, with everything
/// escaped that is unprintable.
pub fn line(text: &str, most_chars: usize) -> String {
    let mut line = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most_chars {
            line.push_str("...");
            break;
        }
        // A `String` takes every character.
        let _ = write_printable(&mut line, c);
    }
    line
}

fn write_printable(text: &mut impl fmt::Write, c: char) -> fmt::Result {
    if is_unprintable(c) {
        write!(text, "{}", c.escape_unicode())
    } else {
        text.write_char(c)
    }
}

/// Control characters, line separators, and marks that turn the direction of a line.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Splitter of text that comes in chunks of any size into its lines. It holds at most one line.
///
/// ```
/// use model::text::LineBuffer;
///
/// let mut found = Vec::new();
/// let mut lines = LineBuffer::default();
/// lines.push(b"one\ntw", |line| found.push(line.to_vec()));
/// lines.push(b"o\nthree", |line| found.push(line.to_vec()));
/// lines.finish(|line| found.push(line.to_vec()));
/// assert_eq!(found, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
/// ```
#[derive(Debug, Default)]
pub struct LineBuffer {
    /// Start of a line whose end has not come yet.
    held: Vec<u8>,
}

impl LineBuffer {
    /// Passes each line that ends in `chunk` to `each`, without its newline.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let line = &chunk[..end];
            // Most lines lie within one chunk and are not copied.
            if self.held.is_empty() {
                each(line);
            } else {
                self.held.extend_from_slice(line);
                each(&std::mem::take(&mut self.held));
            }
            chunk = &chunk[end + 1..];
        }
        self.held.extend_from_slice(chunk);
    }

    /// Passes a last line without a newline to `each`, if there is one.
    pub fn finish(&mut self, each: impl FnOnce(&[u8])) {
        let last = std::mem::take(&mut self.held);
        if !last.is_empty() {
            each(&last);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open the door")]
    struct Door(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open the door: {0}")]
    struct ChattyDoor(#[source] io::Error);

    #[test]
    fn chain_joins_causes_once_on_one_line_without_numbers_of_the_system() {
        let no_key = || io::Error::other("no key");
        assert_eq!(chain(&Door(no_key())), "cannot open the door: no key");
        assert_eq!(chain(&ChattyDoor(no_key())), "cannot open the door: no key");
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(
            chain(&Door(missing)),
            "cannot open the door: No such file or directory"
        );
    }

    #[test]
    fn chain_in_a_log_line_stays_on_it() {
        let forged = Door(io::Error::other("a\n2025-01-01 INFO all is well"));
        assert_eq!(
            Chain(&forged).to_string(),
            "cannot open the door: a\\u{a}2025-01-01 INFO all is well"
        );
    }

    #[test]
    fn foreign_texts_stay_on_one_short_line() {
        assert_eq!(line("a\n\u{1b}[2J\u{e9}", 300), "a\\u{a}\\u{1b}[2J\u{e9}");
        assert_eq!(line("a\u{202e}b\u{2028}", 300), "a\\u{202e}b\\u{2028}");
        assert_eq!(line(&"x".repeat(100_000), 300).len(), 303);
        assert_eq!(line(&"x".repeat(300), 300).len(), 300);
        let error = error_line(&io::Error::other("\n".repeat(100_000)));
        assert_eq!(error, "\\u{a}".repeat(MOST_CHARS) + "...");
    }
}
