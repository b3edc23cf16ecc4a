use std::{
    fs,
    path::{Path, PathBuf},
};

use testkit::{Image, ImageBuilder, Layer};

use super::cargo;

/// Number of blobs of one image: the layer, a configuration and a manifest for each of four platforms, the index.
pub(crate) const IMAGE_BLOBS: u64 = 1 + 4 + 4 + 1;

/// Returns the FBC folder of `v1` or `v2` of the example catalog.
pub(crate) fn folder(version: &str) -> PathBuf {
    cargo::root().join("tests/catalogs").join(version)
}

/// Returns the OCI layout of the demo, which holds both versions.
pub(crate) fn example_layout() -> PathBuf {
    cargo::root().join("functions/local/example")
}

/// Files with their paths below the FBC root.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Returns all files of a folder in the order of their paths.
pub(crate) fn files(folder: &Path) -> Files {
    let mut found = Vec::new();
    list(folder, folder, &mut found);
    found.sort();
    found
}

fn list(root: &Path, folder: &Path, found: &mut Files) {
    for entry in fs::read_dir(folder).expect("the folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(root, &path, found);
        } else {
            let name = path
                .strip_prefix(root)
                .expect("listed below the root")
                .display()
                .to_string();
            found.push((name, fs::read(&path).expect("the file can be read")));
        }
    }
}

/// Builds an image with these files under `/configs`.
pub(crate) fn image(files: &[(String, Vec<u8>)]) -> Image {
    let layer = files.iter().fold(Layer::new().dir("configs"), |layer, (path, bytes)| {
        layer.file(&format!("configs/{path}"), bytes)
    });
    ImageBuilder::catalog("/configs").layer(layer).build()
}

/// Returns path and content of a file with one package of `bundles` bundles.
pub(crate) fn package(name: &str, bundles: usize) -> (String, Vec<u8>) {
    let mut text = format!("schema: olm.package\nname: {name}\ndefaultChannel: stable\n");
    for version in 0..bundles {
        text.push_str(&format!(
            "---\nschema: olm.bundle\nname: {name}.v{version}.0.0\npackage: {name}\n"
        ));
    }
    (format!("{name}/catalog.yaml"), text.into_bytes())
}
