//! The grammar of image references, by the rules of `reference.ParseNormalizedNamed` of go.podman.io/image v5.40.

/// Maximum length of registry and repository together, in bytes.
const NAME_MAX: usize = 255;

/// Maximum length of a tag, in bytes.
const TAG_MAX: usize = 128;

/// Returns the reason for which a text is not an image reference. A missing registry, tag or digest is none.
pub(crate) fn reference_error(text: &str) -> Option<&'static str> {
    if text.len() == 64 && text.bytes().all(is_lower_hex) {
        return Some("64 hexadecimal digits are the ID of an image");
    }
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let full = with_defaults(name);
    let (name, tag) = match full.rsplit_once(':') {
        // A colon before a slash belongs to the port of the registry.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (full.as_str(), None),
    };
    if !is_name(name) {
        return Some("the registry or the repository is malformed");
    }
    if name.len() > NAME_MAX {
        return Some("registry and repository are longer than 255 characters");
    }
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("the tag is malformed");
    }
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("the digest is malformed");
    }
    None
}

/// Adds the default registry, and `library/` to its repositories without a slash.
fn with_defaults(name: &str) -> String {
    let (registry, rest) = match name.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
        _ => ("docker.io", name),
    };
    let registry = match registry {
        "index.docker.io" => "docker.io",
        registry => registry,
    };
    let library = match registry == "docker.io" && !rest.contains('/') {
        true => "library/",
        false => "",
    };
    format!("{registry}/{library}{rest}")
}

fn is_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let first = parts.next().is_some_and(|first| is_host(first) || is_component(first));
    first && parts.all(is_component)
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let ends = !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
        ends && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Returns true for a part of a repository: lower-case letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_component(text: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends = text.starts_with(is_alphanumeric) && text.ends_with(is_alphanumeric);
    let mut separators = text.split(is_alphanumeric);
    ends && separators
        .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first = text.starts_with(is_word);
    first && text.len() <= TAG_MAX && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

fn is_digest(text: &str) -> bool {
    let length = match text.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return false,
    };
    let hex = &text["sha256:".len()..];
    hex.len() == length && hex.bytes().all(is_lower_hex)
}

const fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[rstest]
    #[case("nginx")]
    #[case("quay.io/a/b:v1")]
    #[case("Quay.io/a")]
    #[case("localhost:5000")]
    #[case("localhost:5000/a")]
    #[case("a__b.c/d")]
    #[case("a.b_c/d")]
    #[case("q.io/a---b/c.d/e_f")]
    #[case("a/b:_tag.1-x")]
    fn reference_error_accepts_grammar_of_distribution(#[case] text: &str) {
        assert_eq!(reference_error(text), None);
        assert_eq!(reference_error(&format!("{text}@sha256:{HEX}")), None);
    }

    #[rstest]
    #[case("")]
    #[case("quay.io/")]
    #[case("quay.io/a:")]
    #[case("quay.io/A")]
    #[case("quay.io/a:b:c")]
    #[case("quay.io/a..b")]
    #[case("quay.io/a___b")]
    #[case("quay.io/a-")]
    #[case("quay.io:x/a")]
    #[case("-q.io/a")]
    #[case("docker://quay.io/a")]
    #[case("quay.io/a b")]
    #[case("quay.io/a@sha256:00")]
    #[case("quay.io/a@md5:d41d8cd98f00b204e9800998ecf8427e")]
    #[case(HEX)]
    fn reference_error_refuses_other_texts(#[case] text: &str) {
        assert!(reference_error(text).is_some());
    }

    #[rstest]
    #[case(255 - "docker.io/library/".len(), true)]
    #[case(256 - "docker.io/library/".len(), false)]
    fn name_has_at_most_255_bytes_with_defaults(#[case] length: usize, #[case] fits: bool) {
        assert_eq!(reference_error(&"a".repeat(length)).is_none(), fits);
    }

    #[rstest]
    #[case(128, true)]
    #[case(129, false)]
    fn tag_has_at_most_128_bytes(#[case] length: usize, #[case] fits: bool) {
        assert_eq!(reference_error(&format!("a:{}", "t".repeat(length))).is_none(), fits);
    }

    proptest::proptest! {
        #[test]
        fn reference_error_never_panics(text in "\\PC*") {
            let _ = reference_error(&text);
        }
    }
}
