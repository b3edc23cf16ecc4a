//! Validators of HTTP: the version that a server gave to what it sent.

use std::time::Duration;

use reqwest::header::{
    DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};

/// Minimum age of a file for which `Last-Modified` tells two versions apart: the field counts whole seconds (RFC 9110,
/// section 8.8.2.2).
const RESOLUTION: Duration = Duration::from_secs(1);

/// Returns the conditions under which a server sends a body again, from the headers of the answer that brought the last one.
/// None if it gave no version.
pub fn conditions(headers: &HeaderMap) -> HeaderMap {
    let condition = |name: HeaderName, value: &HeaderValue| HeaderMap::from_iter([(name, value.clone())]);
    if let Some(tag) = headers.get(ETAG) {
        return condition(IF_NONE_MATCH, tag);
    }
    match headers.get(LAST_MODIFIED) {
        Some(modified) if is_settled(modified, headers) => condition(IF_MODIFIED_SINCE, modified),
        _ => HeaderMap::new(),
    }
}

/// Returns true if the file could not have changed again within the same second after it was sent.
fn is_settled(modified: &HeaderValue, headers: &HeaderMap) -> bool {
    let time = |value: &HeaderValue| httpdate::parse_http_date(value.to_str().ok()?).ok();
    let sent = headers.get(DATE).and_then(time);
    let (Some(modified), Some(sent)) = (time(modified), sent) else {
        return false;
    };
    sent.duration_since(modified).is_ok_and(|age| age > RESOLUTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions_of(fields: &[(&'static str, &'static str)]) -> Option<(String, String)> {
        let fields = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let conditions = conditions(&HeaderMap::from_iter(fields));
        let text = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
        conditions.iter().next().map(text)
    }

    #[test]
    fn entity_tag_is_preferred_and_fresh_modification_is_no_version() {
        let modified = ("last-modified", "Wed, 21 Oct 2026 07:28:00 GMT");
        let tag = ("etag", "W/\"1\"");
        let want = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(conditions_of(&[modified, tag]), want("if-none-match", "W/\"1\""));
        let later = ("date", "Wed, 21 Oct 2026 07:28:02 GMT");
        assert_eq!(conditions_of(&[modified, later]), want("if-modified-since", modified.1));
        for date in [
            "Wed, 21 Oct 2026 07:28:01 GMT",
            "Wed, 21 Oct 2026 07:28:00 GMT",
            "Wed, 21 Oct 2026 07:27:00 GMT",
            "today",
        ] {
            assert_eq!(conditions_of(&[modified, ("date", date)]), None, "{date}");
        }
        assert_eq!(conditions_of(&[modified]), None);
        assert_eq!(conditions_of(&[]), None);
    }
}
