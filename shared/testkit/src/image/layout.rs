//! Writes an image as an OCI layout on disk.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::image::Image;

impl Image {
    /// Adds the image to the layout in `dir` under `tag`. Creates the layout if it is missing.
    pub fn write_layout(&self, dir: &Path, tag: Option<&str>) {
        let blobs = dir.join("blobs/sha256");
        fs::create_dir_all(&blobs).expect("the layout's folder can be made");
        write(
            &dir.join("oci-layout"),
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        );
        let manifests = self
            .manifests
            .iter()
            .map(|(digest, (_, body))| (digest, body));
        for (digest, body) in manifests.chain(&self.blobs) {
            write(&blobs.join(digest.trim_start_matches("sha256:")), body);
        }
        self.add_to_index(&dir.join("index.json"), tag);
    }

    fn add_to_index(&self, path: &Path, tag: Option<&str>) {
        let mut entry = json!({"mediaType": self.media_type, "digest": self.digest, "size": self.manifest().len()});
        if let Some(tag) = tag {
            entry["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        }
        let old =
            fs::read(path).unwrap_or_else(|_| br#"{"schemaVersion":2,"manifests":[]}"#.to_vec());
        let mut index: Value = serde_json::from_slice(&old).expect("index.json is JSON");
        let entries = index["manifests"]
            .as_array_mut()
            .expect("index.json lists manifests");
        entries.retain(|old| tag.is_none() || old["annotations"] != entry["annotations"]);
        entries.push(entry);
        write(path, index.to_string().as_bytes());
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the layout can be written");
}
