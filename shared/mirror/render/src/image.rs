//! A rendered catalog as an image: its layer, and the documents that name it.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use model::Kind;
use oci::{Digest, Documents, REF_NAME, media_type};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::{RenderError, Rendering, Sink};

/// Layer of an image in a temporary file, and the documents that name it. They have the bytes that
/// the mirror serves for the same content.
pub struct ImageLayer {
    file: NamedTempFile,
    digest: String,
    documents: Documents,
}

impl ImageLayer {
    /// Writes the layer to a temporary file in `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// Those of [`Rendering::write_all`], and a folder that cannot be written.
    pub fn new(folder: &Path, rendering: &Rendering) -> Result<Self, RenderError> {
        let file = fs::create_dir_all(folder).and_then(|()| temporary_file(folder));
        let opened = file.and_then(|file| Ok((file.reopen()?, file)));
        let (writer, file) = opened.map_err(file_error(folder))?;
        let sink: Sink = Box::new(BufWriter::new(writer));
        let facts = rendering.write_all([(Kind::Blob, sink)].into())?;
        let layer = facts.made.get(&Kind::Blob).zip(facts.diff_id);
        let (layer, diff_id) =
            layer.ok_or_else(|| file_error(folder)(io::ErrorKind::NotFound.into()))?;
        Ok(Self {
            file,
            digest: layer.sha256.to_string(),
            documents: Documents::new(*layer, diff_id),
        })
    }

    /// Returns the bytes of the layer and the documents.
    ///
    /// # Errors
    /// A temporary file that cannot be read.
    pub fn into_parts(self) -> Result<(Vec<u8>, Documents), RenderError> {
        let bytes = fs::read(self.file.path()).map_err(file_error(self.file.path()))?;
        Ok((bytes, self.documents))
    }

    /// Adds the image to the OCI layout in `dir`, whose other images stay, and returns its digest.
    /// The folder of the layer must be on the same file system.
    ///
    /// # Errors
    /// A file that cannot be written, and an `index.json` that is none.
    pub fn into_layout(self, dir: &Path, tag: Option<&str>) -> Result<Digest, RenderError> {
        let blobs = dir.join("blobs/sha256");
        let digest = Digest::of(&self.documents.index);
        let size = self.documents.index.len();
        let persisted = self.file.persist(blobs.join(&self.digest));
        persisted.map_err(|error| file_error(dir)(error.error))?;
        for document in self.documents.into_all() {
            write_file(&blobs.join(Digest::of(&document).hex()), &document)?;
        }
        write_file(
            &dir.join("oci-layout"),
            br#"{"imageLayoutVersion":"1.0.0"}"#,
        )?;
        let mut entry = json!({"mediaType": media_type::INDEX, "digest": digest, "size": size});
        if let Some(tag) = tag {
            entry["annotations"] = json!({REF_NAME: tag});
        }
        let path = dir.join("index.json");
        let index = add_image(&path, entry, tag).map_err(file_error(&path))?;
        write_file(&path, index.to_string().as_bytes())?;
        Ok(digest)
    }
}

/// Maximum size of the index of a layout in bytes: of some ten thousand images.
const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Returns the index of the layout with the image in place of that with the same tag.
fn add_image(path: &Path, entry: Value, tag: Option<&str>) -> io::Result<Value> {
    let mut index: Value = match work::read_file(path, INDEX_BYTES_MAX) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            json!({"schemaVersion": 2, "mediaType": media_type::INDEX, "manifests": []})
        }
        Err(error) => return Err(error),
    };
    let manifests = index.get_mut("manifests").and_then(Value::as_array_mut);
    let manifests = manifests.ok_or_else(|| io::Error::other("it has no list of manifests"))?;
    manifests.retain(|known| known["annotations"][REF_NAME].as_str() != tag);
    manifests.push(entry);
    Ok(index)
}

/// Writes a file so that it is either the old one or the whole new one.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RenderError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = temporary_file(folder).map_err(file_error(path))?;
    file.write_all(bytes).map_err(file_error(path))?;
    file.persist(path)
        .map_err(|error| file_error(path)(error.error))?;
    Ok(())
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> RenderError {
    let path = PathBuf::from(path);
    move |source| RenderError::File {
        path: path.clone(),
        source,
    }
}

/// Creates a file that all may read once it has its name: other programs copy the layout.
fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".catalog-mirror-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.tempfile_in(folder)
}
