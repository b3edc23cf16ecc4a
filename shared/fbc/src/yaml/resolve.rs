//! What a scalar means, by the rules of go-yaml v2.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use crate::error::Problem;

use super::source::{Scalar, Tag};

/// A scalar's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// An integer that 64 bits hold, signed or not.
    Int(i128),
    /// The digits of an integer that they do not hold.
    Big(String),
    Float(f64),
    String(Cow<'a, str>),
}

/// As in Go, bits that a final digit leaves over may be anything.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Finds out what a scalar means.
pub(super) fn resolve<'a>(scalar: Scalar<'a>) -> Result<Value<'a>, Problem> {
    let Scalar { value, plain, tag } = scalar;
    match tag {
        Tag::None if plain => Ok(untagged(&value).unwrap_or(Value::String(value))),
        Tag::None | Tag::Str | Tag::Bang | Tag::Merge | Tag::Other => Ok(Value::String(value)),
        Tag::Binary => binary(&value),
        Tag::Timestamp if untagged(&value).is_none() && dated(&value) => Ok(Value::String(value)),
        _ => tagged(&value, tag),
    }
}

/// A value under a tag that says what it must be.
fn tagged<'a>(value: &str, tag: Tag) -> Result<Value<'a>, Problem> {
    match (untagged(value), tag) {
        (Some(found @ Value::Null), Tag::Null)
        | (Some(found @ Value::Bool(_)), Tag::Bool)
        | (Some(found @ Value::Int(_)), Tag::Int)
        | (Some(found @ (Value::Float(_) | Value::Big(_))), Tag::Float) => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
        (Some(Value::Int(int)), Tag::Float) if i64::try_from(int).is_ok() => Ok(Value::Float(int as f64)),
        _ => Err(Problem::Tag {
            value: value.chars().take(80).collect(),
            tag: name(tag),
        }),
    }
}

fn name(tag: Tag) -> &'static str {
    match tag {
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Null => "!!null",
        Tag::Timestamp => "!!timestamp",
        Tag::Binary => "!!binary",
        Tag::None | Tag::Str | Tag::Merge | Tag::Bang | Tag::Other => "!!str",
    }
}

/// A timestamp stays a string, so it is enough that it looks like one.
fn dated(value: &str) -> bool {
    let year = value.bytes().take_while(u8::is_ascii_digit).count();
    year == 4 && value[4..].starts_with('-')
}

fn binary<'a>(value: &str) -> Result<Value<'a>, Problem> {
    let digits: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = BASE64.decode(digits).map_err(|_| Problem::Tag {
        value: value.chars().take(80).collect(),
        tag: name(Tag::Binary),
    })?;
    Ok(Value::String(Cow::Owned(crate::json::text(&bytes).into_owned())))
}

/// What a plain scalar is if it is no string.
fn untagged<'a>(value: &str) -> Option<Value<'a>> {
    let Some(first) = value.bytes().next() else {
        return Some(Value::Null);
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(value),
        b'.' | b'+' | b'-' | b'0'..=b'9' => word(value).or_else(|| number(value, first)),
        _ => None,
    }
}

