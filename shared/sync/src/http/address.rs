use std::{fmt, str::FromStr};

use fetch::RequestSpec;
use model::Key;
use percent_encoding::percent_decode_str;
use reqwest::Url;

/// The URL of a mirror. A user name and a password in it are sent, and never printed.
#[derive(Clone)]
pub struct Address {
    /// Without credentials, ending in a slash.
    pub(super) base: Url,
    /// A GET with the credentials, if there are any.
    pub(super) request: RequestSpec,
}

/// The reason for which a text is not the URL of a mirror.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not an http or https URL with a host.
    #[error("the address of a mirror starts with http:// or https://")]
    NotHttp,
    /// A query or a fragment. Keys are appended as a path, so there can be none.
    #[error("the address of a mirror has no query and no fragment")]
    Query,
    /// Credentials that are not percent-encoded UTF-8.
    #[error("the credentials in the address cannot be read")]
    Login,
}

impl Address {
    /// Returns the host, with its port if one is written.
    pub fn host(&self) -> String {
        fetch::authority(&self.base)
    }

    /// Returns the URL of a key.
    pub(super) fn url(&self, key: &Key) -> Url {
        self.base
            .join(&key.to_string())
            .expect("a key is a path of plain characters")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut base = Url::parse(text).map_err(|_| AddressError::NotHttp)?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(AddressError::NotHttp);
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(AddressError::Query);
        }
        let mut request = RequestSpec::default();
        if !base.username().is_empty() || base.password().is_some() {
            let password = decode(base.password().unwrap_or_default())?;
            request = request.with_basic_auth(&decode(base.username())?, &password);
        }
        let cleared = base.set_username("").and_then(|()| base.set_password(None));
        cleared.map_err(|()| AddressError::Login)?;
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        Ok(Self { base, request })
    }
}

fn decode(text: &str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| AddressError::Login)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_key_is_below_address() {
        for (address, url) in [
            ("https://cdn.example", "https://cdn.example/catalogs.json"),
            ("http://h:8080/mirror", "http://h:8080/mirror/catalogs.json"),
            ("http://h/mirror/", "http://h/mirror/catalogs.json"),
        ] {
            let address: Address = address.parse().unwrap();
            assert_eq!(address.url(&Key::Catalogs).as_str(), url);
        }
    }

    #[test]
    fn credentials_are_parsed_and_never_printed() {
        let address: Address = "https://robot:p%40ss@cdn.example:8443/x".parse().unwrap();
        assert_eq!(address.host(), "cdn.example:8443");
        assert_eq!(address.request.credentials["authorization"], "Basic cm9ib3Q6cEBzcw==");
        for text in [
            address.to_string(),
            format!("{address:?}"),
            address.url(&Key::Catalogs).to_string(),
        ] {
            assert!(
                !text.contains("robot") && !text.contains("p@ss") && !text.contains("p%40"),
                "{text}"
            );
        }
        assert_eq!(address.to_string(), "https://cdn.example:8443/x");
    }

    #[test]
    fn parse_refuses_other_texts() {
        for (text, error) in [
            ("cdn.example", AddressError::NotHttp),
            ("file:///etc", AddressError::NotHttp),
            ("https://h/?a=b", AddressError::Query),
            ("https://h/#a", AddressError::Query),
            ("https://a%ff@h/", AddressError::Login),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err(), error, "{text}");
        }
    }
}
