//! The URLs of archives and git repositories, with the folder in them.

use std::fmt;

use fetch::unusable;
use model::text::is_unprintable;
use oci::{Digest, clean_path};
use reqwest::Url;

/// Ends of the paths of archives. The content decides about the compression, not the name.
const SUFFIXES: [&str; 5] = [".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar"];

/// Length of a commit's full name, in hex digits of SHA-1.
const HEX_DIGITS: usize = 40;

/// The error for the URL of a git repository in another form than `git:https://HOST/PATH`.
const NOT_GIT: &str = "git is read over https only: write git:https://HOST/PATH#REF:PATH, \
     or the URL of an archive of the branch, such as https://HOST/PATH.tar.gz";

/// An archive on a web server: `https://HOST/PATH.tar.gz[#PATH]`.
///
/// ```
/// use source::Source;
///
/// let source: Source = "https://example.com/v1.tar.gz#./configs/".parse().unwrap();
/// assert_eq!(source.to_string(), "https://example.com/v1.tar.gz#configs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveLocation {
    /// Without user, query and fragment.
    pub(crate) url: Url,
    /// Components of the folder that holds the catalog; none for the whole archive. `None` if it is
    /// to be found.
    pub(crate) folder: Option<Vec<String>>,
}

/// A folder in a git repository: `git:https://HOST/PATH[#REF[:PATH]]`.
///
/// ```
/// use source::Source;
///
/// let source: Source = "git:https://example.com/repo.git/#main:./catalogs/".parse().unwrap();
/// assert_eq!(source.to_string(), "git:https://example.com/repo.git#main:catalogs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitLocation {
    /// Without user, query and fragment, and without a slash at its end.
    pub(crate) url: Url,
    /// Branch, tag or commit. `None` for the default branch.
    pub(crate) reference: Option<String>,
    /// Components of the folder that holds the catalog; none for the whole tree.
    pub(crate) folder: Vec<String>,
    /// Revision, if the reference is a commit.
    pub(crate) pinned: Option<Digest>,
}

impl ArchiveLocation {
    /// Returns the revision of the catalog in an archive. Another folder of the same archive is
    /// another catalog, and the revision alone decides about reading it.
    pub(crate) fn revision(&self, archive: &Digest) -> Digest {
        match &self.folder {
            None => archive.clone(),
            Some(parts) => Digest::of(format!("{archive}#{}", parts.join("/")).as_bytes()),
        }
    }

    /// Parses the text of a source. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (url, folder) = match text.split_once('#') {
            Some((url, folder)) => (url, Some(folder)),
            None => (text, None),
        };
        let url = web_url(url, "it is not a URL with a host")?;
        let path = url.path().to_ascii_lowercase();
        if !SUFFIXES.iter().any(|suffix| path.ends_with(suffix)) {
            return Err(
                "its path does not end in .tar.gz, .tgz, .tar.zst, .tzst or .tar; an image has no https:// in front, only docker://",
            );
        }
        let folder = folder.map(components).transpose()?;
        Ok(Self { url, folder })
    }
}

impl GitLocation {
    /// Returns the revision of the catalog at a commit. Another folder of the same commit is
    /// another catalog.
    pub(crate) fn revision(&self, commit: &str) -> Digest {
        Digest::of(format!("git:{commit}:{}", self.folder.join("/")).as_bytes())
    }

    /// Parses the text of a source after `git:`. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (url, rest) = text.split_once('#').unwrap_or((text, ""));
        // The name of a branch or tag cannot hold a colon, but a folder can.
        let (reference, folder) = rest.split_once(':').unwrap_or((rest, ""));
        let mut url = web_url(url, NOT_GIT)?;
        let path = url.path().trim_end_matches('/').to_owned();
        if path.is_empty() {
            return Err(NOT_GIT);
        }
        url.set_path(&path);
        if !reference.is_empty() && !is_reference(reference) {
            return Err("the part after # is no name of a branch, tag or commit: write #REF:PATH");
        }
        let mut location = Self {
            url,
            reference: None,
            folder: components(folder)?,
            pinned: None,
        };
        if reference.len() == HEX_DIGITS && reference.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let commit = reference.to_ascii_lowercase();
            location.pinned = Some(location.revision(&commit));
            location.reference = Some(commit);
        } else if !reference.is_empty() {
            location.reference = Some(reference.to_owned());
        }
        Ok(location)
    }
}

/// Returns true for a text that starts as the URL of a web server.
pub(crate) fn is_web_url(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else {
        return false;
    };
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

fn web_url(text: &str, otherwise: &'static str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| otherwise)?;
    if !url.has_host() || !is_web_url(text) {
        return Err(otherwise);
    }
    if unusable(&url).is_some() || url.query().is_some() {
        // The source of a catalog is published, and each of them can be a secret.
        return Err(
            "it has a user, a password or a query, which would be published with the catalog: \
             leave it out and add credentials to a file of authFiles (--auth-file)",
        );
    }
    Ok(url)
}

fn components(folder: &str) -> Result<Vec<String>, &'static str> {
    if folder.contains(is_unprintable) {
        return Err("the folder after the URL has control characters");
    }
    let parts = clean_path(folder).ok_or("the folder after the URL leads out of it")?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

/// Applies the rules of `git check-ref-format`, and refuses a name that starts as an option.
fn is_reference(name: &str) -> bool {
    for part in name.split('/') {
        if part.is_empty() || part.starts_with('.') || part.ends_with(".lock") {
            return false;
        }
    }
    !name.contains(|c: char| is_unprintable(c) || " ~^:?*[\\".contains(c))
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && !name.starts_with('-')
        && name != "@"
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

impl fmt::Display for GitLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git:{}", self.url)?;
        match (self.reference.as_deref(), self.folder.as_slice()) {
            (None, []) => Ok(()),
            (Some(reference), []) => write!(f, "#{reference}"),
            (reference, parts) => {
                write!(f, "#{}:{}", reference.unwrap_or_default(), parts.join("/"))
            }
        }
    }
}
