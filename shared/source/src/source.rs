//! The source of a catalog.
//!
//! A new kind of source is a variant of [`Source`] with its prefix in `FromStr` and `Display`, a module that resolves and
//! reads it, and an arm in each of the three methods of [`Sources`](crate::Sources).

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use oci::Digest;
use oci_client::Reference;

use crate::grammar;
use crate::location::{ArchiveLocation, GitLocation, LocationError, is_web_url};

/// The source of a catalog, as a user writes it.
///
/// ```
/// use catalog_mirror_source::Source;
///
/// let source: Source = "docker://quay.io/operatorhubio/catalog:latest".parse().unwrap();
/// assert_eq!(source.to_string(), "quay.io/operatorhubio/catalog:latest");
/// assert!("oci:images/catalog:v1".parse::<Source>().is_ok());
/// assert!("catalog:latest".parse::<Source>().is_err(), "the registry is missing");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `registry/repo:tag` or `registry/repo@sha256:...`, with an optional `docker://` in front.
    Registry {
        /// Registry, repository, and tag or digest.
        reference: Reference,
        /// The digest, if the reference is pinned to one.
        pinned: Option<Digest>,
    },
    /// `oci:DIR[:TAG]`, an OCI image layout on disk.
    OciLayout {
        /// Folder of the layout, which holds `index.json`.
        dir: PathBuf,
        /// Tag of the image. Optional for a layout with one image.
        tag: Option<String>,
    },
    /// `https://HOST/PATH.tar.gz[#PATH]`, an archive on a web server.
    Archive(ArchiveLocation),
    /// `git:https://HOST/PATH[#REF[:PATH]]`, a folder in a git repository. It is read by git(1).
    Git(GitLocation),
    /// `dir:PATH`, a folder of FBC files.
    Dir(PathBuf),
}

/// The reason for which a text is not a source, and what to write instead.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SourceError(String);

impl Source {
    /// Returns the source with its path, if it has one, relative to `folder`.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Dir(path) => Self::Dir(folder.join(path)),
            Self::OciLayout { dir, tag } => Self::OciLayout {
                dir: folder.join(dir),
                tag,
            },
            remote @ (Self::Registry { .. } | Self::Archive(_) | Self::Git(_)) => remote,
        }
    }

    /// Parses a source of a command line, where a folder needs no scheme: an image layout, or else a folder of FBC files.
    ///
    /// # Errors
    /// A text that is neither a folder nor a source.
    pub fn of_argument(text: &str) -> Result<Self, SourceError> {
        let dir = PathBuf::from(text);
        if !dir.is_dir() {
            text.parse()
        } else if dir.join("oci-layout").exists() {
            Ok(Self::OciLayout { dir, tag: None })
        } else {
            Ok(Self::Dir(dir))
        }
    }

    /// Returns the digest that the source is pinned to. A pinned source never changes, so it need not be polled.
    pub fn pinned(&self) -> Option<&Digest> {
        match self {
            Self::Registry { pinned, .. } => pinned.as_ref(),
            Self::Git(location) => location.pinned.as_ref(),
            Self::OciLayout { .. } | Self::Archive(_) | Self::Dir(_) => None,
        }
    }
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        if text.is_empty() {
            Err(SourceError::new(
                "the source is empty: write registry/repo:tag, https://HOST/PATH.tar.gz, git:https://HOST/PATH#REF:PATH, \
                 oci:DIR[:TAG] or dir:PATH",
            ))
        } else if let Some(path) = text.strip_prefix("dir:") {
            Ok(Self::Dir(folder(path, text)?))
        } else if let Some(rest) = text.strip_prefix("oci:") {
            layout(rest, text)
        } else if text.starts_with("mirror:") && !is_port_of(text, "mirror") {
            // Earlier versions could read the catalogs of other mirrors.
            Err(SourceError::new(
                "a mirror is not a source: copy it with `sync`, or name it as an image, such as docker://HOST/NAME:latest",
            ))
        } else if is_git(text) {
            // Other forms than `git:` are not URLs of the web, with their scheme or without.
            let location = text.strip_prefix("git:").unwrap_or_default().parse();
            let refused = SourceError::location("a git repository that can be read", text);
            location.map(Self::Git).map_err(refused)
        } else if is_web_url(text) {
            let refused = SourceError::location("the URL of an archive", text);
            text.parse().map(Self::Archive).map_err(refused)
        } else {
            registry(text.strip_prefix("docker://").unwrap_or(text))
        }
    }
}

