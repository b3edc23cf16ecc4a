//! Validators of a representation, and the conditions that compare them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etag::EntityTag;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use model::{Encoding, Sha256};

use super::elements;

/// A strong entity tag (RFC 9110, section 8.8.3), ready to be sent. It names bytes: an object has
/// one tag under all its URLs, and no two codings of one content share a tag.
#[derive(Debug, Clone)]
pub(crate) struct Tag(HeaderValue);

impl Tag {
    /// Returns the tag of bytes with this hash.
    pub(crate) fn of_stored(sha256: Sha256) -> Self {
        Self::with_suffix(sha256, "")
    }

    /// Returns the tag of a content that is encoded on the fly. Identity leaves the bytes of the
    /// content.
    pub(crate) fn of_made(content: Sha256, encoding: Encoding) -> Self {
        Self::with_suffix(content, encoding.tag_suffix())
    }

    /// Returns the tag of a document that is made from a content, distinguished by `suffix`. The
    /// hash is written in base64url because hex is longer than an [`EntityTag`] can hold.
    pub(crate) fn with_suffix(content: Sha256, suffix: &str) -> Self {
        let tag = EntityTag::strong(&format!("{}{suffix}", content.to_base64url()));
        let header = HeaderValue::from_maybe_shared(Bytes::from(tag.to_string()));
        Self(header.expect("base64url and a word are visible ASCII"))
    }

    pub(crate) const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

/// Date of a publication as a modification date (RFC 9110, section 8.8.2), ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Modified {
    /// The publication's own seconds since 1970. They are compared unclamped: a client that was
    /// sent an earlier date gets the content again, which is the safe side.
    seconds: u64,
    header: HeaderValue,
}

impl Modified {
    pub(crate) fn new(time: SystemTime) -> Self {
        let seconds = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        let header = HeaderValue::from_str(&date).expect("an HTTP date is visible ASCII");
        Self { seconds, header }
    }

    /// Returns the field value. A publisher's clock may be ahead of this one; a date in the future
    /// is replaced by the present (RFC 9110, section 8.8.2.1).
    pub(crate) fn header(&self, now: SystemTime) -> HeaderValue {
        match now.duration_since(UNIX_EPOCH) {
            Ok(now) if now.as_secs() < self.seconds => Self::new(UNIX_EPOCH + now).header,
            _ => self.header.clone(),
        }
    }
}

/// Precondition of the conditions of a GET or HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// Answer as if the request had no conditions.
    Proceed,
    /// 304: the client has the representation.
    NotModified,
    /// 412: the current representation is not the one that the client names.
    Failed,
}

/// Evaluates the preconditions in the order of RFC 9110, section 13.2.2. A malformed tag matches
/// nothing; a malformed date is ignored (sections 13.1.3 and 13.1.4).
pub(crate) fn evaluate(
    headers: &HeaderMap,
    tag: &Tag,
    modified: Option<&Modified>,
) -> Precondition {
    if headers.contains_key(header::IF_MATCH) {
        if !any_tag(headers, header::IF_MATCH, tag, EntityTag::strong_eq) {
            return Precondition::Failed;
        }
    } else if modified_since(headers, header::IF_UNMODIFIED_SINCE, modified) == Some(true) {
        return Precondition::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if any_tag(headers, header::IF_NONE_MATCH, tag, EntityTag::weak_eq) {
            return Precondition::NotModified;
        }
    } else if modified_since(headers, header::IF_MODIFIED_SINCE, modified) == Some(false) {
        return Precondition::NotModified;
    }
    Precondition::Proceed
}

/// True if a `Range` may be honoured (RFC 9110, section 13.1.5): always without `If-Range`, else
/// only if that names the current representation by a strong tag. A date never does: it is not a
/// strong validator (section 8.8.2.2), since two publications may fall into one second and each
/// coding has the same date. The client then gets all bytes.
pub(crate) fn if_range_holds(headers: &HeaderMap, current: &Tag) -> bool {
    let Some(value) = headers.get(header::IF_RANGE) else {
        return true;
    };
    matches(value.as_bytes(), current, EntityTag::strong_eq)
}

/// Strong or weak comparison of tags (RFC 9110, section 8.8.3.2).
type Comparison = fn(&EntityTag, &EntityTag) -> bool;

fn any_tag(headers: &HeaderMap, name: HeaderName, current: &Tag, comparison: Comparison) -> bool {
    headers.get_all(name).iter().any(|value| {
        let field = value.as_bytes();
        // The usual case, one tag that is equal byte for byte, needs no parser.
        field == current.header().as_bytes()
            || field.trim_ascii() == b"*"
            || elements(field).any(|element| matches(element, current, comparison))
    })
}

/// Compares one element of a list. A tag that is too long for [`EntityTag`] matches nothing: no tag
/// of ours is so long.
fn matches(element: &[u8], current: &Tag, is_equal: Comparison) -> bool {
    let both = parse(element).zip(parse(current.header().as_bytes()));
    both.is_some_and(|(tag, current)| is_equal(&tag, &current))
}

fn parse(tag: &[u8]) -> Option<EntityTag> {
    std::str::from_utf8(tag).ok()?.parse().ok()
}

/// True if the representation is newer than the date of the field; `None` without a usable date on
/// either side.
fn modified_since(
    headers: &HeaderMap,
    name: HeaderName,
    modified: Option<&Modified>,
) -> Option<bool> {
    let modified = modified?;
    let mut values = headers.get_all(name).iter();
    // Two dates contradict each other, so neither counts.
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    Some(modified.seconds > seconds(value.as_bytes())?)
}

fn seconds(date: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    // The contract's table of conditions has the cases. These are any fields.
    proptest::proptest! {
        #[test]
        fn any_field_is_evaluated_without_panic(field in proptest::collection::vec(proptest::prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..80)) {
            let value = http::HeaderValue::from_bytes(&field).unwrap();
            let tag = Tag::of_stored(Sha256::of(b""));
            for name in [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_RANGE, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE] {
                let headers = HeaderMap::from_iter([(name, value.clone())]);
                let modified = Modified::new(UNIX_EPOCH);
                let _ = (evaluate(&headers, &tag, Some(&modified)), if_range_holds(&headers, &tag));
            }
        }

        #[test]
        fn tag_is_found_anywhere_in_a_list(before in "(\"[!#-~]{0,9}\", ?){0,4}", after in "(, ?W/\"[!#-~]{0,9}\"){0,4}") {
            let tag = Tag::of_stored(Sha256::of(b""));
            let field = format!("{before}{}{after}", tag.header().to_str().unwrap());
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, field.parse().unwrap())]);
            proptest::prop_assert_eq!(evaluate(&headers, &tag, None), Precondition::NotModified);
        }
    }
}
