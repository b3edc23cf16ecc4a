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

    fn challenge(values: &[&str]) -> Option<Challenge> {
        let fields = values.iter().map(|value| (WWW_AUTHENTICATE, value.parse().unwrap()));
        Challenge::from_headers(&HeaderMap::from_iter(fields))
    }

    #[test]
    fn challenge_prefers_bearer_and_skips_unknown_or_long_or_further_fields() {
        let (basic, long) = (
            r#"Basic realm="a""#,
            format!("Basic realm=\"{}\"", "a".repeat(MAX_BYTES)),
        );
        let bearer = r#"Bearer realm="https://auth.quay.io/token",service="quay.io",scope="repository:a:pull,push""#;
        let token = Challenge::Bearer {
            realm: Url::parse("https://auth.quay.io/token").unwrap(),
            service: Some("quay.io".to_owned()),
        };
        let further = [&["Negotiate"; MAX_FIELDS][..], &[basic]].concat();
        for (fields, want) in [
            (&[bearer][..], Some(token.clone())),
            (&[basic, bearer], Some(token)),
            (&[r#"basic realm="x""#], Some(Challenge::Basic)),
            (&[&long[..MAX_BYTES - 1], &long, basic], Some(Challenge::Basic)),
            (&[&long], None),
            (&further, None),
            (&["Negotiate"], None),
            (&["Digest realm=x, nonce=y"], None),
            (&["Bearer"], None),
            (&[r#"Bearer realm="not a url""#], None),
            (&[r#"Bearer realm="http://127.0.0.1:1/token"#], None),
            (&["%01"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(challenge(fields), want, "{fields:?}");
        }
    }
}
