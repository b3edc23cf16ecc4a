//! The URL of a catalog of another mirror.

use std::fmt;
use std::str::FromStr;

use fetch::unusable;
use model::{CatalogName, Key};
use reqwest::Url;

/// Folder of all catalogs below the URL of a mirror.
const CATALOGS: &str = "/catalogs/";

/// A catalog of another mirror: `mirror:https://HOST/catalogs/NAME`.
///
/// ```
/// use catalog_mirror_source::MirrorLocation;
///
/// let location: MirrorLocation = "https://mirror.example/catalogs/demo/".parse().unwrap();
/// assert_eq!(location.to_string(), "mirror:https://mirror.example/catalogs/demo");
/// assert_eq!(location.catalog().as_str(), "demo");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorLocation {
    /// URL of the mirror, ending in a slash, without user, query and fragment.
    base: Url,
    catalog: CatalogName,
}

/// The reason for which a text is not the URL of a catalog of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MirrorLocationError {
    /// The text cannot be parsed as an http or https URL with a host.
    #[error("write mirror:https://HOST/catalogs/NAME")]
    NotUrl,
    /// A user, a password or a query. The source of a catalog is published, and each of them can be a secret.
    #[error(
        "it has a user, a password, a query or a fragment, which would be published with the catalog: \
         leave it out and add credentials to a file of authFiles (--auth-file)"
    )]
    Secret,
    /// A path without a folder of catalogs and the name of one.
    #[error("its path does not end in /catalogs/NAME")]
    NoCatalog,
}

impl MirrorLocation {
    /// Returns the name of the catalog in the other mirror.
    pub const fn catalog(&self) -> &CatalogName {
        &self.catalog
    }

    /// Returns the URL of the mirror, ending in a slash.
    pub fn mirror(&self) -> &str {
        self.base.as_str()
    }

    /// Returns the URL of a document or object of the mirror.
    pub(crate) fn url(&self, key: &Key) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{key}", self.base.path()));
        url
    }
}

impl FromStr for MirrorLocation {
    type Err = MirrorLocationError;

    /// Parses the text after `mirror:`.
    fn from_str(text: &str) -> Result<Self, MirrorLocationError> {
        let mut base = Url::parse(text).map_err(|_| MirrorLocationError::NotUrl)?;
        if !matches!(base.scheme(), "https" | "http") {
            return Err(MirrorLocationError::NotUrl);
        }
        if unusable(&base).is_some() || base.query().is_some() || base.fragment().is_some() {
            return Err(MirrorLocationError::Secret);
        }
        let path = base.path().trim_end_matches('/').to_owned();
        let parts = path.rsplit_once(CATALOGS);
        let (folder, name) = parts.ok_or(MirrorLocationError::NoCatalog)?;
        let catalog = name.parse().map_err(|_| MirrorLocationError::NoCatalog)?;
        base.set_path(&format!("{folder}/"));
        Ok(Self { base, catalog })
    }
}

impl fmt::Display for MirrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mirror:{}catalogs/{}", self.base, self.catalog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_of_location_is_its_text() {
        for text in [
            "https://mirror.example/catalogs/demo",
            "https://mirror.example:8443/a/b/catalogs/demo.v4",
            "http://localhost:8080/catalogs/catalogs/demo",
        ] {
            let location: MirrorLocation = text.parse().unwrap();
            assert_eq!(location.to_string(), format!("mirror:{text}"));
            let current = location.url(&Key::Current(location.catalog().clone()));
            assert_eq!(current.as_str(), format!("{text}/current.json"));
        }
    }

    #[test]
    fn other_urls_are_refused() {
        use MirrorLocationError as E;
        for (text, error) in [
            ("", E::NotUrl),
            ("mirror.example/catalogs/demo", E::NotUrl),
            ("file:///catalogs/demo", E::NotUrl),
            ("https://user:hunter2@a.io/catalogs/demo", E::Secret),
            ("https://a.io/catalogs/demo?token=hunter2", E::Secret),
            ("https://a.io/catalogs/demo#x", E::Secret),
            ("https://a.io/", E::NoCatalog),
            ("https://a.io/catalogs/", E::NoCatalog),
            ("https://a.io/catalogs/Demo", E::NoCatalog),
            ("https://a.io/catalogs/demo/all.json", E::NoCatalog),
        ] {
            assert_eq!(text.parse::<MirrorLocation>(), Err(error), "{text}");
        }
    }
}
