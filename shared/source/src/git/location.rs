//! The URL of a git repository, a branch, tag or commit in it, and a folder in that.

use std::fmt;
use std::str::FromStr;

use fetch::unusable;
use model::text::is_unprintable;
use oci::{Digest, clean_path};
use reqwest::Url;

/// Length of a commit's full name, in hex digits of SHA-1.
const HEX_DIGITS: usize = 40;

/// A folder in a git repository: `git:https://HOST/PATH[#REF[:PATH]]`.
///
/// ```
/// use catalog_mirror_source::GitLocation;
///
/// let location: GitLocation = "https://example.com/repo.git/#main:./catalogs/".parse().unwrap();
/// assert_eq!(location.to_string(), "git:https://example.com/repo.git#main:catalogs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitLocation {
    /// Without user, query and fragment, and without a slash at its end.
    url: Url,
    /// Branch, tag or commit. `None` for the default branch.
    reference: Option<String>,
    /// Components of the folder that holds the catalog; none for the whole tree.
    folder: Vec<String>,
    /// Revision, if the reference is a commit.
    pinned: Option<Digest>,
}

/// The reason for which a text is not the location of a catalog in a git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GitLocationError {
    /// A transport other than HTTP, such as SSH, or a malformed URL.
    #[error(
        "git is read over https only: write git:https://HOST/PATH#REF:PATH, \
         or the URL of an archive of the branch, such as https://HOST/PATH.tar.gz"
    )]
    NotUrl,
    /// A user, a password or a query. The source of a catalog is published, and each of them can be a secret.
    #[error(
        "it has a user, a password or a query, which would be published with the catalog: \
         leave it out and add credentials to a file of authFiles (--auth-file)"
    )]
    Secret,
    /// A name that no branch or tag can have.
    #[error("the part after # is no name of a branch, tag or commit: write #REF:PATH")]
    Reference,
    /// A folder that climbs out of the repository.
    #[error("the folder after the second colon leads out of the repository")]
    Outside,
    /// A folder with control characters.
    #[error("the folder after the second colon has control characters")]
    Unprintable,
    /// A program without the feature `git`.
    #[error(
        "this program was built without git: build it with `--features git`, \
         or write the URL of an archive of the branch, such as https://HOST/PATH.tar.gz"
    )]
    NotBuilt,
}

impl GitLocation {
    /// Returns the URL of the repository.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the branch, tag or commit, or `None` for the default branch.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Returns the components of the folder that holds the catalog; none for the whole tree.
    pub fn folder(&self) -> &[String] {
        &self.folder
    }

    /// Returns the revision if the reference is a commit, whose content never changes.
    pub const fn pinned(&self) -> Option<&Digest> {
        self.pinned.as_ref()
    }

    /// Returns the commit if the source names one.
    #[cfg(feature = "git")]
    pub(crate) fn commit(&self) -> Option<&str> {
        self.reference().filter(|_| self.pinned.is_some())
    }

    /// Returns the revision of the catalog at a commit. Another folder of the same commit is another catalog.
    pub(crate) fn revision(&self, commit: &str) -> Digest {
        Digest::of(format!("git:{commit}:{}", self.folder.join("/")).as_bytes())
    }
}

impl FromStr for GitLocation {
    type Err = GitLocationError;

    /// Parses the text after `git:`.
    fn from_str(text: &str) -> Result<Self, GitLocationError> {
        let (url, rest) = text.split_once('#').unwrap_or((text, ""));
        // The name of a branch or tag cannot hold a colon, but a folder can.
        let (reference, folder) = rest.split_once(':').unwrap_or((rest, ""));
        let mut location = Self {
            url: repository(url)?,
            reference: Some(reference.to_owned()).filter(|name| !name.is_empty()),
            folder: components(folder)?,
            pinned: None,
        };
        if location.reference().is_some_and(|name| !is_reference(name)) {
            return Err(GitLocationError::Reference);
        }
        let is_commit = reference.len() == HEX_DIGITS && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            let commit = reference.to_ascii_lowercase();
            location.pinned = Some(location.revision(&commit));
            location.reference = Some(commit);
        }
        Ok(location)
    }
}

