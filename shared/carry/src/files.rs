//! The folder of manifests: what clusters need to use a registry with catalogs and images.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use crate::{CarriedImage, ImageMirrors, ManifestTarget, SayLine, TargetRegistry, catalog_source, cluster_catalog};

/// Returns the manifests of catalogs and the settings of nodes, each by its path in a folder. `say` is told what is left out.
///
/// # Errors
/// A value that YAML cannot hold.
pub fn cluster_files(
    namespace: &str,
    catalogs: &[ManifestTarget],
    images: &[CarriedImage],
    target: &TargetRegistry,
    say: SayLine<'_>,
) -> Result<BTreeMap<String, String>, serde_saphyr::ser::Error> {
    let documents = catalogs.iter();
    let documents = documents.flat_map(|target| [cluster_catalog(target), catalog_source(target, namespace)]);
    // Verifiers look for what is attached to an image in the repository of the image.
    let mirrored = images.iter().filter(|image| !image.attached);
    let mirrors = ImageMirrors::new(target, mirrored.map(|image| image.image.as_str()), say);
    let mut files = BTreeMap::from([
        ("catalogs.yaml".to_owned(), yaml(&documents.collect::<Vec<_>>())?),
        ("mirror-sets.yaml".to_owned(), yaml(&mirrors.manifests())?),
        ("registries.conf".to_owned(), mirrors.registries_conf()),
    ]);
    let hosts = mirrors.hosts_toml().into_iter();
    files.extend(hosts.map(|(host, text)| (format!("certs.d/{host}/hosts.toml"), text)));
    let signed = images.iter().filter(|image| image.attached);
    let signed = signed.map(|image| {
        (
            image.mirror_of_repository(target),
            json!({"use-sigstore-attachments": true}),
        )
    });
    let signed: serde_json::Map<_, _> = signed.collect();
    if !signed.is_empty() {
        // containers-registries.d(5)
        files.insert("registries.d.yaml".to_owned(), yaml(&[json!({"docker": signed})])?);
    }
    Ok(files)
}

/// Returns documents as YAML, separated by `---`.
///
/// # Errors
/// As [`cluster_files`].
pub fn yaml(documents: &[impl Serialize]) -> Result<String, serde_saphyr::ser::Error> {
    // No folded text: people search for digests with grep, so they must stay on one line.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = |document| serde_saphyr::to_string_with_options(document, options.clone());
    let texts: Result<Vec<String>, _> = documents.iter().map(text).collect();
    Ok(texts?.join("---\n"))
}
