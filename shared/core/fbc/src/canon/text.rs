//! Prints strings as Go's JSON encoder does with HTML escaping off.

use crate::canon::memory::Text;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Bytes that may need an escape: `"`, `\`, controls, and 0xE2, the first byte of U+2028 and
/// U+2029.
pub(crate) const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0xE2] = true;
    table
};

/// Returns the number of bytes before the first special byte.
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    let mut length = 0;
    // Eight bytes at a time without an early exit: the compiler turns this into vector code.
    while let Some(chunk) = bytes[length..].first_chunk::<8>() {
        let mut any = false;
        for byte in chunk {
            any |= SPECIAL[*byte as usize];
        }
        if any {
            break;
        }
        length += 8;
    }
    let rest = bytes[length..].iter();
    length + rest.take_while(|byte| !SPECIAL[**byte as usize]).count()
}

/// Appends the canonical form of `string`, quotes included.
pub(crate) fn quote(string: &str, out: &mut Text) {
    out.push(b'"');
    escape(string, out);
    out.push(b'"');
}

/// Appends the canonical form of `string` without quotes.
pub(crate) fn escape(string: &str, out: &mut Text) {
    let mut rest = string.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        if special.is_empty() {
            return;
        }
        rest = &special[escape_one(special, out)..];
    }
}

/// Appends the special character at the start of `bytes` and returns its length in bytes.
pub(crate) fn escape_one(bytes: &[u8], out: &mut Text) -> usize {
    match bytes {
        [0xE2, 0x80, last @ (0xA8 | 0xA9), ..] => {
            out.extend_from_slice(b"\\u202");
            out.push(last - 0xA0 + b'0');
            return 3;
        }
        // Another character. Its first byte is that of a line separator too.
        [first @ 0xE2, second, third, ..] => {
            out.extend_from_slice(&[*first, *second, *third]);
            return 3;
        }
        [b'"', ..] => out.extend_from_slice(b"\\\""),
        [b'\\', ..] => out.extend_from_slice(b"\\\\"),
        [b'\n', ..] => out.extend_from_slice(b"\\n"),
        [b'\t', ..] => out.extend_from_slice(b"\\t"),
        [b'\r', ..] => out.extend_from_slice(b"\\r"),
        [0x08, ..] => out.extend_from_slice(b"\\b"),
        [0x0C, ..] => out.extend_from_slice(b"\\f"),
        [control @ 0..0x20, ..] => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(control >> 4)]);
            out.push(HEX[usize::from(control & 15)]);
        }
        [other, ..] => out.push(*other),
        [] => return 0,
    }
    1
}

/// Appends a finite float64 in its shortest form. Below 1e-6 and from 1e21 on it has an exponent.
pub(crate) fn float(value: f64, out: &mut Text) {
    let magnitude = value.abs();
    let text = if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        value.to_string()
    } else if magnitude < 1.0 {
        format!("{value:e}")
    } else {
        format!("{value:e}").replace('e', "e+")
    };
    out.extend_from_slice(text.as_bytes());
}
