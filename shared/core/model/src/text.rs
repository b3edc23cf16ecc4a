//! Texts for errors and logs: an error with its causes, and foreign texts, which another party
//! chose.

use std::error::Error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

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
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once(')').map_or(part, |(_, rest)| rest)
    })
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
    let similar = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(unknown, name), name));
    let similar = similar.filter(|(similarity, _)| *similarity >= SIMILAR);
    let best = similar.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map_or_else(String::new, |(_, name)| format!(" (did you mean {name}?)"))
}

/// Returns an error of a YAML parser in the words of YAML: it says the kind to write, and the kind
/// that is there.
///
/// ```
/// use model::text::yaml_error;
///
/// assert_eq!(yaml_error("invalid type: map, expected a sequence"), "write a list, not a mapping");
/// assert_eq!(yaml_error("expected mapping start"), "write a mapping");
/// assert_eq!(yaml_error("unknown field `a`"), "unknown field `a`");
/// ```
pub fn yaml_error(text: &str) -> String {
    let invalid = text.strip_prefix("invalid type: ");
    if let Some((found, wanted)) = invalid.and_then(|rest| rest.split_once(", expected ")) {
        let wanted = yaml_kind(wanted).unwrap_or(wanted);
        // A scalar has its value after its kind: string "a", integer `1`, boolean `true`.
        let value = found
            .split_once(' ')
            .map_or(found, |(_, value)| value.trim_matches('`'));
        return format!("write {wanted}, not {}", yaml_kind(found).unwrap_or(value));
    }
    let wanted = text.strip_prefix("expected ").and_then(yaml_kind);
    wanted.map_or_else(|| text.to_owned(), |wanted| format!("write {wanted}"))
}

/// Returns the YAML word for a kind of value in the errors of a parser.
fn yaml_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "a sequence" | "sequence" | "sequence start" => "a list",
        "a map" | "map" | "mapping start" => "a mapping",
        "a string" | "string scalar" => "a text",
        "path string" => "a path",
        "a boolean" => "true or false",
        "null" | "unit value" => "nothing",
        "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ if kind.starts_with("struct ") => "a mapping",
        _ => return None,
    })
}

/// First line of a certificate in PEM (RFC 7468, section 5), without its end.
pub const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// Returns the certificates of a PEM file, each with what stands in front of the next one. They are
/// split before they are parsed, so that one that is cut off does not hide the next one.
pub fn pem_certificates(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let certificates = text.split(PEM_BEGIN).skip(1);
    certificates
        .map(|rest| [PEM_BEGIN, rest].concat())
        .collect()
}

/// Returns a PEM section with this label (RFC 7468, section 2: lines have 64 characters).
pub fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
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
        if is_unprintable(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line
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
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            // Most lines lie within one chunk and are not copied.
            if self.held.is_empty() {
                each(line);
            } else {
                self.held.extend_from_slice(line);
                each(&std::mem::take(&mut self.held));
            }
            chunk = rest;
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
    fn foreign_texts_stay_on_one_short_line() {
        assert_eq!(line("a\n\u{1b}[2J\u{e9}", 300), "a\\u{a}\\u{1b}[2J\u{e9}");
        assert_eq!(line("a\u{202e}b\u{2028}", 300), "a\\u{202e}b\\u{2028}");
        assert_eq!(line(&"x".repeat(100_000), 300).len(), 303);
        assert_eq!(line(&"x".repeat(300), 300).len(), 300);
        let error = error_line(&io::Error::other("\n".repeat(100_000)));
        assert_eq!(error, "\\u{a}".repeat(MOST_CHARS) + "...");
    }
}