fn word<'a>(value: &str) -> Option<Value<'a>> {
    // No word is longer than `false`.
    if value.len() > 5 {
        return None;
    }
    Some(match value {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        "~" | "null" | "Null" | "NULL" => Value::Null,
        ".nan" | ".NaN" | ".NAN" => Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number<'a>(value: &str, first: u8) -> Option<Value<'a>> {
    if first == b'.' {
        // Here, and only here, go-yaml leaves underscores to Go's own rule for them.
        let between = |at: usize| {
            let digit = |at: usize| value.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
            digit(at - 1) && digit(at + 1)
        };
        let fine = value.match_indices('_').all(|(at, _)| between(at));
        return fine.then(|| decimal(&value.replace('_', ""))).flatten();
    }
    let plain: Cow<'_, str> = if value.contains('_') {
        value.replace('_', "").into()
    } else {
        value.into()
    };
    integer(&plain).map(Value::Int).or_else(|| decimal(&plain))
}

/// An integer by Go's `ParseInt` and `ParseUint` with base 0.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign; go-yaml does so after `0b` only.
    if digits.starts_with(['+', '-']) && !text.starts_with("0b") {
        return None;
    }
    let value = i128::from_str_radix(digits, base).ok()?;
    let value = if negative { -value } else { value };
    let signed = i64::try_from(value).is_ok();
    // Only a number without a sign may need the whole 64 bits.
    let unsigned = text.as_bytes()[0].is_ascii_digit() && u64::try_from(value).is_ok();
    (signed || unsigned).then_some(value)
}

/// A number in decimal digits: a float, or an integer that is too large for 64 bits.
fn decimal<'a>(text: &str) -> Option<Value<'a>> {
    if !is_decimal(text) {
        return None;
    }
    // Out of the range of float64, it stays a string.
    let float: f64 = text.parse().ok().filter(|float: &f64| float.is_finite())?;
    if float.abs() < 1e15 || text.contains(['.', 'e', 'E']) {
        return Some(Value::Float(float));
    }
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let sign = if float < 0.0 { "-" } else { "" };
    Some(Value::Big(format!("{sign}{digits}")))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let sign = |text: &str| usize::from(text.starts_with(['+', '-']));
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = &text[sign(text)..];
    let whole = digits(rest);
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole + length == 0 {
            return false;
        }
        rest = &fraction[length..];
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else {
        return rest.is_empty();
    };
    let exponent = &exponent[sign(exponent)..];
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

#[cfg(test)]
mod tests {
    use super::{Scalar, Tag, Value, resolve};

    fn plain(value: &str, tag: Tag) -> Result<Value<'_>, String> {
        let value = value.into();
        let plain = true;
        resolve(Scalar { value, plain, tag }).map_err(|problem| problem.to_string())
    }

    #[test]
    fn words_are_yaml_1_1() {
        for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
            assert_eq!(plain(word, Tag::None), Ok(Value::Bool(true)), "{word}");
        }
        for word in [
            "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE",
        ] {
            assert_eq!(plain(word, Tag::None), Ok(Value::Bool(false)), "{word}");
        }
        for word in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(word, Tag::None), Ok(Value::Null), "{word}");
        }
    }

    #[test]
    fn integers_are_read_as_go_reads_them() {
        let table = [
            ("0777", 511),
            ("012", 10),
            ("0o17", 15),
            ("-0o17", -15),
            ("0x1F", 31),
            ("0b101", 5),
            ("0b+1", 1),
            ("1_000", 1000),
            ("0x_ff", 255),
            ("1_", 1),
            ("-0", 0),
            ("+12", 12),
            ("-9223372036854775808", i128::from(i64::MIN)),
            ("18446744073709551615", i128::from(u64::MAX)),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text, Tag::None), Ok(Value::Int(expected)), "{text}");
        }
        for text in ["18446744073709551616", "-9223372036854775809"] {
            assert_eq!(plain(text, Tag::None), Ok(Value::Big(text.into())));
        }
    }

    #[test]
    fn floats_are_read_as_go_reads_them() {
        let table = [
            ("08", 8.0),
            ("1.", 1.0),
            (".5", 0.5),
            (".1_0", 0.1),
            ("+.5", 0.5),
            ("12e03", 12000.0),
            ("1_0e1", 100.0),
            ("1e-400", 0.0),
            (".inf", f64::INFINITY),
            ("-.INF", f64::NEG_INFINITY),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text, Tag::None), Ok(Value::Float(expected)), "{text}");
        }
    }

    #[test]
    fn the_rest_stays_a_string() {
        let table = [
            "tRUE",
            "nUll",
            "0o8",
            "0xZ",
            "0b2",
            "_1",
            "1e",
            "1e400",
            ".iNf",
            "..",
            "-",
            "+",
            "1.5.2",
            "1:30",
            "190:20:30",
            "2020-01-01",
            "2001-12-14 21:59:43.10 -5",
            "2020-13-45",
            "<<",
            "=",
            "._5",
            "inf",
            "0x1p4",
        ];
        for text in table {
            assert_eq!(plain(text, Tag::None), Ok(Value::String(text.into())), "{text}");
        }
    }

    #[test]
    fn a_tag_says_what_a_scalar_must_be() {
        let string = |text: &str| Ok(Value::String(text.to_owned().into()));
        let table = [
            (Tag::Str, "1", string("1")),
            (Tag::Other, "foo", string("foo")),
            (Tag::Other, "1", string("1")),
            (Tag::Bang, "1", string("1")),
            (Tag::Float, "1", Ok(Value::Float(1.0))),
            (Tag::Int, "0x10", Ok(Value::Int(16))),
            (Tag::Binary, "aGVs\nbG8=", string("hello")),
            (Tag::Binary, "//8=", string("\u{fffd}\u{fffd}")),
            (Tag::Timestamp, "2020-01-01", string("2020-01-01")),
            (Tag::Null, "", Ok(Value::Null)),
        ];
        for (tag, text, expected) in table {
            assert_eq!(plain(text, tag), expected, "{tag:?} {text}");
        }
        for (tag, text) in [
            (Tag::Int, "1.5"),
            (Tag::Int, "a"),
            (Tag::Bool, "1"),
            (Tag::Null, "a"),
            (Tag::Float, "18446744073709551615"),
            (Tag::Timestamp, "2020"),
            (Tag::Binary, "a"),
        ] {
            assert!(plain(text, tag).is_err(), "{tag:?} {text}");
        }
    }
}
