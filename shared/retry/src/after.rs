use std::time::{Duration, SystemTime};

use http::{HeaderMap, header::RETRY_AFTER};

/// `Retry-After`, as seconds or as a date (RFC 9110, section 10.2.3). `None` if there is none that can be understood.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let parse = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(parse("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(parse(&soon).unwrap() > Duration::from_secs(90));
        assert_eq!(parse("soon"), None);
    }
}
