//! The grammar of registry references.
//!
//! Distribution has a regular expression for it. Compiling that takes 15 MB and 50 ms of CPU, more than a whole poll of an
//! unchanged catalog, so the grammar is written out here.

use model::ImageReference;

/// Maximum length of a repository's name in the distribution specification.
const MAX_NAME_BYTES: usize = 255;

/// Maximum length of a tag in the distribution specification.
const MAX_TAG_BYTES: usize = 128;

/// Returns the reference if all parts but the digest, which the caller has checked, are well-formed. The error names the wrong
/// part.
pub(crate) fn checked(mut reference: ImageReference) -> Result<ImageReference, &'static str> {
    check(is_host(&reference.registry), "its host is malformed")?;
    let name = &mut reference.repository;
    check(
        name.len() <= MAX_NAME_BYTES && name.split('/').all(is_component),
        "its repository may hold only lower case letters, digits and single separators",
    )?;
    check(reference.tag.as_deref().is_none_or(is_tag), "its tag is malformed")?;
    // Special names of Docker Hub: `index.docker.io` is its old name, and official images are in `library`.
    if reference.registry == "index.docker.io" {
        reference.registry = "docker.io".to_owned();
    }
    if reference.registry == "docker.io" && !name.contains('/') {
        name.insert_str(0, "library/");
    }
    Ok(reference)
}

fn check(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    name.split('.').all(label) && port.parse::<u16>().is_ok()
}

/// Returns true for words of lower case letters and digits, joined by one dot, one or two underscores, or any dashes.
fn is_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = component.split(is_word).filter(|separator| !separator.is_empty());
    component.starts_with(is_word)
        && component.ends_with(is_word)
        && separators
            .into_iter()
            .all(|s| matches!(s, "." | "_" | "__") || s.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= MAX_TAG_BYTES
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows are facts about the regular expression of distribution (`reference/regexp.go`).
    #[test]
    fn checked_reference_follows_distribution() {
        for (text, whole) in [
            ("quay.io/a:v1", Some("quay.io/a:v1")),
            ("quay.io/a/b/c:v1.2-x_Y", Some("quay.io/a/b/c:v1.2-x_Y")),
            ("docker.io/a:v1", Some("docker.io/library/a:v1")),
            ("index.docker.io/a/b:v1", Some("docker.io/a/b:v1")),
            ("localhost:5000/a__b.c---d:v1", Some("localhost:5000/a__b.c---d:v1")),
            ("QUAY.io/a:1", Some("QUAY.io/a:1")),
            ("quay.io/A:v1", None),
            ("quay.io/a..b:v1", None),
            ("quay.io/a___b:v1", None),
            ("quay.io/a._b:v1", None),
            ("quay.io/-a:v1", None),
            ("quay.io/a-:v1", None),
            ("quay.io/a//b:v1", None),
            ("quay.io/a/:v1", None),
            ("quay.io/a:", None),
            ("quay.io/a:.v1", None),
            ("quay.io/a:v1:v2", None),
            ("quay.io/a:b/c", None),
            ("quay.io/a:v 1", None),
            ("-quay.io/a:v1", None),
            ("quay..io/a:v1", None),
            ("quay.io:x/a:v1", None),
            ("quay.io/\u{e9}:v1", None),
            ("quay.io/../etc:v1", None),
        ] {
            let found = checked(ImageReference::as_written(text)).ok();
            assert_eq!(found.map(|found| found.to_string()).as_deref(), whole, "{text}");
        }
    }
}
