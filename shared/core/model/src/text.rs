//! Texts for errors and logs: an error with its causes, and foreign texts, which another party
//! chose.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::is_plain_name;

/// An error and its causes as the value of a field in a log line: `error = %Chain(&error)`. Foreign
/// text in it cannot start a line of its own.
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.0))
    }
}

/// An error and its causes on one line, to be printed once, where the error is handled. Texts of
/// other parties in it change no terminal and begin no line, and no URL in it shows its password.
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
    shown_error(&text)
}

/// Returns the text of an error as [`chain`] shows it.
pub fn shown_error(text: &str) -> String {
    let text = without_secrets(&without_numbers(text));
    line(&joined_lines(&text), usize::MAX)
}

/// Returns the lines of a text as one, with a semicolon between two, or nothing after a colon.
fn joined_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if joined.ends_with(':') {
            joined.push(' ');
        } else if !joined.is_empty() {
            joined.push_str("; ");
        }
        joined.push_str(part);
    }
    joined
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
// People copy what is suggested into a shell.
pub fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut best = SIMILAR;
    let mut question = String::new();
    for name in known.into_iter().filter(|name| is_plain_name(name)) {
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
        push_printable(&mut line, c);
    }
    line
}

/// A text of several lines with everything escaped that is unprintable but the ends of its lines.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' {
            shown.push(c);
        } else {
            push_printable(&mut shown, c);
        }
    }
    shown
}

fn push_printable(text: &mut String, c: char) {
    if is_unprintable(c) {
        text.extend(c.escape_unicode());
    } else {
        text.push(c);
    }
}

/// JSON with everything escaped that is unprintable but the ends of its lines. Serializers escape
/// the control characters of ASCII alone. Outside of strings JSON has none of the others.
///
/// ```
/// use model::text::printable_json;
///
/// assert_eq!(printable_json("[\n\"a\u{202e}b\"]"), "[\n\"a\\u202eb\"]");
/// ```
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_unprintable(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Control characters, line separators, and marks that turn the direction of a line (Unicode,
/// property `Bidi_Control`). None is above U+FFFF.
pub fn is_unprintable(c: char) -> bool {
    let is_mark = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || is_mark
}

/// Replacement for the parts of a URL that can hold a secret.
const HIDDEN: &str = "***";

/// A text without the user, the password and the query of each URL in it.
///
/// ```
/// use model::text::without_secrets;
///
/// let text = "cannot read https://robot:pass@host/a?key=1 or docker://host/b@sha256:00";
/// let shown = "cannot read https://***@host/a?*** or docker://host/b@sha256:00";
/// assert_eq!(without_secrets(text), shown);
/// ```
pub fn without_secrets(text: &str) -> String {
    if !text.contains("://") {
        return text.to_owned();
    }
    // Quotes end a URL in JSON, which has no spaces.
    text.split_inclusive(|c: char| c.is_whitespace() || c == '"')
        .map(word_without_secrets)
        .collect()
}

/// An argument or another value that is one URL, if it holds one, as [`without_secrets`] shows it:
/// also a password with spaces, and a user and a password in front of a host without a scheme.
///
/// ```
/// use model::text::value_without_secrets;
///
/// assert_eq!(value_without_secrets("a=https://u:pass word@host/"), "a=https://***@host/");
/// assert_eq!(value_without_secrets("robot:pass@host:5000/a:v1"), "***@host:5000/a:v1");
/// ```
pub fn value_without_secrets(value: &str) -> String {
    if value.contains("://") {
        return word_without_secrets(value);
    }
    let first = value.split('/').next().unwrap_or_default();
    match end_of_login(first) {
        Some(end) if first[..end].contains(':') => format!("{HIDDEN}{}", &value[end..]),
        _ => value.to_owned(),
    }
}

/// Returns a word without the user, the password and the query of each URL in it.
fn word_without_secrets(word: &str) -> String {
    let mut shown = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let authority = &after[..end];
        rest = after;
        // A password may hold a slash, so a user and a password end at the last @ of the word.
        if authority.contains(['@', ':'])
            && let Some(end) = end_of_login(after)
        {
            shown.push_str(HIDDEN);
            rest = &after[end..];
        }
        if let Some((path, query)) = rest.split_once('?') {
            shown.push_str(path);
            shown.push('?');
            shown.push_str(HIDDEN);
            // What a sentence puts behind a URL is no part of it.
            let without_sentence =
                query.trim_end_matches(|c: char| c.is_whitespace() || "'\"`),.:;".contains(c));
            let end = query.find('#').unwrap_or(without_sentence.len());
            rest = &query[end..];
        }
    }
    shown + rest
}

/// Returns the place of the last @ that is not in front of a digest.
fn end_of_login(text: &str) -> Option<usize> {
    for (at, _) in text.rmatch_indices('@') {
        let rest = &text[at + 1..];
        if !rest.starts_with("sha256:") && !rest.starts_with("sha512:") {
            return Some(at);
        }
    }
    None
}

/// Returns the source of a catalog without the folders in which it lies on its machine.
///
/// ```
/// use model::text::without_folders;
///
/// assert_eq!(without_folders("dir:/srv/catalogs/team"), "dir:team");
/// assert_eq!(without_folders("quay.io/a/b:v1"), "quay.io/a/b:v1");
/// ```
pub fn without_folders(source: &str) -> Cow<'_, str> {
    match source.split_once(':') {
        Some((scheme, path)) if is_of_folder(source) => {
            let name = path.trim_end_matches('/').rsplit('/').next();
            format!("{scheme}:{}", name.unwrap_or_default()).into()
        }
        _ => source.into(),
    }
}

