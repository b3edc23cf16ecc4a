//! The plan as a table for people that fits into 100 columns.

use crate::{PlannedOperator, UpgradeOrder};

/// Heads of the table.
pub const HEADS: [&str; 6] = ["PACKAGE", "INSTALLED", "VERDICT", "FIRST TO", "THEN TO", "SUPPORT"];

/// Largest width of a remark, in characters.
const NOTE_CHARS: usize = 100;

impl PlannedOperator {
    /// Returns the row of the operator: each cell with the largest width of its column, in characters.
    pub fn cells(&self) -> [(String, usize); 6] {
        let version = self.version.as_deref().or(self.bundle.as_deref());
        let last = self.last_version().filter(|_| self.verdict != UpgradeOrder::NoWay);
        [
            (self.package.clone(), 26),
            (version.unwrap_or_default().to_owned(), 12),
            (self.verdict.as_str().to_owned(), 14),
            (self.at_least.clone().unwrap_or_default(), 12),
            (last.unwrap_or_default().to_owned(), 12),
            (self.target_support.to_string(), 12),
        ]
    }
}

/// Breaks a text at spaces into lines that fit into 100 columns, unless a word does not. Continued lines are indented.
pub fn wrapped(text: &str) -> String {
    let (mut all, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let count = word.chars().count();
        if width > 0 && width + 1 + count > NOTE_CHARS {
            all.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            all.push(' ');
            width += 1;
        }
        all.push_str(word);
        width += count;
    }
    all.push('\n');
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_fit_and_keep_all_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim_end());
        assert!(lines.lines().all(|line| line.chars().count() <= NOTE_CHARS), "{lines}");
        assert!(lines.split_whitespace().eq(text.split_whitespace()));
        assert_eq!(wrapped(&"x".repeat(200)), format!("{}\n", "x".repeat(200)));
    }
}
