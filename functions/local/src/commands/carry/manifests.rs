//! The folder of manifests: what clusters need to use a registry with catalogs and images.

use std::{collections::BTreeMap, path::Path};

use ::carry::{
    CarriedImage, ImageMirrors, ManifestTarget, TargetRegistry, catalog_source, cluster_catalog, replace_file,
};
use serde_json::json;

use crate::output::{say, yaml};

/// Writes the manifests of catalogs and the settings of nodes, and prints the names of the files.
pub(super) fn write_manifests(
    folder: &Path,
    namespace: &str,
    catalogs: &[ManifestTarget],
    images: &[CarriedImage],
    target: &TargetRegistry,
) -> anyhow::Result<()> {
    if target.is_plain {
        eprintln!("{}", TargetRegistry::plain_warning(&target.host));
    }
    let documents = catalogs.iter();
    let documents = documents.flat_map(|target| [cluster_catalog(target), catalog_source(target, namespace)]);
    // Verifiers look for what is attached to an image in the repository of the image.
    let mirrored = images.iter().filter(|image| !image.attached);
    let mirrors = ImageMirrors::new(target, mirrored.map(|image| image.image.as_str()), &say);
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
    for (name, text) in files {
        let path = folder.join(name);
        replace_file(&path, text.as_bytes())?;
        println!("wrote {}", path.display());
    }
    Ok(())
}
