/// A foreign text on one line of at most so many characters and an ellipsis, with everything escaped that is unprintable.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_texts_stay_on_one_short_line() {
        assert_eq!(line("a\n\u{1b}[2J\u{e9}", 300), "a\\u{a}\\u{1b}[2J\u{e9}");
        assert_eq!(line("a\u{202e}b\u{2028}", 300), "a\\u{202e}b\\u{2028}");
        assert_eq!(line(&"x".repeat(100_000), 300).len(), 303);
        assert_eq!(line(&"x".repeat(300), 300).len(), 300);
    }
}
