//! Text that a registry chose, before it is shown to anybody.

/// What a name may be long; longer than any host or digest.
const MOST_CHARS: usize = 255;

/// Shorter ones are in every text, and would only tell that they are.
const LEAST_SECRET_BYTES: usize = 4;

/// The text, so that it fits a log line: one line, bounded, without terminal escapes. A text that holds one of the
/// secrets that were sent is withheld; letters count in any case, because host names lose theirs.
pub(crate) fn shown(text: &str, secrets: &[String]) -> String {
    let lower = text.to_ascii_lowercase();
    let leaks = |secret: &String| secret.len() >= LEAST_SECRET_BYTES && lower.contains(&secret.to_ascii_lowercase());
    if secrets.iter().any(leaks) {
        return "(withheld: it repeats a secret that was sent)".to_owned();
    }
    let mut shown: String = text.chars().take(MOST_CHARS).map(visible).collect();
    if text.chars().nth(MOST_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Also the marks that name a direction, which no host or digest needs.
fn visible(c: char) -> char {
    match c {
        '\u{200e}' | '\u{200f}' => char::REPLACEMENT_CHARACTER,
        _ if text::is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_short_line_without_secrets() {
        let secrets = ["Hunter22".to_owned(), "x".to_owned(), String::new()];
        assert_eq!(shown("cdn.example.com", &secrets), "cdn.example.com");
        assert_eq!(
            shown("a\u{1b}[31m\r\nb\u{202e}", &[]),
            "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}"
        );
        assert_eq!(shown(&"é".repeat(256), &[]).chars().count(), 256);
        assert_eq!(shown(&"é".repeat(255), &[]), "é".repeat(255));
        assert!(shown("hunter22.evil.example", &secrets).starts_with("(withheld"));
    }
}
