use std::ops::Range;

use http::{HeaderMap, HeaderValue, StatusCode, header::RANGE};

use crate::site::with_site;

const PATH: &str = "/catalogs/demo/api/v1/all";

/// Sends a `Range`: the answer has exactly the bytes that it names. A field with several ranges is ignored.
///
/// # Panics
/// If it does not.
pub(crate) fn ranges(input: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(input) else {
        return;
    };
    with_site(|site| {
        let whole = site.get(PATH, HeaderMap::new()).body.expect("a complete body");
        let answer = site.get(PATH, HeaderMap::from_iter([(RANGE, value)]));
        let spec = std::str::from_utf8(input).ok().and_then(spec_of);
        let part = spec.as_ref().and_then(|spec| spec.of(whole.len()));
        match (spec, part) {
            (None, _) => {
                assert_eq!(answer.status, StatusCode::OK, "{input:?}");
                assert_eq!(answer.bytes(), &whole[..]);
            }
            (Some(_), Some(part)) => {
                assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT, "{input:?}");
                assert_eq!(answer.bytes(), &whole[part.clone()]);
                let sent = format!("bytes {}-{}/{}", part.start, part.end - 1, whole.len());
                assert_eq!(answer.header("content-range"), sent);
                assert_eq!(answer.header("content-length"), part.len().to_string());
            }
            (Some(spec), None) => {
                assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE, "{spec:?}");
                assert_eq!(answer.header("content-range"), format!("bytes */{}", whole.len()));
            }
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
            Self(Some(first), last) => (first, last.map_or(all, |last| last.saturating_add(1).min(all))),
            Self(None, suffix) => (all.saturating_sub(suffix.unwrap_or_default()), all),
        };
        (start < end).then_some(start as usize..end as usize)
    }
}

/// Parses the field by its grammar (RFC 9110, section 14.1.1); `None` if it is malformed or has several ranges.
fn spec_of(field: &str) -> Option<Spec> {
    let (unit, range) = field.split_once('=')?;
    unit.eq_ignore_ascii_case("bytes").then(|| spec(range.trim()))?
}

fn spec(text: &str) -> Option<Spec> {
    let (first, last) = text.split_once('-')?;
    let number = |digits: &str| match digits {
        "" => Some(None),
        _ if !digits.bytes().all(|byte| byte.is_ascii_digit()) => None,
        // Numbers above 128 bits are alike: all lie outside.
        _ => Some(Some(digits.parse().unwrap_or(u128::MAX))),
    };
    let spec = Spec(number(first)?, number(last)?);
    match spec {
        Spec(None, None) => None,
        Spec(Some(first), Some(last)) if first > last => None,
        _ => Some(spec),
    }
}
