//! The example catalog of `demo`: an OCI layout that is part of the binary.

use std::{fs, io, path::Path};

use serde_json::Value;

/// Files of the OCI layout: path and bytes. `build.rs` writes the table.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/example.rs"));
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Tag that the demo mirrors. A demo update moves it to the next version.
pub(crate) const TAG: &str = "latest";

/// Writes the layout into a folder. No image has [`TAG`] yet.
pub(crate) fn unpack(folder: &Path) -> io::Result<()> {
    for (name, bytes) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Moves [`TAG`] to one of the versions in the example, as a push does.
pub(crate) fn tag(folder: &Path, version: &str) -> anyhow::Result<()> {
    let mut index: Value = serde_json::from_slice(packed("index.json")?)?;
    let manifests = index["manifests"].as_array_mut().into_iter().flatten();
    for manifest in manifests.filter(|manifest| manifest["annotations"][REF_NAME] == version) {
        manifest["annotations"][REF_NAME] = TAG.into();
    }
    // Renamed into place: a poll may be reading the file.
    let staged = folder.join("index.json.new");
    fs::write(&staged, index.to_string())?;
    Ok(fs::rename(staged, folder.join("index.json"))?)
}

fn packed(name: &str) -> io::Result<&'static [u8]> {
    let found = FILES.iter().find(|(path, _)| *path == name);
    found
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}
