//! A look at the tokens of a query before it is parsed.

/// Maximum depth of brackets of all kinds. The parser and the validation recurse once or more for each; real queries have ten.
const NESTING_MAX: usize = 40;

/// Maximum number of tokens, by which the time for parsing and validation is bounded: thirty for each field that a query may
/// have. It is the default of graphql-java.
const TOKENS_MAX: usize = 15_000;

/// Checks the nesting and the number of tokens. A text that is no query may pass.
///
/// # Errors
/// A message for the client.
pub(crate) fn scan(query: &str) -> Result<(), String> {
    let bytes = query.as_bytes();
    let (mut at, mut tokens, mut nesting) = (0, 0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            // A comma is white space in GraphQL.
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {
                at += 1;
                continue;
            }
            b'#' => {
                at = line_end(bytes, at);
                continue;
            }
            b'"' => string_end(bytes, at),
            b'.' if bytes[at..].starts_with(b"...") => at + 3,
            _ if is_word(byte) => word_end(bytes, at),
            _ => at + 1,
        };
        tokens += 1;
        match byte {
            b'{' | b'[' | b'(' => nesting += 1,
            b'}' | b']' | b')' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > NESTING_MAX {
            return Err(format!("query exceeds maximum nesting of {NESTING_MAX} brackets"));
        }
        if tokens > TOKENS_MAX {
            return Err(format!("query exceeds maximum length of {TOKENS_MAX} tokens"));
        }
    }
    Ok(())
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|&byte| !is_word(byte));
    length.map_or(bytes.len(), |length| at + length)
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    length.map_or(bytes.len(), |length| at + length)
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let is_block = rest.starts_with(b"\"\"\"");
    let quote: &[u8] = if is_block { b"\"\"\"" } else { b"\"" };
    let mut end = at + quote.len();
    while end < bytes.len() {
        let rest = &bytes[end..];
        if rest.starts_with(quote) {
            return end + quote.len();
        }
        // A block string ends at its quotes only; another one may not contain a line break, and the parser refuses it.
        match rest[0] {
            b'\\' if is_block => end += if rest[1..].starts_with(quote) { 4 } else { 1 },
            b'\\' => end += 2,
            b'\n' | b'\r' if !is_block => return end,
            _ => end += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_takes_exactly_the_limits() {
        let nested = |depth| "{".repeat(depth);
        assert_eq!(scan(&nested(NESTING_MAX)), Ok(()));
        assert!(scan(&nested(NESTING_MAX + 1)).is_err());
        let words = |count| "a ".repeat(count);
        assert_eq!(scan(&words(TOKENS_MAX)), Ok(()));
        assert!(scan(&words(TOKENS_MAX + 1)).is_err());
    }

    #[test]
    fn scan_ignores_brackets_in_strings_and_comments() {
        let many = "{".repeat(NESTING_MAX + 1);
        for query in [
            format!("# {many}\n{{a}}"),
            format!("{{a(b: \"{many}\\\"{many}\")}}"),
            format!("{{a(b: \"\"\"{many}\n\" \\\"\"\" {many}\"\"\")}}"),
        ] {
            assert_eq!(scan(&query), Ok(()), "{query}");
        }
        assert!(scan(&format!("{{a(b: \"\n{many}")).is_err());
        assert!(scan(&format!("\"\"\"\"{many}\"\"\"{many}")).is_err());
    }

    proptest::proptest! {
        #[test]
        fn scan_never_panics(query in "\\PC*") {
            let _ = scan(&query);
        }
    }
}
