use std::{fs, io, path::Path};

use serde_json::Value;

/// The OCI layout of the example catalog: paths and bytes.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/example.rs"));
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The tag that the demo mirrors.
pub(crate) const TAG: &str = "latest";

/// Writes the example's layout into a folder; no tag is set yet.
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

/// Points [`TAG`] at one of the versions that the example holds, as a push would.
pub(crate) fn tag(folder: &Path, version: &str) -> anyhow::Result<()> {
    let mut index: Value = serde_json::from_slice(packed("index.json")?)?;
    let manifests = index["manifests"].as_array_mut().into_iter().flatten();
    for manifest in manifests.filter(|manifest| manifest["annotations"][REF_NAME] == version) {
        manifest["annotations"][REF_NAME] = TAG.into();
    }
    // A poll may read the file at this very moment.
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
