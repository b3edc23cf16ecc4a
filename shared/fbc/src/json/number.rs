use crate::canon::memory::Text;
use crate::canon::number::float;
use crate::error::{FbcErrorKind, excerpt};

use super::JsonError;

/// Copies the number at `at` in canonical form and returns its end.
pub(super) fn copy(text: &str, at: usize, out: &mut Text) -> Result<usize, JsonError> {
    let bytes = text.as_bytes();
    let mut end = at + usize::from(bytes[at] == b'-');
    end = match bytes.get(end) {
        Some(b'0') => end + 1,
        _ => digits(bytes, end)?,
    };
    let integer = end;
    if bytes.get(end) == Some(&b'.') {
        end = digits(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        end += 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(bytes, end)?;
    }
    let number = &text[at..end];
    // An integer keeps all its digits. catalogd rounds integers beyond 2^53, see the list of deviations.
    if end == integer {
        out.extend_from_slice(number.as_bytes());
        return Ok(end);
    }
    match number.parse() {
        Ok(value) if f64::is_finite(value) => float(value, out),
        _ => {
            let kind = FbcErrorKind::NumberRange(excerpt(number));
            return Err(JsonError { at, kind });
        }
    }
    Ok(end)
}

/// Returns the end of the digits at `at`. Fails if there is none.
fn digits(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    match count {
        0 if at == bytes.len() => Err(JsonError::end(at)),
        0 => Err(JsonError::new(at, "a digit is expected")),
        _ => Ok(at + count),
    }
}
