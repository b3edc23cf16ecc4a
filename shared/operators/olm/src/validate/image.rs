//! The grammar of image references, by the rules of `reference.ParseNormalizedNamed` of
//! go.podman.io/image v5.40.

use model::ImageReference;

/// Maximum length of registry and repository together, in bytes.
const NAME_MAX: usize = 255;

/// Returns the reason for which a text is not an image reference. A missing registry, tag or digest
/// is none.
pub(crate) fn reference_error(text: &str) -> Option<&'static str> {
    if is_hex(text, 64) {
        return Some("64 hexadecimal digits are the ID of an image");
    }
    let image = ImageReference::as_written(text);
    let registry = image.registry;
    let repository = image.repository;
    let name = match (registry.as_str(), repository.contains('/')) {
        ("docker.io" | "index.docker.io", false) => format!("docker.io/library/{repository}"),
        ("index.docker.io", true) => format!("docker.io/{repository}"),
        _ => format!("{registry}/{repository}"),
    };
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    let is_place = ImageReference::is_host(first) || ImageReference::is_component(first);
    if !is_place || !parts.all(ImageReference::is_component) {
        return Some("the registry or the repository is malformed");
    }
    if name.len() > NAME_MAX {
        return Some("registry and repository are longer than 255 characters");
    }
    if image.tag.is_some_and(|tag| !ImageReference::is_tag(&tag)) {
        return Some("the tag is malformed");
    }
    if image.digest.is_some_and(|digest| !is_digest(&digest)) {
        return Some("the digest is malformed");
    }
    None
}

fn is_digest(text: &str) -> bool {
    match text.split_once(':') {
        Some(("sha256", hex)) => is_hex(hex, 64),
        Some(("sha384", hex)) => is_hex(hex, 96),
        Some(("sha512", hex)) => is_hex(hex, 128),
        _ => false,
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn reference_error_accepts_grammar_of_distribution() {
        let accepted = "nginx quay.io/a/b:v1 Quay.io/a localhost:5000 localhost:5000/a a__b.c/d a.b_c/d q.io/a---b/c.d/e_f \
                        a/b:_tag.1-x";
        for text in accepted.split(' ') {
            assert_eq!(reference_error(text), None, "{text}");
            assert_eq!(
                reference_error(&format!("{text}@sha256:{HEX}")),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn reference_error_refuses_other_texts() {
        let refused = ",quay.io/,quay.io/a:,quay.io/A,quay.io/a:b:c,quay.io/a..b,quay.io/a___b,quay.io/a-,quay.io:x/a,-q.io/a,\
                       docker://quay.io/a,quay.io/a b,quay.io/a@sha256:00,quay.io/a@md5:d41d8cd98f00b204e9800998ecf8427e";
        for text in refused.split(',').chain([HEX]) {
            assert!(reference_error(text).is_some(), "{text}");
        }
    }

    #[test]
    fn name_and_tag_have_at_most_255_and_128_bytes() {
        let is_name = |length: usize| {
            reference_error(&"a".repeat(length - "docker.io/library/".len())).is_none()
        };
        let is_tag =
            |length: usize| reference_error(&format!("a:{}", "t".repeat(length))).is_none();
        assert_eq!([255, 256].map(is_name), [true, false]);
        assert_eq!([128, 129].map(is_tag), [true, false]);
    }
}
