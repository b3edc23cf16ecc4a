//! Texts as Go prints them: catalogd sends the output of `encoding/json` and of `fmt`.

/// Returns a number as `encoding/json` prints a float64.
pub(crate) fn json_number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // The only exponents of one digit here are negative, and this form keeps them so.
        return exponential(value, 1);
    }
    value.to_string()
}

/// Returns a number as `fmt` prints a float64 with `%v`.
pub(crate) fn plain_number(value: f64) -> String {
    let text = format!("{value:e}");
    let exponent: i32 = text
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or_default();
    if (-4..PLAIN_EXPONENT_MAX).contains(&exponent) {
        value.to_string()
    } else {
        exponential(value, 2)
    }
}

/// Exponent from which on `%v` prints one.
const PLAIN_EXPONENT_MAX: i32 = 6;

fn exponential(value: f64, digits: usize) -> String {
    let text = format!("{value:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{mantissa}e-{exponent:0>digits$}"),
        None => format!("{mantissa}e+{exponent:0>digits$}"),
    }
}

/// Returns canonical JSON as `encoding/json` prints the value that it decodes to: numbers as float64, and `<`, `>`, `&` and
/// the two line separators of Unicode as escapes. `None` for a number beyond float64.
pub(crate) fn json_text(canonical: &str) -> Option<String> {
    printed(canonical, None)
}

/// Returns canonical JSON with null in the place of numbers beyond float64, which parsers refuse.
pub(crate) fn without_huge_numbers(canonical: &str) -> String {
    printed(canonical, Some("null")).unwrap_or_default()
}

fn printed(canonical: &str, for_huge: Option<&str>) -> Option<String> {
    let mut out = String::with_capacity(canonical.len() + canonical.len() / 16);
    let mut rest = canonical;
    // A loop and not a recursion: a Meta may be nested deeper than the stack allows.
    while let Some(first) = rest.bytes().next() {
        rest = match first {
            b'"' => push_string(rest, &mut out),
            b'-' | b'0'..=b'9' => {
                let end = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
                let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
                if push_number(number, &mut out).is_none() {
                    out.push_str(for_huge?);
                }
                rest
            }
            _ => {
                let end = rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9'));
                let (other, rest) = rest.split_at(end.unwrap_or(rest.len()));
                out.push_str(other);
                rest
            }
        };
    }
    Some(out)
}

/// Copies the string at the start of `text`, and returns the text after it. Its escapes are those of Go already.
fn push_string<'a>(text: &'a str, out: &mut String) -> &'a str {
    let bytes = text.as_bytes();
    // What is before `start` has been copied.
    let (mut start, mut at) = (0, 1);
    while let Some(&byte) = bytes.get(at) {
        let special = match byte {
            b'"' => {
                out.push_str(&text[start..=at]);
                return &text[at + 1..];
            }
            // The escaped character is ASCII.
            b'\\' => {
                at += 2;
                continue;
            }
            b'<' | b'>' | b'&' => char::from(byte),
            // The first byte of the separators of Unicode, and of others.
            0xE2 => match text[at..].chars().next() {
                Some(separator @ ('\u{2028}' | '\u{2029}')) => separator,
                _ => {
                    at += 3;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        out.push_str(&text[start..at]);
        out.push_str(&format!("\\u{:04x}", u32::from(special)));
        at += special.len_utf8();
        start = at;
    }
    out.push_str(&text[start.min(text.len())..]);
    ""
}

fn push_number(number: &str, out: &mut String) -> Option<()> {
    // Most are small integers, which are printed as they are.
    if number.len() <= 15 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        out.push_str(number);
        return Some(());
    }
    let value: f64 = number.parse().ok().filter(|value: &f64| value.is_finite())?;
    out.push_str(&json_number(value));
    Some(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", "0", "0")]
    #[case("-0", "-0", "-0")]
    #[case("1.0", "1", "1")]
    #[case("-1.50", "-1.5", "-1.5")]
    #[case("123456", "123456", "123456")]
    #[case("1234567", "1234567", "1.234567e+06")]
    #[case("1e20", "100000000000000000000", "1e+20")]
    #[case("1e21", "1e+21", "1e+21")]
    #[case("1.5e300", "1.5e+300", "1.5e+300")]
    #[case("0.0001", "0.0001", "0.0001")]
    #[case("0.00001", "0.00001", "1e-05")]
    #[case("0.0000001", "1e-7", "1e-07")]
    #[case("1e-10", "1e-10", "1e-10")]
    #[case("12345678901234567890", "12345678901234567000", "1.2345678901234567e+19")]
    fn numbers_are_those_of_go(#[case] text: &str, #[case] json: &str, #[case] plain: &str) {
        let value: f64 = text.parse().unwrap();
        assert_eq!(json_number(value), json);
        assert_eq!(plain_number(value), plain);
    }

    #[rstest]
    #[case(r#"{"a":[1,2.50,-3],"b":null,"c":true}"#, r#"{"a":[1,2.5,-3],"b":null,"c":true}"#)]
    #[case(r#"{"a<":"x & y > \"z\" \\"}"#, r#"{"a\u003c":"x \u0026 y \u003e \"z\" \\"}"#)]
    #[case("[\"\u{2028}ü\u{2029}\"]", "[\"\\u2028ü\\u2029\"]")]
    #[case(r#"["\u2028\n","1e3"]"#, r#"["\u2028\n","1e3"]"#)]
    #[case("[1e3,12345678901234567890]", "[1000,12345678901234567000]")]
    fn json_text_is_that_of_go(#[case] canonical: &str, #[case] text: &str) {
        assert_eq!(json_text(canonical).as_deref(), Some(text));
    }

    #[test]
    fn json_text_takes_any_depth_and_refuses_numbers_beyond_float64() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(json_text(&deep).as_deref(), Some(deep.as_str()));
        assert_eq!(json_text("[1e999]"), None);
        assert_eq!(
            without_huge_numbers(r#"{"a":[1e999,"1e999",-7.5]}"#),
            r#"{"a":[null,"1e999",-7.5]}"#
        );
    }
}