/// Returns true for the text of a source that is a folder of some machine.
pub fn is_of_folder(source: &str) -> bool {
    matches!(source.split_once(':'), Some(("dir" | "oci", _)))
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
            "cannot open the door: a; 2025-01-01 INFO all is well"
        );
    }

    #[test]
    fn foreign_texts_stay_on_one_short_line() {
        assert_eq!(line("a\n\u{1b}[2J\u{e9}", 300), "a\\u{a}\\u{1b}[2J\u{e9}");
        assert_eq!(line("a\u{202e}b\u{2028}", 300), "a\\u{202e}b\\u{2028}");
        assert_eq!(line(&"x".repeat(100_000), 300).len(), 303);
        assert_eq!(line(&"x".repeat(300), 300).len(), 300);
        let error = error_line(&io::Error::other("\u{1}".repeat(100_000)));
        assert_eq!(error, "\\u{1}".repeat(MOST_CHARS / 5) + "...");
    }

    #[test]
    fn chain_shows_neither_secrets_nor_what_changes_a_terminal() {
        let error = io::Error::other("problems:\n  https://u:s3cret@h/\u{1b}[2J\u{200f}\nb");
        assert_eq!(
            chain(&error),
            "problems: https://***@h/\\u{1b}[2J\\u{200f}; b"
        );
    }

    #[test]
    fn did_you_mean_suggests_no_name_that_a_shell_would_run() {
        assert_eq!(did_you_mean("etcd;tru", ["etcd;true", "--etcd"]), "");
        assert_eq!(
            did_you_mean("etcd;tru", ["etcd-tru"]),
            " (did you mean etcd-tru?)"
        );
    }

    #[test]
    fn secrets_of_urls_are_hidden_whatever_they_hold() {
        for (text, shown) in [
            ("https://s3cret@h/x", "https://***@h/x"),
            ("https://u:s3@cret@h/x", "https://***@h/x"),
            ("https://u:s3/cr#e?t@h/x", "https://***@h/x"),
            (
                "git:https://u:s3cret@h/x#main:a",
                "git:https://***@h/x#main:a",
            ),
            ("c=https://h/x.tar?s=s3cret#a", "c=https://h/x.tar?***#a"),
            ("`https://h/x?s=s3cret`: no", "`https://h/x?***`: no"),
            (
                r#"{"a":"https://h:1/","b":"c@d"}"#,
                r#"{"a":"https://h:1/","b":"c@d"}"#,
            ),
            ("https://a/,https://u:s3cret@b", "https://a/,https://***@b"),
            (
                "docker://u:s3cret@h/a@sha256:00",
                "docker://***@h/a@sha256:00",
            ),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
        for plain in [
            "http://h:80/a",
            "https://h/@scope/b",
            "docker://h/a:v1@sha256:00",
            "git@h:a/b",
            "h:5000/a@sha256:00",
            "a@b.example",
            "dir:a/b@c:d",
        ] {
            assert_eq!(value_without_secrets(plain), plain);
        }
        assert_eq!(value_without_secrets("u:s3 cret@h/a"), "***@h/a");
    }
}
