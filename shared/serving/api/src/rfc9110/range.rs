use std::ops::Range;

use crate::error::ApiError;

/// Reads a `Range` field (RFC 9110, section 14.2) against a length. A field that is malformed, of
/// another unit, or asks for several ranges is ignored, as section 14.2 allows: downloads resume
/// with one range, and several could make a small request decompress a catalog many times (section
/// 17.15).
///
/// # Errors
/// [`ApiError::Range`] for a range that lies outside.
pub(crate) fn parse_range(field: &[u8], length: u64) -> Result<Option<Range<u64>>, ApiError> {
    let ranges = field.split_at_checked(6);
    let ranges = ranges.filter(|(unit, _)| unit.eq_ignore_ascii_case(b"bytes="));
    match ranges.and_then(|(_, spec)| parse_spec(spec.trim_ascii(), length)) {
        Some(part) if part.is_empty() => Err(ApiError::Range(length)),
        part => Ok(part),
    }
}

/// Parses `first-last`, `first-` or `-suffix`, cut to the length; empty if it lies outside, `None`
/// if it is malformed.
fn parse_spec(spec: &[u8], length: u64) -> Option<Range<u64>> {
    let dash = spec.iter().position(|&byte| byte == b'-')?;
    let cut = |number: u128| u64::try_from(number).map_or(length, |number| number.min(length));
    match (&spec[..dash], &spec[dash + 1..]) {
        (b"", suffix) => Some(length - cut(number(suffix)?)..length),
        (first, b"") => Some(cut(number(first)?)..length),
        (first, last) => {
            let first = number(first)?;
            let last = number(last)?;
            (first <= last).then(|| cut(first)..cut(last.saturating_add(1)))
        }
    }
}

/// Parses digits. A number above 128 bits counts as the largest one.
fn number(digits: &[u8]) -> Option<u128> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut number: u128 = 0;
    for digit in digits {
        number = number.saturating_mul(10);
        number = number.saturating_add(u128::from(digit - b'0'));
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // The contract's table of ranges has the usual cases.
    #[rstest]
    #[case::spaces("bytes= 5-6 ", 100, Ok(Some(5..7)))]
    #[case::huge("bytes=95-99999999999999999999999999", 100, Ok(Some(95..100)))]
    #[case::above_128_bits("bytes=95-999999999999999999999999999999999999999", 100, Ok(Some(95..100)))]
    #[case::nothing("bytes=", 100, Ok(None))]
    #[case::no_dash("bytes=5", 100, Ok(None))]
    #[case::only_a_dash("bytes=-", 100, Ok(None))]
    #[case::backwards_and_huge(
        "bytes=99999999999999999999999999-18446744073709551616",
        100,
        Ok(None)
    )]
    #[case::sign("bytes=+1-2", 100, Ok(None))]
    #[case::both_huge(
        "bytes=18446744073709551616-0099999999999999999999999999",
        100,
        Err(100)
    )]
    #[case::of_nothing("bytes=0-0", 0, Err(0))]
    #[case::suffix_of_nothing("bytes=-5", 0, Err(0))]
    fn parse_range_returns(
        #[case] field: &str,
        #[case] length: u64,
        #[case] expected: Result<Option<Range<u64>>, u64>,
    ) {
        let found = parse_range(field.as_bytes(), length).map_err(|error| error.to_string());
        let outside = |length| format!("the representation has only {length} bytes");
        assert_eq!(found, expected.map_err(outside));
    }

    proptest::proptest! {
        #[test]
        fn parse_range_stays_inside_the_length(field in "bytes=[0-9 -]{0,40}", length in 0_u64..200) {
            if let Ok(Some(part)) = parse_range(field.as_bytes(), length) {
                proptest::prop_assert!(part.start < part.end && part.end <= length);
            }
        }
    }
}
