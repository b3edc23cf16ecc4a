use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Image, ImageBuilder, Layer};

use super::cargo;

/// Number of blobs of one image: the layer, a configuration and a manifest for each of four
/// platforms, the index.
pub(crate) const IMAGE_BLOBS: u64 = 1 + 4 + 4 + 1;

/// Returns the FBC folder of `v1` or `v2` of the example catalog.
pub(crate) fn folder(version: &str) -> PathBuf {
    cargo::root().join("tests/catalogs").join(version)
}

/// Returns the OCI layout of the demo, which holds both versions.
pub(crate) fn example_layout() -> PathBuf {
    cargo::root().join("functions/catalog-mirror/example")
}

/// Files with their paths below the FBC root.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Returns all files of a folder in the order of their paths.
pub(crate) fn files(folder: &Path) -> Files {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)
            .expect("the folder can be read")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path
                .strip_prefix(folder)
                .expect("it was listed below the folder");
            found.push((
                name.display().to_string(),
                fs::read(&path).expect("the file can be read"),
            ));
        }
    }
    found.sort();
    found
}

/// Returns the files of a version of the example.
pub(crate) fn example(version: &str) -> Files {
    files(&folder(version))
}

/// Adds these files to a layer, below a folder.
pub(crate) fn add(layer: Layer, folder: &str, files: &[(String, Vec<u8>)]) -> Layer {
    files
        .iter()
        .fold(layer.dir(folder), |layer, (path, bytes)| {
            layer.file(&format!("{folder}/{path}"), bytes)
        })
}

/// Builds an image with these files under `/configs`.
pub(crate) fn image(files: &[(String, Vec<u8>)]) -> Image {
    let layer = add(Layer::new(), "configs", files);
    ImageBuilder::catalog("/configs").layer(layer).build()
}

/// Returns path and content of a file with one package, which has a channel `stable` of `bundles`
/// bundles, each of which replaces the one before.
pub(crate) fn package(name: &str, bundles: usize) -> (String, Vec<u8>) {
    let bundle = |version: usize| format!("{name}.v{version}.0.0");
    let entry = |version: usize| match version {
        0 => json!({"name": bundle(0)}),
        _ => json!({"name": bundle(version), "replaces": bundle(version - 1)}),
    };
    let entries: Vec<Value> = (0..bundles).map(entry).collect();
    let mut metas = vec![
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
    ];
    metas.extend((0..bundles).map(|version| {
        let value = json!({"packageName": name, "version": format!("{version}.0.0")});
        json!({"schema": "olm.bundle", "package": name, "name": bundle(version), "image": format!("r.example/{name}:{version}"),
            "properties": [{"type": "olm.package", "value": value}]})
    }));
    let lines: String = metas.iter().map(|meta| format!("{meta}\n")).collect();
    (format!("{name}/catalog.json"), lines.into_bytes())
}

/// Writes a file of the folder, and the folders above it.
pub(crate) fn write(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("the path is below the folder"))
        .expect("the folder can be written");
    fs::write(&path, content).expect("the file can be written");
}
