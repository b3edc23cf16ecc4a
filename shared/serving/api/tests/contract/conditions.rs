//! Preconditions and ranges, as RFC 9110 has them in sections 13 and 14: one table for answers from
//! memory and for streamed ones, in each coding, for GET and HEAD.

use http::{Method, StatusCode};
use testkit::Answer;

use crate::world::{SITUATIONS, World};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    /// 200 with all bytes.
    Whole,
    /// 206 with the bytes from the first to the second position; a negative first one counts from
    /// the end.
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

/// Fields of a request. `TAG` stands for the entity tag of the representation, `UNQUOTED` for it
/// without quotes, `CODED` for that of the same lines in another coding.
type Fields = &'static [(&'static str, &'static str)];

const ROWS: &[(Fields, Expected)] = &[
    (&[], Whole),
    // Section 13.1.1.
    (&[("if-match", "TAG")], Whole),
    (&[("if-match", "\"other\", TAG")], Whole),
    (
        &[("if-match", "\"a\", \"b,c\""), ("if-match", "TAG")],
        Whole,
    ),
    (&[("if-match", "*")], Whole),
    (&[("if-match", "W/TAG")], PreconditionFailed),
    (&[("if-match", "CODED")], PreconditionFailed),
    (&[("if-match", "\"other\"")], PreconditionFailed),
    // Section 13.1.2.
    (&[("if-none-match", "TAG")], NotModified),
    (&[("if-none-match", "W/TAG")], NotModified),
    (&[("if-none-match", "\"other\", W/TAG")], NotModified),
    (
        &[("if-none-match", "\"other\""), ("if-none-match", "TAG")],
        NotModified,
    ),
    (&[("if-none-match", "W/\"x,\", , TAG")], NotModified),
    (&[("if-none-match", "*")], NotModified),
    (&[("if-none-match", " * ")], NotModified),
    (&[("if-none-match", "\"*\"")], Whole),
    (&[("if-none-match", LONG_TAG)], Whole),
    (&[("if-none-match", "UNQUOTED")], Whole),
    (&[("if-none-match", "\"a,TAG,b\"")], Whole),
    (&[("if-none-match", "CODED")], Whole),
    (&[("if-none-match", "\"other\"")], Whole),
    // Section 13.1.3: without If-None-Match only, and never with a date that cannot be read.
    (&[("if-modified-since", DATE)], NotModified),
    (&[("if-modified-since", LATER)], NotModified),
    (&[("if-modified-since", EARLIER)], Whole),
    (&[("if-modified-since", "yesterday")], Whole),
    (&[("if-modified-since", "1789999999")], Whole),
    (
        &[("if-modified-since", LATER), ("if-modified-since", LATER)],
        Whole,
    ),
    (
        &[("if-none-match", "\"other\""), ("if-modified-since", LATER)],
        Whole,
    ),
    (
        &[("if-none-match", "TAG"), ("if-modified-since", EARLIER)],
        NotModified,
    ),
    // Section 13.1.4: without If-Match only.
    (&[("if-unmodified-since", DATE)], Whole),
    (&[UNMODIFIED], PreconditionFailed),
    (&[("if-unmodified-since", "yesterday")], Whole),
    (
        &[("if-match", "TAG"), ("if-unmodified-since", EARLIER)],
        Whole,
    ),
    // Section 13.2.2: the order.
    (
        &[("if-match", "\"x\""), ("if-none-match", "TAG")],
        PreconditionFailed,
    ),
    (
        &[("if-match", "TAG"), ("if-none-match", "TAG")],
        NotModified,
    ),
    (
        &[UNMODIFIED, ("if-modified-since", LATER)],
        PreconditionFailed,
    ),
    // Section 14.1.2.
    (&[("range", "bytes=0-0")], Part(0, 1)),
    (&[("range", "bytes=10-19")], Part(10, 20)),
    (&[("range", "Bytes=5-")], Part(5, usize::MAX)),
    (&[("range", "bytes=-7")], Part(-7, usize::MAX)),
    (&[("range", "bytes=5-99999")], Part(5, usize::MAX)),
    (&[("range", "bytes=-99999")], Part(0, usize::MAX)),
    (&[("range", "bytes=99999-")], RangeNotSatisfiable),
    (&[("range", "bytes=-0")], RangeNotSatisfiable),
    // Section 14.2: what is malformed or of another unit is ignored.
    (&[("range", "bytes=9-1")], Whole),
    (&[("range", "bytes=a-")], Whole),
    (&[("range", "lines=0-1")], Whole),
    // Several ranges are ignored, also where one of them lies outside.
    (&[("range", "bytes=0-9,50-59")], Whole),
    (&[("range", "bytes=99999-, 1-2")], Whole),
    // Section 13.1.5: a strong tag. A date is no strong validator here.
    (&[("range", "bytes=0-0"), ("if-range", "TAG")], Part(0, 1)),
    (&[("range", "bytes=0-0"), ("if-range", "W/TAG")], Whole),
    (&[("range", "bytes=0-0"), ("if-range", "CODED")], Whole),
    (&[("range", "bytes=0-0"), ("if-range", DATE)], Whole),
    (&[("range", "bytes=0-0"), ("if-range", EARLIER)], Whole),
    (&[("range", "bytes=0-0"), ("if-range", LATER)], Whole),
    (&[("range", "bytes=0-0"), ("if-range", "*")], Whole),
    (
        &[("range", "bytes=99999-"), ("if-range", "\"other\"")],
        Whole,
    ),
    (&[("if-range", "\"other\"")], Whole),
    // Preconditions come before the range.
    (
        &[("range", "bytes=0-0"), ("if-none-match", "TAG")],
        NotModified,
    ),
    (
        &[("range", "bytes=0-0"), ("if-match", "\"other\"")],
        PreconditionFailed,
    ),
    (
        &[("range", "bytes=99999-"), ("if-none-match", "TAG")],
        NotModified,
    ),
    (&[("range", "bytes=0-0"), ("if-match", "TAG")], Part(0, 1)),
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
    async fn check(&self, fields: Fields, expected: Expected) {
        for method in [Method::GET, Method::HEAD] {
            let filled: Vec<String> = fields.iter().map(|(_, value)| self.filled(value)).collect();
            let fields = fields.iter().zip(&filled);
            let mut fields: Vec<_> = fields
                .map(|((name, _), value)| (*name, value.as_str()))
                .collect();
            fields.push(("accept-encoding", &self.accept));
            let answer = self.world.ask(method.clone(), self.path, &fields).await;
            let place = format!("{method} {} {fields:?}", self.path);
            // A body that is compressed as it is sent has no length, and so no ranges. HEAD has
            // none either (section 14.2).
            let has_ranges =
                method == Method::GET && !self.answer.header("content-length").is_empty();
            let expected = match expected {
                Part(..) | RangeNotSatisfiable if !has_ranges => Whole,
                expected => expected,
            };
            self.compare(&answer, expected, &place);
        }
    }

    fn filled(&self, value: &str) -> String {
        let tag = self.answer.header("etag");
        let value = value
            .replace("UNQUOTED", tag.trim_matches('"'))
            .replace("TAG", tag);
        value.replace("CODED", &self.coded)
    }

    /// Compares status, all fields and the body with what follows from the answer without
    /// conditions.
    fn compare(&self, answer: &Answer, expected: Expected, place: &str) {
        let whole = self.answer.bytes();
        let mut fields = self.answer.headers.clone();
        let (status, body) = match expected {
            Whole => (StatusCode::OK, whole),
            Part(first, end) => {
                let start = first
                    .try_into()
                    .unwrap_or_else(|_| whole.len() - first.unsigned_abs());
                let end = end.min(whole.len());
                let range = format!("bytes {start}-{}/{}", end - 1, whole.len());
                fields.insert("content-range", range.parse().unwrap());
                fields.insert("content-length", (end - start).into());
                (StatusCode::PARTIAL_CONTENT, &whole[start..end])
            }
            // Section 15.4.5: four fields that a 200 would have, and no claim about the length.
            NotModified => {
                for name in [
                    "accept-ranges",
                    "content-encoding",
                    "content-length",
                    "content-type",
                ] {
                    fields.remove(name);
                }
                (StatusCode::NOT_MODIFIED, &b""[..])
            }
            PreconditionFailed => {
                return assert_eq!(answer.status, StatusCode::PRECONDITION_FAILED, "{place}");
            }
            RangeNotSatisfiable => {
                let range = format!("bytes */{}", whole.len());
                let found = (answer.status, answer.header("content-range"));
                return assert_eq!(
                    found,
                    (StatusCode::RANGE_NOT_SATISFIABLE, &*range),
                    "{place}"
                );
            }
        };
        assert_eq!(
            (answer.status, &answer.headers),
            (status, &fields),
            "{place}"
        );
        let body = if place.starts_with("HEAD") { b"" } else { body };
        assert!(answer.bytes() == body, "{place}");
    }
}

#[tokio::test]
async fn conditions_and_ranges_are_those_of_rfc_9110() {
    for situation in SITUATIONS {
        compare_all(&World::situated(situation).await, situation.0).await;
    }
}

async fn compare_all(world: &World, cache_bytes: u64) {
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
            let answer = world
                .get(path, &[("accept-encoding", &accept(coding))])
                .await;
            assert_eq!(answer.status, StatusCode::OK);
            without_length += usize::from(answer.header("content-length").is_empty());
            let coded = world
                .get(path, &[("accept-encoding", &accept(other))])
                .await;
            let plain = Plain {
                world,
                path,
                accept: accept(coding),
                coded: coded.header("etag").to_owned(),
                answer,
            };
            for (fields, expected) in ROWS {
                plain.check(fields, *expected).await;
            }
        }
    }
    // Of a document without a modification date.
    let fields = [
        ("if-modified-since", LATER),
        ("if-unmodified-since", EARLIER),
    ];
    assert_eq!(
        world.get("/catalogs.json", &fields).await.status,
        StatusCode::OK
    );
    // Selected lines that are compressed as they are sent.
    assert_eq!(without_length, if cache_bytes == 0 { 2 } else { 0 });
}
