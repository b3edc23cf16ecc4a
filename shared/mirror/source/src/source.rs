//! The source of a catalog.
//!
//! A new kind of source is a variant of [`Source`] with its prefix in `FromStr` and `Display`, a
//! module that resolves and reads it, and an arm in each of the three methods of
//! [`Sources`](crate::Sources).

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::ImageReference;
use model::text::{line, value_without_secrets};
use oci::Digest;
use oci_client::Reference;

use crate::{ArchiveLocation, GitLocation, location::is_web_url};

/// Maximum length of a repository's name in the distribution specification.
const MAX_NAME_BYTES: usize = 255;

/// The source of a catalog, as a user writes it.
///
/// ```
/// use source::Source;
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

    /// Returns the path on this machine that the source names.
    pub fn local_path(&self) -> Option<&Path> {
        match self {
            Self::OciLayout { dir, .. } => Some(dir),
            Self::Dir(path) => Some(path),
            Self::Registry { .. } | Self::Archive(_) | Self::Git(_) => None,
        }
    }

    /// Parses a source of a command line, where a folder needs no scheme: an image layout, or else
    /// a folder of FBC files.
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

    /// Returns the digest that the source is pinned to. A pinned source never changes, so it need
    /// not be polled.
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
            return Err(SourceError(
                "the source is empty: write registry/repo:tag, https://HOST/PATH.tar.gz, git:https://HOST/PATH#REF:PATH, \
                 oci:DIR[:TAG] or dir:PATH"
                    .to_owned(),
            ));
        }
        if let Some(path) = text.strip_prefix("dir:") {
            return Ok(Self::Dir(folder(path, text)?));
        }
        if let Some(rest) = text.strip_prefix("oci:") {
            return layout(rest, text);
        }
        if is_git(text) {
            // Other forms than `git:` are not URLs of the web, with their scheme or without.
            let url = text.strip_prefix("git:").unwrap_or_default();
            let kind = "a git repository that can be read";
            return match GitLocation::parse(url) {
                Ok(location) => Ok(Self::Git(location)),
                Err(what) => Err(SourceError::not_a(kind, text, what)),
            };
        }
        if is_web_url(text) {
            return match ArchiveLocation::parse(text) {
                Ok(location) => Ok(Self::Archive(location)),
                Err(what) => Err(SourceError::not_a("the URL of an archive", text, what)),
            };
        }
        registry(text.strip_prefix("docker://").unwrap_or(text))
    }
}

impl SourceError {
    /// Reports a URL that is not of this kind.
    fn not_a(kind: &str, text: &str, what: &str) -> Self {
        Self(format!("`{}` is not {kind}: {what}", shown(text)))
    }
}

fn folder(path: &str, text: &str) -> Result<PathBuf, SourceError> {
    if path.is_empty() {
        return Err(SourceError(format!(
            "`{}` names no folder: write oci:DIR[:TAG] or dir:PATH",
            shown(text)
        )));
    }
    Ok(PathBuf::from(path))
}

fn layout(rest: &str, text: &str) -> Result<Source, SourceError> {
    let (dir, tag) = match rest.rsplit_once(':') {
        Some((dir, tag)) if has_tag(rest) => (dir, tag),
        _ => (rest, ""),
    };
    let dir = folder(dir, text)?;
    let tag = match tag {
        "" => None,
        tag => Some(tag.to_owned()),
    };
    Ok(Source::OciLayout { dir, tag })
}

/// Returns true for a registry on a host of this name, with a port. Such references were valid
/// before the scheme was.
fn is_port_of(text: &str, host: &str) -> bool {
    let rest = text.strip_prefix(host);
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(':')) else {
        return false;
    };
    let port = rest.split('/').next().unwrap_or_default();
    port.parse::<u16>().is_ok()
}

/// Returns true for the URL of a git repository, in the forms that git and other tools have for it.
fn is_git(text: &str) -> bool {
    for scheme in ["git:", "git+https:", "git+ssh:", "ssh:", "git@"] {
        let host = scheme.trim_end_matches(':');
        if text.starts_with(scheme) && !is_port_of(text, host) {
            return true;
        }
    }
    false
}

