//! Prints floats that are mapping keys.

/// Returns a float as `sigs.k8s.io/yaml` prints it as a key: Go's `%g` of a float32.
pub(super) fn key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "catalogd rounds keys to float32")]
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
        Ok(power) => format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn float_key_prints_like_go() {
        let table = [
            (1.5, "1.5"),
            (1.0, "1"),
            (-0.0, "-0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1.25e100, ".inf"),
            (f64::NEG_INFINITY, "-.inf"),
            (f64::NAN, ".nan"),
            (1.234_567_890_123, "1.2345679"),
            (1.5e12, "1.5e+12"),
        ];
        for (value, expected) in table {
            assert_eq!(key(value), expected);
        }
    }
}
