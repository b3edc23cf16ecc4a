//! Challenges in the `WWW-Authenticate` header (RFC 9110, section 11.6.1).

use reqwest::Url;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Maximum length of a field. Real ones have some hundred bytes, and each byte takes up to forty in memory.
const MAX_BYTES: usize = 8 << 10;

/// Maximum number of fields that are read. A registry sends one or two.
const MAX_FIELDS: usize = 8;

/// Challenge that a client can answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    /// Asks for a token from the service at `realm`.
    Bearer {
        realm: Url,
        service: Option<String>,
    },
}

impl Challenge {
    /// Returns the best challenge of an answer. A token is preferred, because a stolen one is worth less than a password.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let values = values.filter(|value| value.len() <= MAX_BYTES).take(MAX_FIELDS);
        let values = values.filter_map(|value| value.to_str().ok());
        let challenges = values.flat_map(|value| http_auth::parse_challenges(value).unwrap_or_default());
        let supported = challenges.filter_map(|challenge| supported(&challenge));
        // The first of the best kind: a token comes before a password.
        supported.min_by_key(|challenge| *challenge == Self::Basic)
    }
}

fn supported(challenge: &http_auth::ChallengeRef<'_>) -> Option<Challenge> {
    if challenge.scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !challenge.scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let param = |name: &str| {
        let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_unescaped())
    };
    Some(Challenge::Bearer {
        realm: Url::parse(&param("realm")?).ok()?,
        service: param("service"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_field_and_further_fields_are_not_read() {
        let long = format!("Basic realm=\"{}\"", "a".repeat(MAX_BYTES));
        assert_eq!(challenge(&[&long]), None);
        assert_eq!(
            challenge(&[&long[..MAX_BYTES - 1], &long, "Basic realm=\"a\""]),
            Some(Challenge::Basic)
        );
        let unknown = ["Negotiate"; MAX_FIELDS];
        assert_eq!(challenge(&[&unknown[..], &["Basic realm=\"a\""]].concat()), None);
    }

    fn challenge(values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        Challenge::from_headers(&headers)
    }

    #[test]
    fn challenge_prefers_bearer_and_skips_unknown() {
        let bearer = r#"Bearer realm="https://auth.quay.io/token",service="quay.io",scope="repository:a:pull,push""#;
        let want = Challenge::Bearer {
            realm: Url::parse("https://auth.quay.io/token").unwrap(),
            service: Some("quay.io".to_owned()),
        };
        assert_eq!(challenge(&[bearer]), Some(want.clone()));
        assert_eq!(challenge(&[r#"Basic realm="x""#, bearer]), Some(want));
        assert_eq!(challenge(&[r#"basic realm="x""#]), Some(Challenge::Basic));
        assert_eq!(challenge(&[r#"Negotiate"#]), None);
        assert_eq!(challenge(&[r#"Bearer realm="not a url""#]), None);
        assert_eq!(challenge(&[]), None);
    }
}
