//! The grammar of registry references.
//!
//! `oci-client` has a regular expression for it. Compiling that takes 15 MB and 50 ms of CPU, more than a whole poll of an
//! unchanged catalog, so the grammar is written out.

use model::ImageReference;
use oci_client::Reference;

/// Maximum length of a repository's name in the distribution specification.
const MAX_NAME_BYTES: usize = 255;

/// Checks the parts of a reference, except for its digest. The error names the wrong part.
pub(crate) fn reference(image: ImageReference) -> Result<Reference, &'static str> {
    let (host, name) = (image.registry.as_str(), image.repository.as_str());
    let has_port = host.split_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok());
    check(has_port && ImageReference::is_host(host), "its host is malformed")?;
    check(
        name.len() <= MAX_NAME_BYTES && name.split('/').all(ImageReference::is_component),
        "its repository may hold only lower case letters, digits and single separators",
    )?;
    check(
        image.tag.as_deref().is_none_or(ImageReference::is_tag),
        "its tag is malformed",
    )?;
    let (host, name) = docker_hub(host, name);
    Ok(match (image.tag, image.digest) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(host, name, tag, digest),
        (None, Some(digest)) => Reference::with_digest(host, name, digest),
        (Some(tag), None) => Reference::with_tag(host, name, tag),
        (None, None) => return Err("it has neither tag nor digest"),
    })
}

/// Applies the special names of Docker Hub: `index.docker.io` is its old name, and official images are in `library`.
fn docker_hub(host: &str, name: &str) -> (String, String) {
    match host {
        "docker.io" | "index.docker.io" if !name.contains('/') => ("docker.io".to_owned(), format!("library/{name}")),
        "index.docker.io" => ("docker.io".to_owned(), name.to_owned()),
        _ => (host.to_owned(), name.to_owned()),
    }
}

fn check(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_accepts_what_oci_client_accepts() {
        let accepted_or_not = "quay.io/a:v1 quay.io/a/b/c:v1.2-x_Y docker.io/a:v1 index.docker.io/a/b:v1 \
             localhost:5000/a__b.c---d:v1 QUAY.io/a:1 quay.io/A:v1 quay.io/a..b:v1 quay.io/a___b:v1 quay.io/a._b:v1 \
             quay.io/-a:v1 quay.io/a-:v1 quay.io/a//b:v1 quay.io/a/:v1 quay.io/a: quay.io/a:.v1 quay.io/a:v1:v2 \
             -quay.io/a:v1 quay..io/a:v1 quay.io:x/a:v1 quay.io:+80/a:v1 quay.io/\u{e9}:v1 quay.io/../etc:v1";
        for text in accepted_or_not.split(' ').chain(["quay.io/a:v 1"]) {
            let ours = reference(ImageReference::as_written(text))
                .ok()
                .map(|reference| reference.whole());
            let theirs = text.parse::<Reference>().ok().map(|reference| reference.whole());
            assert_eq!(ours, theirs, "{text}");
        }
    }
}
