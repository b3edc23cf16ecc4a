//! Cost of request fields that hold lists. The server refuses a head of more than 32 KiB.
//!
//! No field is copied: the parsers pass once over its bytes, cut it into elements, and pass once
//! over each element. So the steps grow with the bytes, and it is enough to check that the
//! allocations do not grow at all.

use std::time::UNIX_EPOCH;

use allocation_counter::AllocationInfo;
use http::header::{ACCEPT_ENCODING, IF_MATCH, IF_NONE_MATCH, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue};
use model::{Encoding, Sha256};

use crate::rfc9110::{Modified, Precondition, Tag, evaluate, negotiate, parse_range};

/// Maximum size of a field in bytes.
const MOST: usize = 32 << 10;

struct AllocationLimit {
    bytes: u64,
    count: u64,
}

/// Parts of which a field is made, with what comes before and after them.
type Family = (&'static str, &'static str, &'static str);

/// Reads fields of three sizes, as one value and as a value for each part. Each must take as much
/// memory as the first one.
fn measure(
    name: &HeaderName,
    families: &[Family],
    limit: &AllocationLimit,
    read: fn(&HeaderMap) -> bool,
) {
    for (start, part, end) in families {
        for size in [MOST / 16, MOST / 4, MOST] {
            let parts = (size - start.len() - end.len()) / part.len();
            let one = [*start, &part.repeat(parts), end].concat();
            // More fields do not fit into a head, because HTTP/2 counts 32 bytes more for each.
            let parts = parts.min(600);
            let many = [*start]
                .into_iter()
                .chain((0..parts).map(|_| *part))
                .chain([*end]);
            for values in [vec![&*one], many.collect()] {
                let values = values
                    .into_iter()
                    .map(|value| (name.clone(), HeaderValue::from_str(value).unwrap()));
                let headers: HeaderMap = values.collect();
                let mut found = false;
                let cost: AllocationInfo = allocation_counter::measure(|| found = read(&headers));
                assert!(
                    cost.bytes_max <= limit.bytes && cost.count_total <= limit.count,
                    "{name}: {part:?}, {size} bytes: {cost:?}"
                );
                // The part behind all others is read too, unless the parts before spoil the field.
                assert!(
                    found || headers.len() > 1 || end.is_empty(),
                    "{name}: {part:?}, {size} bytes"
                );
            }
        }
    }
}

const NONE: AllocationLimit = AllocationLimit { bytes: 0, count: 0 };
/// Memory for the tag and the date of the current representation.
const CURRENT: AllocationLimit = AllocationLimit {
    bytes: 1 << 10,
    count: 16,
};

#[test]
fn cost_of_accept_encoding_is_constant_in_memory() {
    let families = [
        ("", ",", "zstd"),
        ("", "br;q=0.5, ", "zstd"),
        ("", "gzip;q=0,", "zstd"),
        ("", "*;q=0,", "zstd"),
        ("", "x", ",zstd"),
        ("", "gzip;q=1.0000,", "zstd"),
        ("\"", ",", ""),
        ("x;", ";", ",zstd"),
    ];
    measure(&ACCEPT_ENCODING, &families, &NONE, |headers| {
        negotiate(headers, &Encoding::ALL) == Some(Encoding::Zstd)
    });
}

#[test]
fn cost_of_conditions_is_constant_in_memory() {
    const TAG: &str = "\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\"";
    let families = [
        ("", "\"a\", ", TAG),
        ("", "W/\"a\",", TAG),
        ("", ",", TAG),
        ("\"", "a", ""),
        ("\"", ",", ""),
        ("", "\"\",", TAG),
        ("", "*,", TAG),
    ];
    for name in [IF_NONE_MATCH, IF_MATCH] {
        measure(&name, &families, &CURRENT, |headers| {
            let tag = Tag::of_stored(Sha256::of(b""));
            let modified = Modified::new(UNIX_EPOCH);
            let outcome = evaluate(headers, &tag, Some(&modified));
            let wanted = if headers.contains_key(IF_MATCH) {
                Precondition::Proceed
            } else {
                Precondition::NotModified
            };
            outcome == wanted
        });
    }
}

#[test]
fn cost_of_range_is_constant_in_memory() {
    let families = [
        ("bytes=", " ", "0-1"),
        ("bytes=", "0", "-1"),
        ("bytes=0-", "9", ""),
        ("bytes=", "1-1,", ""),
        ("bytes=", "-", ""),
    ];
    measure(&RANGE, &families, &NONE, |headers| {
        let field = headers
            .get(RANGE)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        matches!(parse_range(field, 1_000_000), Ok(Some(_)))
    });
}
