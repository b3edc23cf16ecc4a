//! Resolves the type and value of a scalar, by the rules of go-yaml v2.

use std::borrow::Cow;

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet::STANDARD};

use crate::error::{FbcErrorKind, excerpt};
use crate::{json::replaced, yaml::source::Scalar};

/// Value of a scalar after resolution.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScalarValue<'a> {
    Null,
    Bool(bool),
    /// Integer that fits into 64 bits, signed or unsigned.
    Int(i128),
    /// Digits of an integer that does not fit into 64 bits.
    Big(String),
    Float(f64),
    String(Cow<'a, str>),
}

/// Base64 as Go decodes it: bits that the last digit leaves over may have any value.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Returns the value of a scalar. Fails if the value does not fit the tag.
pub(super) fn resolve<'a>(scalar: Scalar<'a>) -> Result<ScalarValue<'a>, FbcErrorKind> {
    let Scalar { value, plain, tag } = scalar;
    match tag {
        None if plain => Ok(untagged(&value).unwrap_or(ScalarValue::String(value))),
        Some("!!binary") => binary(&value),
        Some("!!timestamp") if untagged(&value).is_none() && dated(&value) => {
            Ok(ScalarValue::String(value))
        }
        Some(tag @ ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp")) => {
            tagged(&value, tag)
        }
        _ => Ok(ScalarValue::String(value)),
    }
}

/// Returns the value of a scalar whose tag names its type.
fn tagged<'a>(value: &str, tag: &'static str) -> Result<ScalarValue<'a>, FbcErrorKind> {
    match (untagged(value), tag) {
        (Some(found @ ScalarValue::Null), "!!null")
        | (Some(found @ ScalarValue::Bool(_)), "!!bool")
        | (Some(found @ ScalarValue::Int(_)), "!!int")
        | (Some(found @ (ScalarValue::Float(_) | ScalarValue::Big(_))), "!!float") => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
        (Some(ScalarValue::Int(int)), "!!float") if i64::try_from(int).is_ok() => {
            Ok(ScalarValue::Float(int as f64))
        }
        _ => Err(no_value(value, tag)),
    }
}

fn no_value(value: &str, tag: &str) -> FbcErrorKind {
    FbcErrorKind::Malformed(format!("cannot decode `{}` as {tag}", excerpt(value)))
}

/// Returns true if the value looks like a timestamp. That is enough: a timestamp stays a string.
fn dated(value: &str) -> bool {
    let year = value.bytes().take_while(u8::is_ascii_digit).count();
    year == 4 && value[4..].starts_with('-')
}

fn binary<'a>(value: &str) -> Result<ScalarValue<'a>, FbcErrorKind> {
    let digits: String = value
        .chars()
        .filter(|c| !matches!(c, '\r' | '\n'))
        .collect();
    let bytes = BASE64
        .decode(digits)
        .map_err(|_| no_value(value, "!!binary"))?;
    // U+FFFD has three bytes.
    let mut text = String::with_capacity(3 * bytes.len());
    text.extend(replaced(&bytes));
    Ok(ScalarValue::String(Cow::Owned(text)))
}

/// Returns the value of a plain scalar, or `None` if it is a string.
fn untagged<'a>(value: &str) -> Option<ScalarValue<'a>> {
    // The first byte rules out most strings, as the table in go-yaml's `resolve.go` does.
    let Some(first) = value.bytes().next() else {
        return Some(ScalarValue::Null);
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(value),
        b'.' | b'+' | b'-' | b'0'..=b'9' => word(value).or_else(|| number(value, first)),
        _ => None,
    }
}

fn word<'a>(value: &str) -> Option<ScalarValue<'a>> {
    // No word is longer than `false`.
    if value.len() > 5 {
        return None;
    }
    Some(match value {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ScalarValue::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ScalarValue::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => ScalarValue::Null,
        ".nan" | ".NaN" | ".NAN" => ScalarValue::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ScalarValue::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => ScalarValue::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number<'a>(value: &str, first: u8) -> Option<ScalarValue<'a>> {
    if first == b'.' {
        // In this case only, go-yaml leaves underscores to Go's `ParseFloat`, which wants digits on
        // both sides.
        let mut underscores = value.match_indices('_');
        let fine = underscores.all(|(at, _)| has_digit(value, at - 1) && has_digit(value, at + 1));
        return fine.then(|| decimal(&value.replace('_', ""))).flatten();
    }
    let plain: Cow<'_, str> = if value.contains('_') {
        value.replace('_', "").into()
    } else {
        value.into()
    };
    integer(&plain)
        .map(ScalarValue::Int)
        .or_else(|| decimal(&plain))
}

/// Reads an integer as Go's `ParseInt` and `ParseUint` do with base 0.
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
    // go-yaml calls `ParseUint`, which refuses signs, so only a number without one may need the
    // whole 64 bits.
    let unsigned = text.as_bytes()[0].is_ascii_digit() && u64::try_from(value).is_ok();
    (signed || unsigned).then_some(value)
}

fn has_digit(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

/// Reads a decimal number: a float, or an integer that does not fit into 64 bits.
fn decimal<'a>(text: &str) -> Option<ScalarValue<'a>> {
    // Rust reads what go-yaml's pattern matches, and words for infinity.
    let mut bytes = text.bytes();
    if !bytes.all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    // By go-yaml's rule a number out of the range of float64 is a string.
    if !float.is_finite() {
        return None;
    }
    if float.abs() < 1e15 || text.contains(['.', 'e', 'E']) {
        return Some(ScalarValue::Float(float));
    }
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let sign = if float < 0.0 { "-" } else { "" };
    Some(ScalarValue::Big(format!("{sign}{digits}")))
}

/// Returns a float as `sigs.k8s.io/yaml` prints it as a key: Go's `%g` of a float32.
pub(super) fn float_key(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "catalogd rounds keys to float32"
    )]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match power.parse::<i32>() {
        Ok(-4..6) | Err(_) => value.to_string(),
        Ok(power) => format!(
            "{digits}e{}{:02}",
            if power < 0 { '-' } else { '+' },
            power.abs()
        ),
    }
}
