use std::time::UNIX_EPOCH;

use etag::EntityTag;
use http::{
    HeaderMap, HeaderName,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE},
};

use super::{Validators, list::elements, validators::Tag};

/// What the conditions of a GET or HEAD come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answer as if there were none.
    Proceed,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not what the client means.
    Failed,
}

/// Evaluates the preconditions in the order of RFC 9110, section 13.2.2. A field that does not parse as its grammar
/// says matches nothing (tags) or is not there (dates: sections 13.1.3 and 13.1.4).
pub(crate) fn evaluate(headers: &HeaderMap, current: Validators<'_>) -> Outcome {
    if headers.contains_key(IF_MATCH) {
        if !any_tag(headers, IF_MATCH, current.tag, Comparison::Strong) {
            return Outcome::Failed;
        }
    } else if modified_since(headers, IF_UNMODIFIED_SINCE, current) == Some(true) {
        return Outcome::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if any_tag(headers, IF_NONE_MATCH, current.tag, Comparison::Weak) {
            return Outcome::NotModified;
        }
    } else if modified_since(headers, IF_MODIFIED_SINCE, current) == Some(false) {
        return Outcome::NotModified;
    }
    Outcome::Proceed
}

/// Whether a `Range` may be honoured (RFC 9110, section 13.1.5): always without `If-Range`, else only if it names the
/// current representation by a strong tag or by exactly its date. The date is strong enough: the store gives one
/// catalog no two states in one second without a new tag, and ranges of other codings have their own tags.
pub(crate) fn if_range_holds(headers: &HeaderMap, current: Validators<'_>) -> bool {
    let Some(value) = headers.get(IF_RANGE) else {
        return true;
    };
    let field = value.as_bytes();
    if field.ends_with(b"\"") {
        return matches(field, current.tag, Comparison::Strong);
    }
    let date = seconds(field);
    date.is_some() && date == current.modified.map(super::Modified::seconds)
}

/// The two ways to compare tags (RFC 9110, section 8.8.3.2).
#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

fn any_tag(headers: &HeaderMap, name: HeaderName, current: &Tag, comparison: Comparison) -> bool {
    headers.get_all(name).iter().any(|value| {
        let field = value.as_bytes();
        field == current.header().as_bytes()
            || field.trim_ascii() == b"*"
            || elements(field).any(|element| matches(element, current, comparison))
    })
}

/// A tag that [`EntityTag`] cannot hold is longer than any that is ever given out, so it matches nothing.
fn matches(element: &[u8], current: &Tag, comparison: Comparison) -> bool {
    let text = std::str::from_utf8(element).ok();
    let Some(tag) = text.and_then(|text| text.parse::<EntityTag>().ok()) else {
        return false;
    };
    let weak_enough = match comparison {
        Comparison::Strong => !tag.weak,
        Comparison::Weak => true,
    };
    weak_enough && tag.tag().as_bytes() == current.opaque()
}

/// Whether the representation is newer than the date of the field; `None` without a usable date on either side.
fn modified_since(headers: &HeaderMap, name: HeaderName, current: Validators<'_>) -> Option<bool> {
    let modified = current.modified?;
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    Some(modified.seconds() > seconds(value.as_bytes())?)
}

