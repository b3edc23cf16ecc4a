use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

/// What a request says about who sent it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// RFC 7617.
    Basic { name: String, password: Vec<u8> },
    /// RFC 6750, section 2.1.
    Bearer(Vec<u8>),
}

impl Login {
    /// Reads the one `Authorization` field; `None` if there is none, another scheme, or more than one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return None;
        };
        let (scheme, credentials) = field.to_str().ok()?.split_once(' ')?;
        let credentials = credentials.trim_matches(' ');
        if scheme.eq_ignore_ascii_case("Bearer") {
            return Some(Self::Bearer(credentials.into()));
        }
        if !scheme.eq_ignore_ascii_case("Basic") {
            return None;
        }
        let decoded = STANDARD.decode(credentials).ok()?;
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        Some(Self::Basic {
            name: String::from_utf8(decoded[..colon].to_vec()).ok()?,
            password: decoded[colon + 1..].to_vec(),
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic(<redacted>)",
            Self::Bearer(_) => "Bearer(<redacted>)",
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn login(fields: &[&str]) -> Option<Login> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
        }
        Login::of(&headers)
    }

    fn basic(name: &str, password: &str) -> Option<Login> {
        Some(Login::Basic {
            name: name.to_owned(),
            password: password.into(),
        })
    }

    #[test]
    fn both_schemes_are_read() {
        // The example of RFC 7617, section 2.
        assert_eq!(
            login(&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]),
            basic("Aladdin", "open sesame")
        );
        assert_eq!(login(&["basic OjE6Mg=="]), basic("", "1:2"));
        assert_eq!(login(&["BEARER  abc "]), Some(Login::Bearer(b"abc".to_vec())));
    }

    #[test]
    fn anything_else_is_nobody() {
        for fields in [
            &[][..],
            &[""],
            &["Basic"],
            &["Basic !!!"],
            &["Basic bm9jb2xvbg=="],
            &["Digest username=a"],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(login(fields), None, "{fields:?}");
        }
    }

    #[test]
    fn it_is_never_printed() {
        for field in ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Bearer open"] {
            let debug = format!("{:?}", login(&[field]));
            assert!(!debug.contains("open") && !debug.contains("Aladdin"), "{debug}");
        }
    }
}
