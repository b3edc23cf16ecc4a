//! References of images: a registry, a repository, and a tag or a digest.

use std::fmt;

use crate::is_lower_alphanumeric;

/// Image reference in its parts. It is not validated: the registry refuses an invalid one.
///
/// `oci_client::Reference` refuses what this takes. The references in catalogs are foreign, and one
/// of them that is invalid must neither fail the catalog nor be left out of a list of images.
///
/// ```
/// use model::ImageReference;
///
/// let image = ImageReference::new("nginx");
/// assert_eq!((image.registry.as_str(), image.version()), ("docker.io", "latest"));
/// assert_eq!(ImageReference::new("quay.io/a/b:v1@sha256:00").to_string(), "quay.io/a/b@sha256:00");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageReference {
    /// Host of the registry, with its port if there is one.
    pub registry: String,
    /// Repository in the registry, for example `library/nginx`.
    pub repository: String,
    /// Tag, if there is one.
    pub tag: Option<String>,
    /// Digest as `algorithm:hex`, if the reference is pinned to one. It decides, whatever the tag.
    pub digest: Option<String>,
}

impl ImageReference {
    /// Splits a reference by the rules of distribution's `reference.ParseDockerRef`: the default
    /// registry is Docker Hub, the default tag `latest`, and a digest replaces the tag.
    pub fn new(text: &str) -> Self {
        // `docker://` names the transport in skopeo and podman and is not part of the reference.
        let mut reference = Self::as_written(text.trim().trim_start_matches("docker://"));
        if reference.digest.is_some() {
            reference.tag = None;
        } else {
            reference.tag.get_or_insert_with(|| "latest".to_owned());
        }
        reference
    }

    /// Splits a reference and adds the registry that a short one leaves out
    /// (distribution/reference, "normalize.go").
    pub fn as_written(text: &str) -> Self {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            // A colon before a slash belongs to the port of the registry.
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        let (registry, repository) = match name.split_once('/') {
            // As Docker does: the first component is a registry only if it looks like a host.
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => {
                (host, rest.to_owned())
            }
            Some(_) => ("docker.io", name.to_owned()),
            None => ("docker.io", format!("library/{name}")),
        };
        Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(ToOwned::to_owned),
            digest: digest.map(ToOwned::to_owned),
        }
    }

    /// Returns the registry and the repository, without tag and digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Returns the digest, else the tag, as podman and docker complete a reference without either.
    pub fn version(&self) -> &str {
        let version = self.digest.as_deref().or(self.tag.as_deref());
        version.unwrap_or("latest")
    }

    /// Returns true for the host of a registry with its port, if it has one
    /// (distribution/reference, "regexp.go").
    pub fn is_host(text: &str) -> bool {
        match text.split_once(':') {
            Some((name, port)) => is_domain(name) && is_port(port),
            None => is_domain(text),
        }
    }

    /// Returns true for a part of a repository: lower-case letters and digits, with `.`, `_`, `__`
    /// or dashes between them.
    pub fn is_component(text: &str) -> bool {
        let ends = text.starts_with(is_lower_alphanumeric) && text.ends_with(is_lower_alphanumeric);
        let mut separators = text.split(is_lower_alphanumeric);
        ends && separators.all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
    }

    /// Returns true for a tag: at most 128 letters, digits and `_`, with `.` and `-` after the
    /// first.
    pub fn is_tag(text: &str) -> bool {
        if text.is_empty() || text.len() > 128 || text.starts_with(['.', '-']) {
            return false;
        }
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    }
}

fn is_domain(name: &str) -> bool {
    name.split('.').all(|label| {
        let has_hyphen_at_end = label.starts_with('-') || label.ends_with('-');
        !label.is_empty()
            && !has_hyphen_at_end
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Prints the name with its tag and digest.
impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("quay.io/a/b:v1", "quay.io/a/b:v1", "quay.io/a/b:v1")]
    #[case(
        "quay.io/a/b@sha256:00",
        "quay.io/a/b@sha256:00",
        "quay.io/a/b@sha256:00"
    )]
    #[case(
        "quay.io/a/b:v1@sha256:00",
        "quay.io/a/b:v1@sha256:00",
        "quay.io/a/b@sha256:00"
    )]
    #[case("quay.io/a/b", "quay.io/a/b", "quay.io/a/b:latest")]
    #[case("localhost:5000/b", "localhost:5000/b", "localhost:5000/b:latest")]
    #[case("host:5000/b:v1", "host:5000/b:v1", "host:5000/b:v1")]
    #[case("localhost/b:1", "localhost/b:1", "localhost/b:1")]
    #[case("a/b:1", "docker.io/a/b:1", "docker.io/a/b:1")]
    #[case("nginx", "docker.io/library/nginx", "docker.io/library/nginx:latest")]
    fn image_reference_adds_the_registry_and_then_the_default_tag(
        #[case] text: &str,
        #[case] as_written: &str,
        #[case] complete: &str,
    ) {
        assert_eq!(ImageReference::as_written(text).to_string(), as_written);
        assert_eq!(
            ImageReference::new(&format!(" docker://{text} ")).to_string(),
            complete
        );
        assert_eq!(ImageReference::new(text).to_string(), complete);
    }

    proptest::proptest! {
        #[test]
        fn image_reference_never_panics(text in "\\PC*") {
            let _ = ImageReference::new(&text).to_string();
        }
    }
}
