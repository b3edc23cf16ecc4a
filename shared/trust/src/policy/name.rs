use std::fmt;

/// Image name in policies and signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// Host and path of the repository: `HOST[:PORT]/REPOSITORY`.
    pub repository: String,
    /// Tag, if any. `latest` is written out.
    pub tag: Option<String>,
    /// Digest, if the name is pinned to one.
    pub digest: Option<String>,
}

impl ImageName {
    /// Parses a name and completes short ones as Docker does (distribution/reference, "normalize.go").
    pub(crate) fn parse(text: &str) -> Self {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag.to_owned())),
            _ => (name, None),
        };
        Self {
            repository: complete(name),
            tag,
            digest,
        }
    }

    /// Returns the host with its port.
    pub(crate) fn host(&self) -> &str {
        self.repository.split('/').next().unwrap_or_default()
    }
}

/// Prints the name with its tag and digest.
impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

fn complete(name: &str) -> String {
    let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
    match name.split_once('/') {
        Some((first, _)) if is_host(first) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_completes_names_like_docker() {
        for (text, expected) in [
            ("busybox", "docker.io/library/busybox"),
            ("ns/image:v1", "docker.io/ns/image:v1"),
            ("quay.io/ns/image", "quay.io/ns/image"),
            ("host:5000/image:v1", "host:5000/image:v1"),
            ("host:5000/image", "host:5000/image"),
            ("localhost/image:v1@sha256:00", "localhost/image:v1@sha256:00"),
        ] {
            assert_eq!(ImageName::parse(text).to_string(), expected);
        }
        assert_eq!(ImageName::parse("host:5000/a/b:v1").host(), "host:5000");
    }
}
