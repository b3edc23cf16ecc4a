//! Preconditions and ranges, as RFC 9110 has them in sections 13 and 14: one table for answers from memory and for streamed
//! ones, in each coding, for GET and HEAD.

use http::{Method, StatusCode};
use rstest::rstest;
use testkit::Answer;

use crate::{
    fixture::{LINES, Publication},
    world::{World, cached},
};

/// One request. `TAG` stands for the entity tag of the representation, `UNQUOTED` for it without quotes, `CODED` for that of the
/// same lines in another coding.
struct Row {
    fields: &'static [(&'static str, &'static str)],
    get: Expected,
    head: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    /// 200 with all bytes.
    Whole,
    /// 206 with the bytes from the first to the second position; a negative first one counts from the end.
    Part(isize, usize),
    NotModified,
    PreconditionFailed,
    RangeNotSatisfiable,
}

use Expected::{NotModified, Part, PreconditionFailed, RangeNotSatisfiable, Whole};

/// Date of the publication, and dates beside it.
const DATE: &str = "Mon, 21 Sep 2026 14:13:20 GMT";
const EARLIER: &str = "Mon, 21 Sep 2026 14:13:19 GMT";
const LATER: &str = "Monday, 21-Sep-26 14:13:21 GMT";

const UNMODIFIED: (&str, &str) = ("if-unmodified-since", EARLIER);

/// Longer than any tag of this server.
const LONG_TAG: &str = "\"0123456789012345678901234567890123456789012345678901234567890123456789\"";

const fn both(fields: &'static [(&'static str, &'static str)], expected: Expected) -> Row {
    Row {
        fields,
        get: expected,
        head: expected,
    }
}

/// HEAD has no ranges (section 14.2).
const fn ranged(fields: &'static [(&'static str, &'static str)], get: Expected) -> Row {
    Row {
        fields,
        get,
        head: Whole,
    }
}