fn seconds(date: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(std::str::from_utf8(date).ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use layout::Sha256;
    use rstest::rstest;

    use super::*;
    use crate::fields::Modified;

    const TAG: &str = "\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\"";
    const WEAK: &str = "W/\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\"";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const EXACT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sunday, 06-Nov-94 08:49:38 GMT";

    fn with_current<T>(check: impl FnOnce(Validators<'_>) -> T) -> T {
        let tag = Tag::new(Sha256::of(b""), "");
        let modified = Modified::new(UNIX_EPOCH + Duration::from_secs(784_111_777));
        check(Validators {
            tag: &tag,
            modified: Some(&modified),
        })
    }

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let parse = |&(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        fields.iter().map(parse).collect()
    }

    #[rstest]
    #[case::none(&[], Outcome::Proceed)]
    #[case::match_strong(&[("if-match", TAG)], Outcome::Proceed)]
    #[case::match_list(&[("if-match", "\"a\", \"b,c\""), ("if-match", TAG)], Outcome::Proceed)]
    #[case::match_any(&[("if-match", "*")], Outcome::Proceed)]
    #[case::match_weak_fails(&[("if-match", WEAK)], Outcome::Failed)]
    #[case::match_other(&[("if-match", "\"a\"")], Outcome::Failed)]
    #[case::match_hides_unmodified_since(&[("if-match", TAG), ("if-unmodified-since", BEFORE)], Outcome::Proceed)]
    #[case::unmodified_since(&[("if-unmodified-since", EXACT)], Outcome::Proceed)]
    #[case::unmodified_since_earlier(&[("if-unmodified-since", BEFORE)], Outcome::Failed)]
    #[case::unmodified_since_garbage(&[("if-unmodified-since", "yesterday")], Outcome::Proceed)]
    #[case::none_match(&[("if-none-match", TAG)], Outcome::NotModified)]
    #[case::none_match_weak(&[("if-none-match", WEAK)], Outcome::NotModified)]
    #[case::none_match_any(&[("if-none-match", " * ")], Outcome::NotModified)]
    #[case::none_match_star_tag_is_a_tag(&[("if-none-match", "\"*\"")], Outcome::Proceed)]
    #[case::none_match_list(&[("if-none-match", "W/\"x,\", , \"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\"")], Outcome::NotModified)]
    #[case::none_match_other_coding(&[("if-none-match", "\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU-gzip\"")], Outcome::Proceed)]
    #[case::none_match_too_long(&[("if-none-match", "\"0123456789012345678901234567890123456789012345678901234567890123456789\"")], Outcome::Proceed)]
    #[case::none_match_unquoted(&[("if-none-match", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU")], Outcome::Proceed)]
    #[case::none_match_hides_modified_since(&[("if-none-match", "\"a\""), ("if-modified-since", AFTER)], Outcome::Proceed)]
    #[case::modified_since_exact(&[("if-modified-since", EXACT)], Outcome::NotModified)]
    #[case::modified_since_later(&[("if-modified-since", AFTER)], Outcome::NotModified)]
    #[case::modified_since_earlier(&[("if-modified-since", BEFORE)], Outcome::Proceed)]
    #[case::modified_since_twice(&[("if-modified-since", AFTER), ("if-modified-since", AFTER)], Outcome::Proceed)]
    #[case::modified_since_garbage(&[("if-modified-since", "784111777")], Outcome::Proceed)]
    #[case::match_then_none_match(&[("if-match", TAG), ("if-none-match", TAG)], Outcome::NotModified)]
    #[case::failed_before_not_modified(&[("if-match", "\"a\""), ("if-none-match", TAG)], Outcome::Failed)]
    fn comes_to(#[case] fields: &[(&str, &str)], #[case] expected: Outcome) {
        assert_eq!(with_current(|current| evaluate(&headers(fields), current)), expected);
    }

    #[test]
    fn dates_mean_nothing_without_a_modification_date() {
        let tag = Tag::new(Sha256::of(b""), "");
        let current = Validators {
            tag: &tag,
            modified: None,
        };
        let fields = [("if-modified-since", AFTER), ("if-unmodified-since", BEFORE)];
        assert_eq!(evaluate(&headers(&fields), current), Outcome::Proceed);
        assert!(!if_range_holds(&headers(&[("if-range", EXACT)]), current));
    }

    #[rstest]
    #[case::absent(&[], true)]
    #[case::tag(&[("if-range", TAG)], true)]
    #[case::weak_tag(&[("if-range", WEAK)], false)]
    #[case::other_tag(&[("if-range", "\"a\"")], false)]
    #[case::exact_date(&[("if-range", EXACT)], true)]
    #[case::later_date(&[("if-range", AFTER)], false)]
    #[case::garbage(&[("if-range", "*")], false)]
    fn range_holds(#[case] fields: &[(&str, &str)], #[case] expected: bool) {
        assert_eq!(
            with_current(|current| if_range_holds(&headers(fields), current)),
            expected
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics(field in proptest::collection::vec(proptest::prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..80)) {
            let value = http::HeaderValue::from_bytes(&field).unwrap();
            for name in [IF_MATCH, IF_NONE_MATCH, IF_RANGE, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
                let headers = HeaderMap::from_iter([(name, value.clone())]);
                with_current(|current| (evaluate(&headers, current), if_range_holds(&headers, current)));
            }
        }

        #[test]
        fn a_tag_is_found_anywhere_in_a_list(before in "(\"[!#-~]{0,9}\", ?){0,4}", after in "(, ?W/\"[!#-~]{0,9}\"){0,4}") {
            let fields = format!("{before}{TAG}{after}");
            let outcome = with_current(|current| evaluate(&headers(&[("if-none-match", &fields)]), current));
            proptest::prop_assert_eq!(outcome, Outcome::NotModified);
        }
    }
}