impl SourceError {
    fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    /// Reports a URL that is not of this kind.
    fn location(kind: &str, text: &str) -> impl FnOnce(LocationError) -> Self {
        move |what| Self(format!("`{}` is not {kind}: {what}", without_secrets(text)))
    }
}

fn folder(path: &str, text: &str) -> Result<PathBuf, SourceError> {
    if path.is_empty() {
        return Err(SourceError(format!(
            "`{text}` names no folder: write oci:DIR[:TAG] or dir:PATH"
        )));
    }
    Ok(PathBuf::from(path))
}

fn layout(rest: &str, text: &str) -> Result<Source, SourceError> {
    let (dir, tag) = match rest.rsplit_once(':') {
        Some((dir, tag)) if has_tag(rest) => (dir, Some(tag).filter(|tag| !tag.is_empty())),
        _ => (rest, None),
    };
    Ok(Source::OciLayout {
        dir: folder(dir, text)?,
        tag: tag.map(ToOwned::to_owned),
    })
}

/// Returns true for a registry on a host of this name, with a port. Such references were valid before the scheme was.
fn is_port_of(text: &str, host: &str) -> bool {
    let rest = text.strip_prefix(host).and_then(|rest| rest.strip_prefix(':'));
    let port = rest.and_then(|rest| rest.split('/').next());
    port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// Returns true for the URL of a git repository, in the forms that git and other tools have for it.
fn is_git(text: &str) -> bool {
    let is_scheme = |scheme: &&str| text.starts_with(*scheme) && !is_port_of(text, scheme.trim_end_matches(':'));
    ["git:", "git+https:", "git+ssh:", "ssh:", "git@"].iter().any(is_scheme)
}

/// Returns a URL without the parts that can hold a secret.
fn without_secrets(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.split_once("://") {
        // The last @, because a password may hold one too.
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, rest)| rest)),
        None => text.to_owned(),
    }
}

/// Returns true if the text after the last colon is a tag or empty. With a slash in it, it belongs to a folder.
fn has_tag(rest: &str) -> bool {
    rest.rsplit_once(':').is_some_and(|(_, tag)| !tag.contains('/'))
}

/// Returns true for a registry on a host named `dir` or `oci`, which needs `docker://` in front.
fn is_scheme(registry: &str) -> bool {
    registry.starts_with("dir:") || registry.starts_with("oci:")
}

