//! Values of scalar types. catalogd turns each JSON value into the type of its field, or into null.

use async_graphql::{Number, Value};
use model::ValueType;
use serde_json::value::RawValue;

use crate::go::{json_text, plain_number};

/// Returns a JSON value as a scalar. Objects and lists are their JSON text first.
pub(crate) fn scalar(raw: &RawValue, of: ValueType) -> Value {
    match (Json::read(raw.get()), of) {
        (None | Some(Json::Null), _) => Value::Null,
        (Some(Json::Text(text)), ValueType::String) => Value::String(text),
        (Some(Json::Number(number)), ValueType::String) => Value::String(plain_number(number)),
        (Some(Json::Boolean(is)), ValueType::String) => Value::String(is.to_string()),
        (Some(Json::Text(text)), ValueType::Boolean) => Value::Boolean(!matches!(text.as_str(), "" | "false")),
        (Some(Json::Number(number)), ValueType::Boolean) => Value::Boolean(number != 0.0),
        (Some(Json::Boolean(is)), ValueType::Boolean) => Value::Boolean(is),
        (Some(json), ValueType::Int) => json.number().and_then(int).unwrap_or_default(),
        (Some(json), ValueType::Float) => json.number().and_then(float).unwrap_or_default(),
    }
}

/// A JSON value, without structure.
enum Json {
    Null,
    Boolean(bool),
    Number(f64),
    /// A string, or the JSON text of an object or a list.
    Text(String),
}

impl Json {
    /// Returns `None` for a number beyond float64, which catalogd cannot read.
    fn read(text: &str) -> Option<Self> {
        match text.bytes().next()? {
            b'"' => serde_json::from_str(text).ok().map(Self::Text),
            b'{' | b'[' => json_text(text).map(Self::Text),
            b'n' => Some(Self::Null),
            b't' => Some(Self::Boolean(true)),
            b'f' => Some(Self::Boolean(false)),
            _ => finite(text).map(Self::Number),
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::Null => None,
            Self::Boolean(is) => Some(f64::from(u8::from(is))),
            Self::Number(number) => Some(number),
            Self::Text(text) => finite(&text),
        }
    }
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a number of 32 bits without its fraction.
fn int(number: f64) -> Option<Value> {
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fraction is cut off, and the rest is in range"
    )]
    let int = || number.trunc() as i64;
    range.contains(&number).then(|| Value::from(int()))
}

/// Largest whole number that is printed without a fraction: all of them up to here are exact.
const WHOLE_MAX: f64 = 9e15;

fn float(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        let whole = number as i64;
        return Some(Value::from(whole));
    }
    Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(json: &str, of: ValueType) -> String {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        serde_json::to_string(&scalar(raw, of)).unwrap()
    }

    #[rstest]
    #[case("null", ["null", "null", "null", "null"])]
    #[case("true", [r#""true""#, "true", "1", "1"])]
    #[case("false", [r#""false""#, "false", "0", "0"])]
    #[case("0", [r#""0""#, "false", "0", "0"])]
    #[case("7", [r#""7""#, "true", "7", "7"])]
    #[case("-2.75", [r#""-2.75""#, "true", "-2", "-2.75"])]
    #[case("1234567", [r#""1.234567e+06""#, "true", "1234567", "1234567"])]
    #[case("2147483647", [r#""2.147483647e+09""#, "true", "2147483647", "2147483647"])]
    #[case("2147483648", [r#""2.147483648e+09""#, "true", "null", "2147483648"])]
    #[case("-2147483649", [r#""-2.147483649e+09""#, "true", "null", "-2147483649"])]
    #[case("1e300", [r#""1e+300""#, "true", "null", "1e+300"])]
    #[case("1e999", ["null", "null", "null", "null"])]
    #[case(r#""""#, [r#""""#, "false", "null", "null"])]
    #[case(r#""false""#, [r#""false""#, "false", "null", "null"])]
    #[case(r#""no""#, [r#""no""#, "true", "null", "null"])]
    #[case(r#""12""#, [r#""12""#, "true", "12", "12"])]
    #[case(r#""1.5e3""#, [r#""1.5e3""#, "true", "1500", "1500"])]
    #[case(r#"" 12""#, [r#"" 12""#, "true", "null", "null"])]
    #[case(r#""1e999""#, [r#""1e999""#, "true", "null", "null"])]
    #[case(r#""NaN""#, [r#""NaN""#, "true", "null", "null"])]
    #[case(r#""a\n<""#, [r#""a\n<""#, "true", "null", "null"])]
    #[case(r#"{"a":"<"}"#, [r#""{\"a\":\"\\u003c\"}""#, "true", "null", "null"])]
    #[case("[1,2.0]", [r#""[1,2]""#, "true", "null", "null"])]
    fn scalar_is_that_of_catalogd(#[case] json: &str, #[case] expected: [&str; 4]) {
        let types = [ValueType::String, ValueType::Boolean, ValueType::Int, ValueType::Float];
        assert_eq!(types.map(|value| of(json, value)), expected);
    }
}