const ROWS: &[Row] = &[
    both(&[], Whole),
    // Section 13.1.1.
    both(&[("if-match", "TAG")], Whole),
    both(&[("if-match", "\"other\", TAG")], Whole),
    both(&[("if-match", "\"a\", \"b,c\""), ("if-match", "TAG")], Whole),
    both(&[("if-match", "*")], Whole),
    both(&[("if-match", "W/TAG")], PreconditionFailed),
    both(&[("if-match", "CODED")], PreconditionFailed),
    both(&[("if-match", "\"other\"")], PreconditionFailed),
    // Section 13.1.2.
    both(&[("if-none-match", "TAG")], NotModified),
    both(&[("if-none-match", "W/TAG")], NotModified),
    both(&[("if-none-match", "\"other\", W/TAG")], NotModified),
    both(&[("if-none-match", "\"other\""), ("if-none-match", "TAG")], NotModified),
    both(&[("if-none-match", "W/\"x,\", , TAG")], NotModified),
    both(&[("if-none-match", "*")], NotModified),
    both(&[("if-none-match", " * ")], NotModified),
    both(&[("if-none-match", "\"*\"")], Whole),
    both(&[("if-none-match", LONG_TAG)], Whole),
    both(&[("if-none-match", "UNQUOTED")], Whole),
    both(&[("if-none-match", "CODED")], Whole),
    both(&[("if-none-match", "\"other\"")], Whole),
    // Section 13.1.3: without If-None-Match only, and never with a date that cannot be read.
    both(&[("if-modified-since", DATE)], NotModified),
    both(&[("if-modified-since", LATER)], NotModified),
    both(&[("if-modified-since", EARLIER)], Whole),
    both(&[("if-modified-since", "yesterday")], Whole),
    both(&[("if-modified-since", "1789999999")], Whole),
    both(&[("if-modified-since", LATER), ("if-modified-since", LATER)], Whole),
    both(&[("if-none-match", "\"other\""), ("if-modified-since", LATER)], Whole),
    both(&[("if-none-match", "TAG"), ("if-modified-since", EARLIER)], NotModified),
    // Section 13.1.4: without If-Match only.
    both(&[("if-unmodified-since", DATE)], Whole),
    both(&[UNMODIFIED], PreconditionFailed),
    both(&[("if-unmodified-since", "yesterday")], Whole),
    both(&[("if-match", "TAG"), ("if-unmodified-since", EARLIER)], Whole),
    // Section 13.2.2: the order.
    both(&[("if-match", "\"x\""), ("if-none-match", "TAG")], PreconditionFailed),
    both(&[("if-match", "TAG"), ("if-none-match", "TAG")], NotModified),
    both(&[UNMODIFIED, ("if-modified-since", LATER)], PreconditionFailed),
    // Section 14.1.2.
    ranged(&[("range", "bytes=0-0")], Part(0, 1)),
    ranged(&[("range", "bytes=10-19")], Part(10, 20)),
    ranged(&[("range", "Bytes=5-")], Part(5, usize::MAX)),
    ranged(&[("range", "bytes=-7")], Part(-7, usize::MAX)),
    ranged(&[("range", "bytes=5-99999")], Part(5, usize::MAX)),
    ranged(&[("range", "bytes=-99999")], Part(0, usize::MAX)),
    ranged(&[("range", "bytes=99999-")], RangeNotSatisfiable),
    ranged(&[("range", "bytes=-0")], RangeNotSatisfiable),
    // Section 14.2: what is malformed or of another unit is ignored.
    ranged(&[("range", "bytes=9-1")], Whole),
    ranged(&[("range", "bytes=a-")], Whole),
    ranged(&[("range", "lines=0-1")], Whole),
    // Several ranges are ignored, also where one of them lies outside.
    ranged(&[("range", "bytes=0-9,50-59")], Whole),
    ranged(&[("range", "bytes=99999-, 1-2")], Whole),
    // Section 13.1.5: a strong tag. A date is no strong validator here.
    ranged(&[("range", "bytes=0-0"), ("if-range", "TAG")], Part(0, 1)),
    ranged(&[("range", "bytes=0-0"), ("if-range", "W/TAG")], Whole),
    ranged(&[("range", "bytes=0-0"), ("if-range", "CODED")], Whole),
    ranged(&[("range", "bytes=0-0"), ("if-range", DATE)], Whole),
    ranged(&[("range", "bytes=0-0"), ("if-range", EARLIER)], Whole),
    ranged(&[("range", "bytes=0-0"), ("if-range", LATER)], Whole),
    ranged(&[("range", "bytes=0-0"), ("if-range", "*")], Whole),
    ranged(&[("range", "bytes=99999-"), ("if-range", "\"other\"")], Whole),
    both(&[("if-range", "\"other\"")], Whole),
    // Preconditions come before the range.
    both(&[("range", "bytes=0-0"), ("if-none-match", "TAG")], NotModified),
    both(&[("range", "bytes=0-0"), ("if-match", "\"other\"")], PreconditionFailed),
    both(&[("range", "bytes=99999-"), ("if-none-match", "TAG")], NotModified),
    ranged(&[("range", "bytes=0-0"), ("if-match", "TAG")], Part(0, 1)),
];

/// A representation, as a request without conditions gets it.
struct Plain<'a> {
    world: &'a World,
    path: &'a str,
    accept: String,
    answer: Answer,
    /// Tag of the same lines in another coding.
    coded: String,
}

