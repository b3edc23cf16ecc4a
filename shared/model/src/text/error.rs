use std::error::Error;

use super::{chain, line};

/// The most that is kept of an error: enough for what is wrong with five files.
const MOST_CHARS: usize = 4000;

/// An error and its causes to be kept, on one line of bounded length, as they may repeat foreign texts.
pub fn error_line(error: &dyn Error) -> String {
    line(&chain(error), MOST_CHARS)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_line_is_one_line() {
        let said = |text: &str| error_line(&io::Error::other(text.to_owned()));
        assert_eq!(said("a\nb\u{1b}[31m"), "a\\u{a}b\\u{1b}[31m");
        assert_eq!(said(&"x".repeat(1_000_000)).len(), MOST_CHARS + 3);
    }
}
