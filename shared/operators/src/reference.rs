use std::fmt;

/// An image reference in its parts, as bundles write them: without a registry it means Docker Hub, without tag and digest
/// `latest` (distribution's `reference.ParseDockerRef`). With both, the digest decides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Host and port of the registry.
    pub registry: String,
    /// The repository.
    pub repository: String,
    /// The digest as `algorithm:hex`, or else the tag.
    pub version: String,
    /// Whether [`Self::version`] is a digest.
    pub is_digest: bool,
}

impl Reference {
    /// Takes a reference apart. It is not checked: who uses it will refuse what is none.
    pub fn new(text: &str) -> Self {
        let text = text.trim().trim_start_matches("docker://");
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        let (registry, repository) = match name.split_once('/') {
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
    fn references_are_completed(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Reference::new(text).to_string(), expected);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = Reference::new(&text).to_string();
        }
    }
}
