use std::ops::Range;

use super::elements;

/// Maximum number of ranges in one request. More are an attack or a mistake (RFC 9110, section 17.15), answered with all
/// bytes.
const MAX_RANGES: usize = 16;

/// The parts of a representation that a `Range` field asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// All bytes: the field is ignored.
    Whole,
    /// At least one range, none of them empty, in the order of the field.
    Parts(Vec<Range<u64>>),
    /// None of the ranges lies inside: 416.
    Unsatisfiable,
}

/// Reads a `Range` field (RFC 9110, section 14.2) against a length. A field that is malformed, of another unit, or asks for
/// more bytes than there are is ignored, as section 14.2 allows.
pub(crate) fn parse_ranges(field: &[u8], length: u64) -> Ranges {
    let Some(specs) = strip_unit(field) else {
        return Ranges::Whole;
    };
    let mut parts = Vec::new();
    let mut specs = elements(specs).peekable();
    if specs.peek().is_none() {
        return Ranges::Whole;
    }
    for spec in specs {
        match parse_spec(spec, length) {
            None => return Ranges::Whole,
            Some(part) if part.is_empty() => {}
            Some(_) if parts.len() == MAX_RANGES => return Ranges::Whole,
            Some(part) => parts.push(part),
        }
    }
    let asked: u64 = parts.iter().map(|part| part.end - part.start).sum();
    match parts.len() {
        0 => Ranges::Unsatisfiable,
        // Overlapping ranges could make one small request cost many times the catalog.
        2.. if asked > length => Ranges::Whole,
        _ => Ranges::Parts(parts),
    }
}

fn strip_unit(field: &[u8]) -> Option<&[u8]> {
    let (unit, specs) = field.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(specs)
}

/// Parses `first-last`, `first-` or `-suffix`, cut to the length; empty if it lies outside, `None` if it is malformed.
fn parse_spec(spec: &[u8], length: u64) -> Option<Range<u64>> {
    let dash = spec.iter().position(|&byte| byte == b'-')?;
    match (&spec[..dash], &spec[dash + 1..]) {
        (b"", suffix) => Some(length.saturating_sub(number(suffix)?)..length),
        (first, b"") => Some(number(first)?.min(length)..length),
        (first, last) => {
            let (start, end) = (number(first)?, number(last)?.saturating_add(1));
            at_most(first, last).then(|| start.min(length)..end.min(length))
        }
    }
}

/// True if one decimal number is at most another, of any number of digits.
fn at_most(first: &[u8], last: &[u8]) -> bool {
    let significant = |digits: &[u8]| digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
    let (first, last) = (&first[significant(first)..], &last[significant(last)..]);
    (first.len(), first) <= (last.len(), last)
}

/// Parses digits. A number above 64 bits counts as the largest one.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "ranges are what is compared")]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first_last("bytes=0-9", &[0..10])]
    #[case::unit_in_capitals("BYTES=0-0", &[0..1])]
    #[case::open("bytes=90-", &[90..100])]
    #[case::suffix("bytes=-10", &[90..100])]
    #[case::suffix_longer_than_all("bytes=-1000", &[0..100])]
    #[case::end_is_cut("bytes=95-1000", &[95..100])]
    #[case::huge("bytes=95-99999999999999999999999999", &[95..100])]
    #[case::several("bytes=0-1, 50-51 ,-2", &[0..2, 50..52, 98..100])]
    #[case::order_is_kept("bytes=50-51,0-1", &[50..52, 0..2])]
    #[case::outside_is_dropped("bytes=100-,0-1", &[0..2])]
    fn parse_ranges_returns_parts(#[case] field: &str, #[case] expected: &[Range<u64>]) {
        assert_eq!(parse_ranges(field.as_bytes(), 100), Ranges::Parts(expected.to_vec()));
    }

    #[rstest]
    #[case::unit("lines=0-9")]
    #[case::nothing("bytes=")]
    #[case::only_commas("bytes=,")]
    #[case::no_dash("bytes=5")]
    #[case::only_a_dash("bytes=-")]
    #[case::backwards("bytes=9-0")]
    #[case::backwards_and_huge("bytes=99999999999999999999999999-18446744073709551616")]
    #[case::sign("bytes=+1-2")]
    #[case::one_bad_spoils_all("bytes=0-1,x")]
    #[case::more_than_there_is("bytes=0-,0-")]
    #[case::too_many("bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,11-11,12-12,13-13,14-14,15-15,16-16")]
    fn parse_ranges_ignores(#[case] field: &str) {
        assert_eq!(parse_ranges(field.as_bytes(), 100), Ranges::Whole);
    }

    #[rstest]
    #[case::beyond("bytes=100-", 100)]
    #[case::both_huge("bytes=18446744073709551616-0099999999999999999999999999", 100)]
    #[case::empty_suffix("bytes=-0", 100)]
    #[case::of_nothing("bytes=0-0", 0)]
    #[case::suffix_of_nothing("bytes=-5", 0)]
    fn parse_ranges_refuses(#[case] field: &str, #[case] length: u64) {
        assert_eq!(parse_ranges(field.as_bytes(), length), Ranges::Unsatisfiable);
    }

    proptest::proptest! {
        #[test]
        fn parse_ranges_stays_inside_the_length(field in "bytes=[0-9, -]{0,40}", length in 0_u64..200) {
            if let Ranges::Parts(parts) = parse_ranges(field.as_bytes(), length) {
                proptest::prop_assert!(!parts.is_empty());
                proptest::prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
            }
        }
    }
}
