//! The URL of an archive and the folder in it.

use std::fmt;
use std::str::FromStr;

use fetch::unusable;
use model::text::is_unprintable;
use oci::clean_path;
use reqwest::Url;

/// Ends of the paths of archives. The content decides about the compression, not the name.
const SUFFIXES: [&str; 5] = [".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar"];

/// An archive on a web server: `https://HOST/PATH.tar.gz[#PATH]`.
///
/// ```
/// use catalog_mirror_source::ArchiveLocation;
///
/// let location: ArchiveLocation = "https://example.com/v1.tar.gz#./configs/".parse().unwrap();
/// assert_eq!(location.to_string(), "https://example.com/v1.tar.gz#configs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveLocation {
    /// Without user, query and fragment.
    url: Url,
    /// Components of the folder that holds the catalog; none for the whole archive. `None` if it is to be found.
    folder: Option<Vec<String>>,
}

/// The reason for which a text is not the URL of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveLocationError {
    /// The text cannot be parsed as a URL with a host.
    #[error("it is not a URL with a host")]
    NotUrl,
    /// A user, a password or a query. The source of a catalog is published, and each of them can be a secret.
    #[error(
        "it has a user, a password or a query, which would be published with the catalog: \
         leave it out and add credentials to a file of authFiles (--auth-file)"
    )]
    Secret,
    /// A path without the end of an archive's name.
    #[error(
        "its path does not end in .tar.gz, .tgz, .tar.zst, .tzst or .tar; an image has no https:// in front, only docker://"
    )]
    Suffix,
    /// A folder that climbs out of the archive.
    #[error("the folder after # leads out of the archive")]
    Outside,
    /// A folder with control characters.
    #[error("the folder after # has control characters")]
    Unprintable,
}

impl ArchiveLocation {
    /// Returns the URL of the archive, without the folder.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the components of the folder after `#`, or `None` if there is no `#`.
    pub fn folder(&self) -> Option<&[String]> {
        self.folder.as_deref()
    }

    /// Returns true for a text that starts as the URL of a web server.
    pub(crate) fn is_url(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"))
    }
}

impl FromStr for ArchiveLocation {
    type Err = ArchiveLocationError;

    fn from_str(text: &str) -> Result<Self, ArchiveLocationError> {
        let (url, folder) = match text.split_once('#') {
            Some((url, folder)) => (url, Some(folder)),
            None => (text, None),
        };
        let url = Url::parse(url).map_err(|_| ArchiveLocationError::NotUrl)?;
        if !url.has_host() || !Self::is_url(text) {
            return Err(ArchiveLocationError::NotUrl);
        }
        if unusable(&url).is_some() || url.query().is_some() {
            return Err(ArchiveLocationError::Secret);
        }
        let path = url.path().to_ascii_lowercase();
        if !SUFFIXES.iter().any(|suffix| path.ends_with(suffix)) {
            return Err(ArchiveLocationError::Suffix);
        }
        Ok(Self {
            url,
            folder: folder.map(components).transpose()?,
        })
    }
}

fn components(folder: &str) -> Result<Vec<String>, ArchiveLocationError> {
    if folder.contains(is_unprintable) {
        return Err(ArchiveLocationError::Unprintable);
    }
    let parts = clean_path(folder).ok_or(ArchiveLocationError::Outside)?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

impl fmt::Display for ArchiveLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.folder.as_deref() {
            None => write!(f, "{}", self.url),
            // A dot, because a text that ends in # looks cut off.
            Some([]) => write!(f, "{}#.", self.url),
            Some(parts) => write!(f, "{}#{}", self.url, parts.join("/")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_of_location_is_its_text() {
        for text in [
            "https://example.com/catalog.tar.gz",
            "https://example.com:8443/a/b/catalog.TGZ",
            "http://mirror:8080/catalog.tar",
            "https://example.com/catalog.tar.zst#configs/a b",
            "https://example.com/catalog.tar.gz#.",
        ] {
            assert_eq!(text.parse::<ArchiveLocation>().unwrap().to_string(), text);
        }
        for (text, clean) in [
            ("https://a.io/x/../c.tar#/a//./b/../c/", "https://a.io/c.tar#a/c"),
            ("https://a.io/c.tar#", "https://a.io/c.tar#."),
            ("HTTPS://A.io:443/c.tar", "https://a.io/c.tar"),
            ("https://a.io/c.tar#a#b", "https://a.io/c.tar#a#b"),
        ] {
            assert_eq!(text.parse::<ArchiveLocation>().unwrap().to_string(), clean);
        }
    }

    #[test]
    fn url_that_could_hold_a_secret_or_is_no_archive_is_refused() {
        use ArchiveLocationError as E;
        for (text, error) in [
            ("https://", E::NotUrl),
            ("https://:1/c.tar", E::NotUrl),
            ("ftp://a.io/c.tar", E::NotUrl),
            ("https://user@a.io/c.tar", E::Secret),
            ("https://user:hunter2@a.io/c.tar", E::Secret),
            ("https://a.io/c.tar?sig=hunter2", E::Secret),
            ("https://a.io/c.zip", E::Suffix),
            ("https://quay.io/ns/cat:v1", E::Suffix),
            ("https://a.io/c.tar#../b", E::Outside),
            ("https://a.io/c.tar#a/../../b", E::Outside),
            ("https://a.io/c.tar#a\u{1b}[31m", E::Unprintable),
        ] {
            assert_eq!(text.parse::<ArchiveLocation>(), Err(error), "{text}");
        }
    }
}