/// Longest text of a source that an error shows, in characters.
const SHOWN_CHARS: usize = 1000;

/// Returns the text of a source for an error. It may come from a catalog or hold a password.
fn shown(text: &str) -> String {
    line(&value_without_secrets(text), SHOWN_CHARS)
}

/// Returns true if the text after the last colon is a tag or empty. With a slash in it, it belongs
/// to a folder.
fn has_tag(rest: &str) -> bool {
    rest.rsplit_once(':')
        .is_some_and(|(_, tag)| !tag.contains('/'))
}

/// Returns true for a registry on a host named `dir` or `oci`, which needs `docker://` in front.
fn is_scheme(registry: &str) -> bool {
    registry.starts_with("dir:") || registry.starts_with("oci:")
}

fn registry(text: &str) -> Result<Source, SourceError> {
    if text.contains("://") {
        return Err(SourceError(format!(
            "`{}` has an unknown scheme: write docker://, https://, git:, oci: or dir:, or no scheme at all",
            shown(text)
        )));
    }
    let shown = shown(text);
    let refused = |problem: String| Err(SourceError(format!("`{shown}` {problem}")));
    if text.starts_with(['.', '/', '~']) {
        return refused(format!(
            "is a path: write dir:{shown} for a folder of catalog files, oci:{shown} for an image layout"
        ));
    }
    let (host, _) = text.split_once('/').unwrap_or_default();
    if !host.contains(['.', ':']) && host != "localhost" {
        return refused(format!(
            "names no registry: write it out, such as quay.io/{shown} or docker.io/{shown}, or dir:{shown} for a folder"
        ));
    }
    let image = ImageReference::as_written(text);
    let Ok(pinned) = image.digest.as_deref().map(str::parse).transpose() else {
        return refused(
            "has a malformed digest: write sha256:<64 hex digits in lower case>".into(),
        );
    };
    if let Some(part) = malformed_part(&image) {
        return refused(format!("is not an image reference: {part}"));
    }
    let (host, name) = docker_hub(&image.registry, &image.repository);
    let reference = match (image.tag, image.digest) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(host, name, tag, digest),
        (None, Some(digest)) => Reference::with_digest(host, name, digest),
        (Some(tag), None) => Reference::with_tag(host, name, tag),
        (None, None) => {
            return refused(format!(
                "has neither tag nor digest: add one, such as {shown}:latest"
            ));
        }
    };
    Ok(Source::Registry { reference, pinned })
}

/// Returns the part of a reference that is malformed, except for its digest.
// The regular expression that `oci-client` has for references takes 15 MB and 50 ms of CPU to
// compile, more than a whole poll of an unchanged catalog.
fn malformed_part(image: &ImageReference) -> Option<&'static str> {
    let host = &image.registry;
    let is_port = match host.split_once(':') {
        Some((_, port)) => port.parse::<u16>().is_ok(),
        None => true,
    };
    if !is_port || !ImageReference::is_host(host) {
        return Some("its host is malformed");
    }
    let name = &image.repository;
    if name.len() > MAX_NAME_BYTES || !name.split('/').all(ImageReference::is_component) {
        return Some(
            "its repository may hold only lower case letters, digits and single separators",
        );
    }
    match &image.tag {
        Some(tag) if !ImageReference::is_tag(tag) => Some("its tag is malformed"),
        _ => None,
    }
}

/// Applies the special names of Docker Hub: `index.docker.io` is its old name, and official images
/// are in `library`.
fn docker_hub(host: &str, name: &str) -> (String, String) {
    match host {
        "docker.io" | "index.docker.io" if !name.contains('/') => {
            ("docker.io".to_owned(), format!("library/{name}"))
        }
        "index.docker.io" => ("docker.io".to_owned(), name.to_owned()),
        _ => (host.to_owned(), name.to_owned()),
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { reference, .. } if is_scheme(reference.registry()) => {
                write!(f, "docker://{reference}")
            }
            Self::Registry { reference, .. } => write!(f, "{reference}"),
            Self::OciLayout {
                dir,
                tag: Some(tag),
            } => write!(f, "oci:{}:{tag}", dir.display()),
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
mod tests;
