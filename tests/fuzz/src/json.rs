use serde_json::{Deserializer, Value};

use crate::fbc::checked_lines;

/// Parses a JSON file with this project's parser and with `serde_json`: if both accept it, their
/// values are equal.
///
/// # Panics
/// If they differ.
pub(crate) fn json(input: &[u8]) {
    if !input.trim_ascii_start().starts_with(b"{") {
        return;
    }
    let (ours, theirs) = (checked_lines(input, "\n"), documents(input));
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        assert_eq!(ours.len(), theirs.len(), "{ours:?} instead of {theirs:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(same(ours, theirs), "{ours} instead of {theirs}");
        }
    }
}

/// Returns the values of a stream. In a JSON stream, a null counts too.
fn documents(input: &[u8]) -> Option<Vec<Value>> {
    let values = Deserializer::from_slice(input).into_iter::<Value>();
    values.collect::<Result<_, _>>().ok()
}

/// Compares two values. `1.0` and `1` are the same number; the canonical form is `1`.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) if b.is_f64() => close(a.as_f64(), b.as_f64()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (ours, theirs) => ours == theirs,
    }
}

/// Returns true if two numbers are equal to `serde_json`, whose last bit is not always right.
fn close(a: Option<f64>, b: Option<f64>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return false;
    };
    a == b || (a - b).abs() <= a.abs() * 2.0 * f64::EPSILON
}