fn repository(text: &str) -> Result<Url, GitLocationError> {
    let mut url = Url::parse(text).map_err(|_| GitLocationError::NotUrl)?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(GitLocationError::NotUrl);
    }
    if unusable(&url).is_some() || url.query().is_some() {
        return Err(GitLocationError::Secret);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path.is_empty() {
        return Err(GitLocationError::NotUrl);
    }
    url.set_path(&path);
    Ok(url)
}

fn components(folder: &str) -> Result<Vec<String>, GitLocationError> {
    if folder.contains(is_unprintable) {
        return Err(GitLocationError::Unprintable);
    }
    let parts = clean_path(folder).ok_or(GitLocationError::Outside)?;
    Ok(parts.into_iter().map(ToOwned::to_owned).collect())
}

/// Applies the rules of `git check-ref-format`, and refuses a name that starts as an option.
fn is_reference(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(is_part)
        && !name.contains(|c: char| is_unprintable(c) || " ~^:?*[\\".contains(c))
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && !name.starts_with('-')
        && name != "@"
}

impl fmt::Display for GitLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git:{}", self.url)?;
        match (self.reference(), self.folder.as_slice()) {
            (None, []) => Ok(()),
            (Some(reference), []) => write!(f, "#{reference}"),
            (reference, parts) => write!(f, "#{}:{}", reference.unwrap_or_default(), parts.join("/")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

    #[test]
    fn display_of_location_is_its_text() {
        for text in [
            "https://a.io/repo",
            "https://a.io:8443/group/sub/repo.git",
            "http://localhost:8080/repo#main",
            "https://a.io/repo#refs/heads/main",
            "https://a.io/repo#feature/a-b_c.d:configs/a b",
            "https://a.io/repo#:configs",
            &format!("https://a.io/repo#{COMMIT}:a"),
        ] {
            let location: GitLocation = text.parse().unwrap();
            assert_eq!(location.to_string(), format!("git:{text}"));
        }
        for (text, clean) in [
            ("https://a.io/repo/", "git:https://a.io/repo"),
            ("https://a.io/x/../repo#", "git:https://a.io/repo"),
            ("https://a.io/repo#:", "git:https://a.io/repo"),
            ("https://a.io/repo#main:", "git:https://a.io/repo#main"),
            ("https://a.io/repo#main:/a//./b/../c/", "git:https://a.io/repo#main:a/c"),
            ("https://a.io/repo#v1:a:b#c", "git:https://a.io/repo#v1:a:b#c"),
        ] {
            assert_eq!(text.parse::<GitLocation>().unwrap().to_string(), clean);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        use GitLocationError as E;
        for (text, error) in [
            ("", E::NotUrl),
            ("a.io/repo", E::NotUrl),
            ("file:///repo", E::NotUrl),
            ("ssh://a.io/repo", E::NotUrl),
            ("https://a.io", E::NotUrl),
            ("https://a.io/#main", E::NotUrl),
            ("https://robot@a.io/repo", E::Secret),
            ("https://robot:hunter2@a.io/repo", E::Secret),
            ("https://a.io/repo?token=hunter2", E::Secret),
            ("https://a.io/repo#-x", E::Reference),
            ("https://a.io/repo#a..b", E::Reference),
            ("https://a.io/repo#a b", E::Reference),
            ("https://a.io/repo#a@{1}", E::Reference),
            ("https://a.io/repo#/a", E::Reference),
            ("https://a.io/repo#a.lock", E::Reference),
            ("https://a.io/repo#HEAD~1", E::Reference),
            ("https://a.io/repo#a\nb", E::Reference),
            ("https://a.io/repo#main:../b", E::Outside),
            ("https://a.io/repo#main:a\u{1b}", E::Unprintable),
        ] {
            assert_eq!(text.parse::<GitLocation>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn commit_is_pinned_and_revision_depends_on_folder() {
        let parse = |text: String| text.parse::<GitLocation>().unwrap();
        let upper = parse(format!("https://a.io/repo#{}", COMMIT.to_uppercase()));
        assert_eq!(upper.reference(), Some(COMMIT));
        assert_eq!(upper.pinned(), Some(&upper.revision(COMMIT)));
        let part = parse(format!("https://a.io/repo#{COMMIT}:a"));
        assert_ne!(part.pinned(), upper.pinned());
        assert_eq!(parse("https://a.io/repo#main".to_owned()).pinned(), None);
        assert_eq!(parse(format!("https://a.io/repo#{}", &COMMIT[1..])).pinned(), None);
    }
}
