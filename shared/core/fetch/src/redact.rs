//! Text that a server chose, made safe for errors and logs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Maximum length of a shown text, in characters. Longer than any host name or digest.
const MAX_CHARS: usize = 255;

/// Minimum length of a secret that is searched for. Shorter ones occur in every text.
const MIN_SECRET_BYTES: usize = 4;

/// Replacement for a text that holds a secret.
pub const WITHHELD: &str = "(withheld: it repeats a secret that was sent)";

/// Secrets that were sent to a server, in every form in which it could repeat them.
///
/// ```
/// use fetch::SentSecrets;
///
/// let mut secrets = SentSecrets::default();
/// secrets.add_login("robot", "hunter22");
/// assert_eq!(secrets.show("cdn.example.com"), "cdn.example.com");
/// assert!(secrets.show("hunter22.evil.example").starts_with("(withheld"));
/// ```
#[derive(Clone, Default)]
pub struct SentSecrets(Vec<String>);

impl SentSecrets {
    /// Adds a token to the texts that must not be shown.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.to_ascii_lowercase();
        if !self.0.contains(&secret) {
            self.0.push(secret);
        }
    }

    /// Adds a password, also in the form in which HTTP's basic authentication sends it.
    pub fn add_login(&mut self, user: &str, password: &str) {
        self.add(password);
        self.add(&STANDARD.encode(format!("{user}:{password}")));
    }

    /// Returns true if `text` holds a secret. Ignores case, because host names lose theirs.
    pub fn are_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.0
            .iter()
            .any(|secret| secret.len() >= MIN_SECRET_BYTES && text.contains(secret))
    }

    /// Returns `text` for a log line: one line, at most 255 characters, without terminal escapes. A
    /// text that holds a secret is replaced as a whole.
    pub fn show(&self, text: &str) -> String {
        if self.are_in(text) {
            return WITHHELD.to_owned();
        }
        let mut shown: String = text.chars().take(MAX_CHARS).map(printable).collect();
        if text.chars().nth(MAX_CHARS).is_some() {
            shown.push('…');
        }
        shown
    }
}

/// Replaces what no host name or digest needs.
fn printable(c: char) -> char {
    if model::text::is_unprintable(c) {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_returns_one_short_line_without_secrets() {
        let mut secrets = SentSecrets::default();
        for secret in ["Hunter22", "x", ""] {
            secrets.add(secret);
        }
        let clean = secrets.show("a\u{1b}[31m\r\nb\u{202e}");
        assert_eq!(clean, "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(secrets.show(&"é".repeat(256)).chars().count(), 256);
        assert_eq!(secrets.show(&"é".repeat(255)), "é".repeat(255));
        assert!(
            secrets
                .show("hunter22.evil.example")
                .starts_with("(withheld")
        );
    }

    #[test]
    fn login_is_found_in_plain_and_encoded_form() {
        let mut secrets = SentSecrets::default();
        secrets.add_login("robot", "hunter2");
        assert!(secrets.are_in("artifact/HUNTER2") && secrets.are_in("cm9ib3Q6aHVudGVyMg=="));
        assert!(!secrets.are_in("robot"));
    }
}
