//! Mirrors to copy from, as a command line names them.

use std::{fmt, path::Path, str::FromStr};

use store::StorePlace;

use crate::Address;

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
        } else if text.contains(['.', ':'])
            && !text.starts_with(['.', '/'])
            && !text.contains("://")
            && !Path::new(text).exists()
        {
            Err(
                format!("there is no folder {text}; write http://{text} or https://{text} for a mirror on a server")
                    .into(),
            )
        } else {
            Ok(Self::Store(text.parse()?))
        }
    }
}

impl SyncOrigin {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_origin_scheme_decides_kind() {
        let parse = |text: &str| text.parse::<SyncOrigin>();
        assert!(matches!(parse("https://cdn.example/x"), Ok(SyncOrigin::Http(_))));
        assert!(matches!(parse("./http"), Ok(SyncOrigin::Store(StorePlace::Folder(_)))));
        assert!(parse("https://cdn.example/?token=1").is_err());
    }
}
