use std::fmt;

/// Image reference in its parts, by the rules of distribution's `reference.ParseDockerRef`: the default registry is Docker
/// Hub, the default tag `latest`. With both tag and digest, the digest decides.
///
/// ```
/// use catalog_mirror_olm::Reference;
///
/// let image = Reference::new("nginx");
/// assert_eq!((image.registry.as_str(), image.version.as_str()), ("docker.io", "latest"));
/// assert_eq!(Reference::new("quay.io/a/b:v1@sha256:00").to_string(), "quay.io/a/b@sha256:00");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Host of the registry, with its port if there is one.
    pub registry: String,
    /// Repository in the registry, for example `library/nginx`.
    pub repository: String,
    /// Digest as `algorithm:hex`, else the tag.
    pub version: String,
    /// True if [`Self::version`] is a digest.
    pub is_digest: bool,
}

impl Reference {
    /// Splits a reference into its parts. It is not validated: the registry refuses an invalid one.
    pub fn new(text: &str) -> Self {
        // `docker://` names the transport in skopeo and podman and is not part of the reference.
        let text = text.trim().trim_start_matches("docker://");
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
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest.to_owned()),
            Some(_) => ("docker.io", name.to_owned()),
            None => ("docker.io", format!("library/{name}")),
        };
        Self {
            registry: registry.to_owned(),
            repository,
            version: digest.or(tag).unwrap_or("latest").to_owned(),
            is_digest: digest.is_some(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.is_digest { '@' } else { ':' };
        write!(f, "{}/{}{separator}{}", self.registry, self.repository, self.version)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("quay.io/a/b:v1", "quay.io/a/b:v1")]
    #[case("quay.io/a/b@sha256:00", "quay.io/a/b@sha256:00")]
    #[case("quay.io/a/b:v1@sha256:00", "quay.io/a/b@sha256:00")]
    #[case("quay.io/a/b", "quay.io/a/b:latest")]
    #[case("localhost:5000/b", "localhost:5000/b:latest")]
    #[case("localhost/b:1", "localhost/b:1")]
    #[case("a/b:1", "docker.io/a/b:1")]
    #[case("nginx", "docker.io/library/nginx:latest")]
    #[case(" docker://quay.io/a:1 ", "quay.io/a:1")]
    fn reference_adds_default_registry_and_tag(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Reference::new(text).to_string(), expected);
    }

    proptest::proptest! {
        #[test]
        fn reference_never_panics(text in "\\PC*") {
            let _ = Reference::new(&text).to_string();
        }
    }
}
