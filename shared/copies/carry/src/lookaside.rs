//! Settings of the host that name places of simple signatures (containers-registries.d(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

use crate::CarriedImage;

/// Maximum size of a file of settings, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Folder of the settings of the whole host.
const SYSTEM_FOLDER: &str = "/etc/containers/registries.d";

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct SignatureSettings {
    default_docker: Option<SignaturePlace>,
    docker: BTreeMap<String, SignaturePlace>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SignaturePlace {
    lookaside: Option<String>,
    sigstore: Option<String>,
}

impl SignaturePlace {
    const fn is_read(&self) -> bool {
        self.lookaside.is_some() || self.sigstore.is_some()
    }
}

/// Returns the scopes of these images for which the host names a place of simple signatures. They
/// are not copied.
pub fn lookaside_scopes(images: &[CarriedImage]) -> BTreeSet<String> {
    match settings_folder() {
        Some(folder) => scopes_in(&folder, images),
        None => BTreeSet::new(),
    }
}

/// Returns the folder that skopeo would read.
fn settings_folder() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let own = home.map(|home| home.join(".config/containers/registries.d"));
    let folders = own.into_iter().chain([PathBuf::from(SYSTEM_FOLDER)]);
    let mut folders = folders.filter(|folder| folder.is_dir());
    folders.next()
}

fn scopes_in(folder: &Path, images: &[CarriedImage]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        // A file that cannot be read gives skopeo no place either.
        let Ok(bytes) = work::read_file(&path, FILE_BYTES_MAX) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        let Ok(settings) = serde_saphyr::from_str::<SignatureSettings>(&text) else {
            continue;
        };
        for (scope, place) in &settings.docker {
            let is_used = |image: &CarriedImage| {
                let rest = image.image.strip_prefix(scope.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']))
            };
            if place.is_read() && images.iter().any(is_used) {
                found.insert(scope.clone());
            }
        }
        let default = settings.default_docker.unwrap_or_default();
        if default.is_read() {
            found.insert("all registries".to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_found_if_an_image_lies_in_it_and_signatures_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = "docker:
  registry.redhat.io: {sigstore: https://a.example}
  quay.io/team: {lookaside: https://b.example}
  quay.io/te: {lookaside: https://b.example}
  ghcr.io: {lookaside-staging: file:///x}
  unused.example: {lookaside: https://c.example}
default-docker: {sigstore-staging: file:///y}
";
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        fs::write(folder.path().join("b.txt"), text.replace("ghcr", "x")).unwrap();
        fs::write(folder.path().join("broken.yaml"), "[").unwrap();
        let images = [
            "registry.redhat.io/a/b:1",
            "quay.io/team/c:1",
            "ghcr.io/d:1",
        ];
        let images = images.map(|image| CarriedImage {
            image: image.to_owned(),
            digest: String::new(),
            ..CarriedImage::default()
        });
        let found: Vec<String> = scopes_in(folder.path(), &images).into_iter().collect();
        assert_eq!(found, ["quay.io/team", "registry.redhat.io"]);
    }
}
