//! Mirrors to copy from, as a command line names them.

use std::{fmt, path::Path, str::FromStr};

use fetch::RequestSpec;
use model::Key;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use store::StorePlace;

/// A mirror to copy from: the FROM of `sync` and `verify`.
#[derive(Debug, Clone)]
pub enum SyncOrigin {
    /// A mirror over HTTP or HTTPS, by its URL.
    Http(Box<Address>),
    /// A store that this program opens itself.
    Store(StorePlace),
}

impl FromStr for SyncOrigin {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("http://") || text.starts_with("https://") {
            Ok(Self::Http(Box::new(text.parse()?)))
        } else if (text.contains(['.', ':']) || !text.contains('/'))
            && !text.starts_with(['.', '/'])
            && !text.contains("://")
            && !Path::new(text).exists()
        {
            let hint = format!(
                "there is no folder {text}; write http://{text} or https://{text} for a mirror on a server"
            );
            Err(hint.into())
        } else {
            Ok(Self::Store(text.parse()?))
        }
    }
}

impl SyncOrigin {
    /// Returns the text of the origin for readers of a mirror: a folder of this machine is named by its
    /// last part.
    pub fn shown(&self) -> String {
        match self {
            Self::Store(StorePlace::Folder(folder)) => match folder.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => self.to_string(),
            },
            _ => self.to_string(),
        }
    }

    /// Returns the store, if it is one.
    pub const fn store(&self) -> Option<&StorePlace> {
        match self {
            Self::Store(place) => Some(place),
            Self::Http(_) => None,
        }
    }
}

// Without user name and password, which a URL may contain.
impl fmt::Display for SyncOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(address) => address.fmt(f),
            Self::Store(place) => place.fmt(f),
        }
    }
}

/// The URL of a mirror. A user name and a password in it are sent, and never printed.
#[derive(Debug, Clone)]
pub struct Address {
    /// Without credentials, ending in a slash.
    pub(crate) base: Url,
    /// A GET with the credentials, if there are any.
    pub(crate) request: RequestSpec,
}

/// The reason for which a text is not the URL of a mirror.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(&'static str);

const NOT_HTTP: AddressError =
    AddressError("the address of a mirror starts with http:// or https://");
const NO_QUERY: AddressError = AddressError("the address of a mirror has no query and no fragment");
const LOGIN: AddressError = AddressError("the credentials in the address cannot be read");

impl Address {
    /// Returns the host, with its port if one is written.
    pub fn host(&self) -> String {
        fetch::authority(&self.base)
    }

    /// Returns the URL of a key.
    pub(crate) fn url(&self, key: &Key) -> Url {
        let url = self.base.join(&key.to_string());
        url.expect("a key is a path of plain characters")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut base = Url::parse(text).map_err(|_| NOT_HTTP)?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(NOT_HTTP);
        }
        // Keys are appended as a path.
        if base.query().is_some() || base.fragment().is_some() {
            return Err(NO_QUERY);
        }
        let mut request = RequestSpec::default();
        if !base.username().is_empty() || base.password().is_some() {
            let password = decode(base.password().unwrap_or_default())?;
            request = request.with_basic_auth(&decode(base.username())?, &password);
        }
        let cleared = base.set_username("").and_then(|()| base.set_password(None));
        cleared.map_err(|()| LOGIN)?;
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        Ok(Self { base, request })
    }
}

fn decode(text: &str) -> Result<String, AddressError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| LOGIN)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
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
        assert_eq!(
            address.request.credentials["authorization"],
            "Basic cm9ib3Q6cEBzcw=="
        );
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
            ("cdn.example", NOT_HTTP),
            ("file:///etc", NOT_HTTP),
            ("https://h/?a=b", NO_QUERY),
            ("https://h/#a", NO_QUERY),
            ("https://a%ff@h/", LOGIN),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn sync_origin_scheme_decides_kind() {
        let parse = |text: &str| text.parse::<SyncOrigin>();
        assert!(matches!(
            parse("https://cdn.example/x"),
            Ok(SyncOrigin::Http(_))
        ));
        assert!(matches!(
            parse("./http"),
            Ok(SyncOrigin::Store(StorePlace::Folder(_)))
        ));
        assert!(parse("https://cdn.example/?token=1").is_err());
    }
}
