//! Prints numbers as Go's JSON encoder prints a float64.

use std::io::Write as _;

use super::memory::Text;

/// Appends a finite float64 in its shortest form. Below 1e-6 and from 1e21 on it has an exponent.
pub(crate) fn float(value: f64, out: &mut Text) {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        return exponent(value, out);
    }
    // Writing to memory cannot fail.
    let _ = write!(out, "{value}");
}

fn exponent(value: f64, out: &mut Text) {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => {
            let _ = write!(out, "{digits}e+{power}");
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::float;
    use crate::FbcLimits;
    use crate::canon::memory::{MemoryMeter, Text};

    #[test]
    fn float_prints_like_go() {
        let table = [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (-1.5e-300, "-1.5e-300"),
            (123_456_789.123_456_79, "123456789.12345679"),
            (1.234_567_890_123_456_8e29, "1.2345678901234568e+29"),
            (5e-324, "5e-324"),
        ];
        for (value, expected) in table {
            let mut out = Text::new(MemoryMeter::new(&FbcLimits::default(), 0), 0);
            float(value, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
