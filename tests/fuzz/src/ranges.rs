use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header::RANGE};
use testkit::Answer;

use crate::site::Site;

thread_local! {
    static SITE: (Site, Bytes) = {
        let site = Site::new(&["v1"]);
        let whole = site.get(PATH, HeaderMap::new()).body.expect("a complete body");
        (site, whole)
    };
}

const PATH: &str = "/catalogs/demo/api/v1/all";

/// Sends a `Range`: the answer has exactly the bytes that it names.
///
/// # Panics
/// If it does not.
pub fn ranges(input: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(input) else {
        return;
    };
    SITE.with(|(site, whole)| {
        let answer = site.get(PATH, HeaderMap::from_iter([(RANGE, value)]));
        let specs = std::str::from_utf8(input).ok().and_then(specs);
        match answer.status {
            StatusCode::OK => assert_eq!(answer.bytes(), whole),
            StatusCode::PARTIAL_CONTENT => {
                let specs = specs.clone().expect("nothing is made of a malformed field");
                let asked: Vec<_> = specs.iter().filter_map(|spec| spec.of(whole.len())).collect();
                assert_eq!(parts(&answer, whole), asked);
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let specs = specs.clone().expect("nothing is made of a malformed field");
                assert!(specs.iter().all(|spec| spec.of(whole.len()).is_none()));
                assert_eq!(answer.header("content-range"), format!("bytes */{}", whole.len()));
            }
            other => panic!("{other} to {input:?}"),
        }
        // A server may answer several ranges with the whole body, but downloads resume with a single one.
        if let Some([spec]) = specs.as_deref() {
            assert_ne!(answer.status, StatusCode::OK, "{spec:?}");
        }
    });
}

/// Range of a field: first and last byte, both included.
#[derive(Debug, Clone)]
struct Spec(Option<u128>, Option<u128>);

impl Spec {
    /// Returns the range in a body of this size; `None` if it lies outside.
    fn of(&self, length: usize) -> Option<Range<usize>> {
        let all = length as u128;
        let (start, end) = match *self {
            Self(Some(first), last) => (first, last.map_or(all, |last| (last + 1).min(all))),
            Self(None, suffix) => (all.saturating_sub(suffix.unwrap_or_default()), all),
        };
        (start < end).then_some(start as usize..end as usize)
    }
}

/// Parses the field by its grammar (RFC 9110, section 14.1.1); `None` if it is malformed or a number is too large.
fn specs(field: &str) -> Option<Vec<Spec>> {
    let (unit, set) = field.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let elements = set.split(',').map(|spec| spec.trim_matches([' ', '\t']));
    let specs: Option<Vec<Spec>> = elements.filter(|spec| !spec.is_empty()).map(spec).collect();
    specs.filter(|specs| !specs.is_empty())
}

fn spec(text: &str) -> Option<Spec> {
    let (first, last) = text.split_once('-')?;
    let number = |digits: &str| match digits {
        "" => Some(None),
        _ if !digits.bytes().all(|byte| byte.is_ascii_digit()) => None,
        // A number with this many digits is larger than any body.
        _ => Some(Some(digits.parse().unwrap_or(u128::from(u64::MAX)))),
    };
    let spec = Spec(number(first)?, number(last)?);
    match spec {
        Spec(None, None) => None,
        Spec(Some(_), Some(_)) if significant(first) > significant(last) => None,
        _ => Some(spec),
    }
}

/// Compares numbers of any size by their digits.
fn significant(digits: &str) -> (usize, &str) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits)
}

/// Returns the ranges that were sent, after comparing each with the whole body.
fn parts(answer: &Answer, whole: &[u8]) -> Vec<Range<usize>> {
    assert_eq!(answer.header("content-length"), answer.bytes().len().to_string());
    let kind = answer.header("content-type");
    let Some(boundary) = kind.strip_prefix("multipart/byteranges; boundary=") else {
        return vec![part(answer.header("content-range"), answer.bytes(), whole)];
    };
    let opening = format!("\r\n--{boundary}\r\n");
    let closing = format!("\r\n--{boundary}--\r\n");
    let body = std::str::from_utf8(answer.bytes()).expect("the catalog is ASCII");
    let inner = body
        .strip_suffix(&*closing)
        .and_then(|body| body.strip_prefix(&*opening));
    let inner = inner.expect("several parts have their beginning and end");
    let sent = inner.split(&*opening).map(|sent| {
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
        let range = head.lines().find_map(|line| line.strip_prefix("Content-Range: "));
        part(range.expect("a part says which it is"), body.as_bytes(), whole)
    });
    sent.collect()
}

fn part(content_range: &str, body: &[u8], whole: &[u8]) -> Range<usize> {
    let range = content_range.strip_prefix("bytes ").and_then(|text| {
        let (range, length) = text.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        (length == whole.len().to_string()).then_some(())?;
        Some(first.parse().ok()?..last.parse::<usize>().ok()? + 1)
    });
    let range = range.unwrap_or_else(|| panic!("{content_range:?}"));
    assert_eq!(&whole[range.clone()], body);
    range
}