fn registry(text: &str) -> Result<Source, SourceError> {
    let refused = |problem: String| Err(SourceError(format!("`{text}` {problem}")));
    if text.contains("://") {
        return refused(
            "has an unknown scheme: write docker://, https://, git:, oci: or dir:, or no scheme at all".into(),
        );
    }
    if text.starts_with(['.', '/', '~']) {
        return refused(format!(
            "is a path: write dir:{text} for a folder of catalog files, oci:{text} for an image layout"
        ));
    }
    let (host, path) = text.split_once('/').unwrap_or(("", text));
    if !(host.contains(['.', ':']) || host == "localhost") {
        return refused(format!(
            "names no registry: write it out, such as quay.io/{text} or docker.io/{text}, or dir:{text} for a folder"
        ));
    }
    if !path.contains([':', '@']) {
        return refused(format!("has neither tag nor digest: add one, such as {text}:latest"));
    }
    let (path, digest) = match path.split_once('@') {
        Some((path, digest)) => (path, Some(digest)),
        None => (path, None),
    };
    let Ok(pinned) = digest.map(str::parse).transpose() else {
        return refused("has a malformed digest: write sha256:<64 hex digits in lower case>".into());
    };
    match grammar::reference(host, path, digest) {
        Ok(reference) => Ok(Source::Registry { reference, pinned }),
        Err(what) => refused(format!("is not an image reference: {what}")),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { reference, .. } if is_scheme(reference.registry()) => write!(f, "docker://{reference}"),
            Self::Registry { reference, .. } => write!(f, "{reference}"),
            Self::OciLayout { dir, tag: Some(tag) } => write!(f, "oci:{}:{tag}", dir.display()),
            // A colon at the end, so that a colon in the folder's name does not start a tag.
            Self::OciLayout { dir, tag: None } if has_tag(&dir.to_string_lossy()) => {
                write!(f, "oci:{}:", dir.display())
            }
            Self::OciLayout { dir, tag: None } => write!(f, "oci:{}", dir.display()),
            Self::Git(location) => write!(f, "{location}"),
            Self::Archive(location) => write!(f, "{location}"),
            Self::Dir(path) => write!(f, "dir:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn display_of_source_is_its_text() {
        let pinned = format!("quay.io/ns/cat@sha256:{HEX}");
        let both = format!("quay.io/ns/cat:v1@sha256:{HEX}");
        for text in [
            "quay.io/operatorhubio/catalog:latest",
            "localhost:5000/cat:v4.20",
            "127.0.0.1:5000/a/b/c:v1",
            "oci:some/dir",
            "oci:/some/dir:v1",
            "oci:a:b/dir",
            "oci:dir:with-colon:",
            "oci:dir::",
            "dir:/configs",
            "https://example.com/catalog.tar.gz",
            "https://example.com/catalog.tar.gz#configs/a",
            "http://localhost:8080/catalog.tar",
            "git:https://example.com/repo.git#main:configs/a",
            "mirror:5000/cat:v1",
            "git:5000/cat:v1",
            "ssh:5000/cat:v1",
            "docker://dir:5000/cat:v1",
            "docker://oci:5000/cat:v1",
            &pinned,
            &both,
        ] {
            assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn pinned_returns_digest_but_not_tag() {
        let pinned: Source = format!("docker://quay.io/cat:v1@sha256:{HEX}").parse().unwrap();
        assert_eq!(pinned.pinned().unwrap().hex(), HEX);
        assert_eq!("quay.io/cat:v1".parse::<Source>().unwrap().pinned(), None);
    }

    #[test]
    fn parse_error_says_what_to_write() {
        for (text, hint) in [
            ("", "registry/repo:tag"),
            ("catalog:latest", "quay.io/catalog:latest"),
            ("./configs", "dir:./configs"),
            ("/layout:v1", "oci:/layout:v1"),
            ("ns/catalog:latest", "docker.io/ns/catalog:latest"),
            ("quay.io/ns/catalog", "quay.io/ns/catalog:latest"),
            ("git:ssh://a.io/repo#main:configs", "git:https://HOST/PATH#REF:PATH"),
            ("git+https://a.io/repo", "git:https://HOST/PATH#REF:PATH"),
            ("git+ssh://a.io/repo", "git:https://HOST/PATH#REF:PATH"),
            ("git://a.io/repo", "git:https://HOST/PATH#REF:PATH"),
            ("ssh://git@a.io/repo", "git:https://HOST/PATH#REF:PATH"),
            ("git@a.io:owner/repo", "git:https://HOST/PATH#REF:PATH"),
            ("git:https://a.io/repo#main:../configs", "leads out of it"),
            ("dir:", "dir:PATH"),
            ("oci::tag", "oci:DIR"),
            ("ftp://quay.io/ns/cat:v1", "docker://"),
            ("https://quay.io/ns/cat:v1", "docker://"),
            ("quay.io/ns/cat@sha256:1234", "malformed digest"),
            ("mirror:https://a.io/catalogs/demo", "docker://HOST/NAME"),
            ("quay.io/NS/cat:v1", "not an image reference"),
            (
                "quay.io/ns/cat:v1@md5:d41d8cd98f00b204e9800998ecf8427e",
                "malformed digest",
            ),
        ] {
            let error = text.parse::<Source>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn error_of_archive_repeats_no_secret() {
        for text in [
            "https://robot:hunter2@a.io/c.tar",
            "https://robot:hunter2@x@a.io/c.tar",
            "https://a.io/c.tar?sig=hunter2",
            "git:https://robot:hunter2@a.io/repo#main:configs",
            "mirror:https://robot:hunter2@a.io/catalogs/demo",
            "https://a.io/c.tar?sig=hunter2#a",
            "https://a.io:bad/c.tar?sig=hunter2",
            "https://robot:hunter2@:bad/c.tar",
        ] {
            let error = text.parse::<Source>().unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
