use crate::canon::number::float;
use crate::error::Problem;

use super::Fault;

/// Copies the number at `at` in canonical form; returns where it ends.
///
/// An integer keeps its digits, whatever their number.
pub(super) fn copy(text: &str, at: usize, out: &mut Vec<u8>) -> Result<usize, Fault> {
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
    if end == integer {
        out.extend_from_slice(number.as_bytes());
        return Ok(end);
    }
    match number.parse() {
        Ok(value) if f64::is_finite(value) => float(value, out),
        _ => {
            let problem = Problem::NumberRange(number.into());
            return Err(Fault { at, problem });
        }
    }
    Ok(end)
}

/// Where the digits at `at` end; there must be one.
fn digits(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    match count {
        0 if at == bytes.len() => Err(Fault::end(at)),
        0 => Err(Fault::new(at, "a digit is expected")),
        _ => Ok(at + count),
    }
}
