use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

/// Credentials of a request, not verified yet.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A name and a password (RFC 7617). The password may be a token.
    Basic { name: String, password: Vec<u8> },
    /// A token (RFC 6750, section 2.1).
    Bearer(Vec<u8>),
}

impl Credentials {
    /// Reads the `Authorization` field. Returns `None` without the field, for other schemes and for two fields.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
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

impl fmt::Debug for Credentials {
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

    fn read(fields: &[&str]) -> Option<Credentials> {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
        }
        Credentials::from_headers(&headers)
    }

    fn basic(name: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Basic {
            name: name.to_owned(),
            password: password.into(),
        })
    }

    #[test]
    fn credentials_of_both_schemes_are_read() {
        // The example of RFC 7617, section 2.
        assert_eq!(
            read(&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]),
            basic("Aladdin", "open sesame")
        );
        assert_eq!(read(&["basic OjE6Mg=="]), basic("", "1:2"));
        assert_eq!(read(&["BEARER  abc "]), Some(Credentials::Bearer(b"abc".to_vec())));
    }

    #[test]
    fn credentials_of_other_forms_are_none() {
        for fields in [
            &[][..],
            &[""],
            &["Basic"],
            &["Basic !!!"],
            &["Basic bm9jb2xvbg=="],
            &["Digest username=a"],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(read(fields), None, "{fields:?}");
        }
    }

    #[test]
    fn credentials_are_never_printed() {
        for field in ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Bearer open"] {
            let debug = format!("{:?}", read(&[field]));
            assert!(!debug.contains("open") && !debug.contains("Aladdin"), "{debug}");
        }
    }
}
