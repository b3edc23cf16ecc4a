use std::error::Error;

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
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open the door")]
    struct Door(#[source] io::Error);

    #[test]
    fn chain_joins_causes_on_one_line() {
        assert_eq!(chain(&Door(io::Error::other("no key"))), "cannot open the door: no key");
    }

    #[test]
    fn chain_does_not_repeat_a_cause_that_the_error_contains() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open the door: {0}")]
        struct Chatty(#[source] io::Error);
        assert_eq!(
            chain(&Chatty(io::Error::other("no key"))),
            "cannot open the door: no key"
        );
    }
}
