/// The most that an error repeats of what a catalog holds, which may be megabytes.
const MOST_CHARS: usize = 300;

/// A foreign text on one short line, without anything that a terminal would obey.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == MOST_CHARS {
            line.push_str("...");
            break;
        }
        if c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line
}

/// The error with its causes, because a list of problems has no single source to hold them.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    line(&text)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn foreign_texts_stay_on_one_short_line() {
        assert_eq!(line("a\n\u{1b}[2J\u{e9}"), "a\\u{a}\\u{1b}[2J\u{e9}");
        assert_eq!(line(&"x".repeat(100_000)).len(), 303);
    }
}