impl Plain<'_> {
    async fn check(&self, row: &Row) {
        for (method, expected) in [(Method::GET, row.get), (Method::HEAD, row.head)] {
            let filled: Vec<String> = row.fields.iter().map(|(_, value)| self.filled(value)).collect();
            let fields = row.fields.iter().zip(&filled);
            let mut fields: Vec<_> = fields.map(|((name, _), value)| (*name, value.as_str())).collect();
            fields.push(("accept-encoding", &self.accept));
            let answer = self.world.ask(method.clone(), self.path, &fields).await;
            let place = format!("{method} {} {fields:?}", self.path);
            // A body that is compressed as it is sent has no length, and so no ranges.
            let has_ranges = !self.answer.header("content-length").is_empty();
            let expected = match expected {
                Part(..) | RangeNotSatisfiable if !has_ranges => Whole,
                expected => expected,
            };
            self.compare(&answer, expected, &place);
            if method == Method::HEAD {
                assert_eq!(answer.bytes(), b"", "{place}");
            }
        }
    }

    fn filled(&self, value: &str) -> String {
        let tag = self.answer.header("etag");
        let value = value.replace("UNQUOTED", tag.trim_matches('"')).replace("TAG", tag);
        value.replace("CODED", &self.coded)
    }

    fn compare(&self, answer: &Answer, expected: Expected, place: &str) {
        let whole = self.answer.bytes();
        let is_head = place.starts_with("HEAD");
        let status = match expected {
            Whole => StatusCode::OK,
            Part(..) => StatusCode::PARTIAL_CONTENT,
            NotModified => StatusCode::NOT_MODIFIED,
            PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        };
        assert_eq!(answer.status, status, "{place}");
        match expected {
            Whole => {
                assert!(is_head || answer.bytes() == whole, "{place}");
                for name in ["content-length", "content-type", "content-encoding", "accept-ranges"] {
                    assert_eq!(answer.header(name), self.answer.header(name), "{place}: {name}");
                }
            }
            Part(first, end) => {
                let start = first.try_into().unwrap_or_else(|_| whole.len() - first.unsigned_abs());
                let end = end.min(whole.len());
                assert_eq!(answer.bytes(), &whole[start..end], "{place}");
                let range = format!("bytes {start}-{}/{}", end - 1, whole.len());
                assert_eq!(answer.header("content-range"), range, "{place}");
                assert_eq!(answer.header("content-length"), (end - start).to_string(), "{place}");
                let coding = self.answer.header("content-encoding");
                assert_eq!(answer.header("content-encoding"), coding);
            }
            // Section 15.4.5: the fields that a 200 would have, and no claim about the length.
            NotModified => {
                assert_eq!(answer.bytes(), b"", "{place}");
                assert_eq!(answer.header("content-length"), "", "{place}");
            }
            PreconditionFailed => return,
            RangeNotSatisfiable => {
                let range = format!("bytes */{}", whole.len());
                return assert_eq!(answer.header("content-range"), range, "{place}");
            }
        }
        for name in ["etag", "last-modified", "vary", "cache-control"] {
            assert_eq!(answer.header(name), self.answer.header(name), "{place}: {name}");
        }
    }
}

#[rstest]
#[case::small(64 << 20, false)]
#[case::stored(0, true)]
#[case::streamed(0, false)]
#[tokio::test]
async fn conditions_and_ranges_are_those_of_rfc_9110(#[case] cache_bytes: u64, #[case] identity: bool) {
    let publication = Publication {
        identity,
        ..Publication::default()
    };
    let world = World::with(cached(cache_bytes), publication, LINES).await;
    let mut without_length = 0;
    for path in [
        "/catalogs/demo/api/v1/all",
        "/catalogs/demo/api/v1/metas?schema=olm.bundle",
    ] {
        for (coding, other) in [("identity", "gzip"), ("gzip", "zstd"), ("zstd", "identity")] {
            let accept = |coding: &str| match coding {
                "identity" => coding.to_owned(),
                coding => format!("{coding}, identity;q=0"),
            };
            let answer = world.get(path, &[("accept-encoding", &accept(coding))]).await;
            assert_eq!(answer.status, StatusCode::OK);
            without_length += usize::from(answer.header("content-length").is_empty());
            let coded = world.get(path, &[("accept-encoding", &accept(other))]).await;
            let plain = Plain {
                world: &world,
                path,
                accept: accept(coding),
                coded: coded.header("etag").to_owned(),
                answer,
            };
            for row in ROWS {
                plain.check(row).await;
            }
        }
    }
    // Selected lines that are compressed as they are sent.
    assert_eq!(without_length, if cache_bytes == 0 { 2 } else { 0 });
}
