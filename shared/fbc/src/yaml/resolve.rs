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
