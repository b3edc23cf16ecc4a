//! The width of the terminal, and lines that fit it.

use std::io;

/// Returns the number of columns of the terminal; `None` for a file or a pipe.
pub(crate) fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}

/// Breaks a text at spaces into lines that fit the terminal, unless a word does not. Continued
/// lines are indented. In a file or a pipe it is one line.
pub fn wrapped(text: &str) -> String {
    wrapped_in(text, columns().unwrap_or(usize::MAX))
}

fn wrapped_in(text: &str, most: usize) -> String {
    let mut text_lines = String::new();
    let mut width = 0;
    for (at, word) in text.split(' ').enumerate() {
        let chars = word.chars().count();
        if at == 0 {
            width = chars;
        } else if width + 1 + chars <= most {
            text_lines.push(' ');
            width += 1 + chars;
        } else {
            text_lines += "\n  ";
            width = 2 + chars;
        }
        text_lines += word;
    }
    text_lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_fit_and_keep_all_words() {
        let text = "word ".repeat(60);
        let lines = wrapped_in(text.trim_end(), 80);
        assert!(
            lines.lines().all(|line| line.chars().count() <= 80),
            "{lines}"
        );
        assert!(lines.split_whitespace().eq(text.split_whitespace()));
        let long = "x".repeat(200);
        assert_eq!(wrapped_in(&long, 80), format!("{long}\n"));
    }
}
