use std::{cmp::Reverse, iter};

use http::{HeaderMap, header::ACCEPT_ENCODING};
use model::Encoding;

use super::elements;

/// True if `name` is this coding (`x-gzip` is gzip: RFC 9110, section 8.4.1.3). A `*` stands for
/// all codings that are not named.
fn is_named(encoding: Encoding, name: &[u8]) -> bool {
    match encoding {
        Encoding::Zstd => name.eq_ignore_ascii_case(b"zstd"),
        Encoding::Gzip => {
            name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip")
        }
        Encoding::Identity => name.eq_ignore_ascii_case(b"identity"),
    }
}

/// Chooses the coding of an answer from those on offer (RFC 9110, section 12.5.3): the densest of
/// those that the client likes best. Returns `None` if the client refuses all.
///
/// Without the field everything is acceptable, and a client without preferences understands
/// identity. Identity is also chosen when no listed coding is on offer, unless it is refused itself
/// (`identity;q=0`, or `*;q=0`): that is a 406.
pub(crate) fn negotiate(headers: &HeaderMap, offered: &[Encoding]) -> Option<Encoding> {
    if !headers.contains_key(ACCEPT_ENCODING) {
        // curl and scripts without the option send no field, and write what they get to a file.
        return offered.iter().copied().max();
    }
    let weighed = offered
        .iter()
        .filter_map(|&coding| Some((weight(headers, coding)?, Reverse(coding))));
    let (_, Reverse(best)) = weighed.max()?;
    Some(best)
}

/// Returns the weight of a coding, in thousandths; `None` if it is refused, zero for an identity
/// that is not mentioned. The first mention counts: the RFC leaves repeated ones open.
fn weight(headers: &HeaderMap, coding: Encoding) -> Option<u32> {
    let mut others = None;
    for value in headers.get_all(ACCEPT_ENCODING) {
        for (name, weight) in elements(value.as_bytes()).filter_map(weighted) {
            if is_named(coding, name) {
                return (weight > 0).then_some(weight);
            }
            if name == b"*" {
                others.get_or_insert(weight);
            }
        }
    }
    match others {
        Some(weight) => (weight > 0).then_some(weight),
        None => (coding == Encoding::Identity).then_some(0),
    }
}

/// Splits `gzip;q=0.5`. An element with a malformed weight is ignored.
fn weighted(element: &[u8]) -> Option<(&[u8], u32)> {
    let Some(at) = element.iter().position(|&byte| byte == b';') else {
        return Some((element, 1000));
    };
    let name = element[..at].trim_ascii_end();
    let parameter = element[at + 1..].trim_ascii_start();
    let [b'q' | b'Q', b'=', value @ ..] = parameter else {
        return None;
    };
    Some((name, thousandths(value)?))
}

/// Parses a qvalue (RFC 9110, section 12.4.2): `0` to `1` with at most three decimals.
fn thousandths(value: &[u8]) -> Option<u32> {
    let (whole, decimals) = match value {
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        [whole] => (whole, &[][..]),
        _ => return None,
    };
    let mut digits = iter::once(whole)
        .chain(decimals)
        .chain(iter::repeat(&b'0'))
        .take(4);
    let number = digits.try_fold(0, |number, &digit| {
        Some(10 * number + char::from(digit).to_digit(10)?)
    })?;
    (number <= 1000).then_some(number)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| value.parse().unwrap());
        values.map(|value| (ACCEPT_ENCODING, value)).collect()
    }

    #[rstest]
    #[case::absent(&[], Some(Encoding::Identity))]
    #[case::empty(&[""], Some(Encoding::Identity))]
    #[case::gzip(&["gzip"], Some(Encoding::Gzip))]
    #[case::alias(&["X-GZIP"], Some(Encoding::Gzip))]
    #[case::browser(&["gzip, deflate, br, zstd"], Some(Encoding::Zstd))]
    #[case::two_fields(&["gzip", "zstd"], Some(Encoding::Zstd))]
    #[case::weights(&["zstd;q=0.5, gzip;q=0.501"], Some(Encoding::Gzip))]
    #[case::identity_preferred(&["gzip;q=0.5, identity"], Some(Encoding::Identity))]
    #[case::any_weight_beats_unmentioned_identity(&["gzip;q=0.001"], Some(Encoding::Gzip))]
    #[case::star(&["*"], Some(Encoding::Zstd))]
    #[case::star_is_not_the_named(&["zstd;q=0, *"], Some(Encoding::Gzip))]
    #[case::unknown(&["br, deflate"], Some(Encoding::Identity))]
    #[case::refused_gzip(&["gzip;q=0"], Some(Encoding::Identity))]
    #[case::refused_identity(&["gzip, identity;q=0"], Some(Encoding::Gzip))]
    #[case::only_refused_identity(&["identity;q=0"], None)]
    #[case::refused_all(&["*;q=0"], None)]
    #[case::refused_all_but_identity(&["*;q=0, identity;q=0.1"], Some(Encoding::Identity))]
    #[case::unknown_and_refused_identity(&["br, identity;q=0"], None)]
    #[case::spaces(&["gzip ; q=0.2 , identity ; q=0"], Some(Encoding::Gzip))]
    #[case::malformed_weight_is_ignored(&["gzip;q=2, zstd;q=0.1234"], Some(Encoding::Identity))]
    #[case::first_mention_wins(&["gzip;q=0, gzip"], Some(Encoding::Identity))]
    #[case::first_star_wins(&["*;q=0, *"], None)]
    #[case::upper_case(&["ZSTD;Q=0.5, identity;q=0.4"], Some(Encoding::Zstd))]
    #[case::upper_case_of_identity(&["gzip;q=0.5, IDENTITY"], Some(Encoding::Identity))]
    fn negotiate_returns(#[case] fields: &[&str], #[case] expected: Option<Encoding>) {
        assert_eq!(negotiate(&headers(fields), &Encoding::ALL), expected);
    }

    proptest::proptest! {
        #[test]
        fn negotiate_never_panics(field in proptest::collection::vec(0x20_u8..0x7f, 0..64)) {
            let value = HeaderValue::from_bytes(&field).unwrap();
            negotiate(&HeaderMap::from_iter([(ACCEPT_ENCODING, value)]), &Encoding::ALL);
        }
    }
}
