//! A rendered catalog as an image: in an OCI layout, or in a registry.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use ::render::{Rendering, Sink};
use anyhow::Context;
use model::Kind;
use oci::{Digest, Documents, media_type};
use serde_json::{Value, json};
use source::{REF_NAME, Source, Sources};
use tempfile::NamedTempFile;

/// Writes or pushes the image, and returns its digest. It has the bytes that the mirror serves for the same content.
pub(crate) async fn write(images: &Sources, target: &Source, rendering: Rendering) -> anyhow::Result<Digest> {
    let budget = rendering.budget().clone();
    match target.clone() {
        Source::OciLayout { dir, tag } => {
            let write = move || {
                // Beside its place, so that it can be renamed.
                let layer = ImageLayer::new(&dir.join("blobs/sha256"), &rendering)?;
                layer.into_layout(&dir, tag.as_deref())
            };
            work::run(budget, write).await?
        }
        Source::Registry { reference, .. } => {
            let layer = work::run(budget, move || ImageLayer::new(&std::env::temp_dir(), &rendering)).await??;
            let bytes = fs::read(layer.file.path()).context("cannot read the layer")?;
            let pushed = images.push(&reference, layer.documents, bytes.into()).await?;
            if pushed.was_there {
                eprintln!("{target} is this image already; nothing was pushed");
            }
            Ok(pushed.digest)
        }
        other => anyhow::bail!("{other} is no place for an image"),
    }
}

/// Layer of an image, and the documents that name it.
struct ImageLayer {
    file: NamedTempFile,
    digest: String,
    documents: Documents,
}

impl ImageLayer {
    /// Writes the layer to a temporary file in `folder`.
    fn new(folder: &Path, rendering: &Rendering) -> anyhow::Result<Self> {
        let file = fs::create_dir_all(folder).and_then(|()| temporary_file(folder));
        let file = file.with_context(|| format!("cannot write to {}", folder.display()))?;
        let sink: Sink = Box::new(BufWriter::new(file.reopen()?));
        let facts = rendering.write_all([(Kind::Blob, sink)].into())?;
        let layer = facts.made.get(&Kind::Blob).zip(facts.diff_id);
        let (layer, diff_id) = layer.context("the layer was not written")?;
        Ok(Self {
            file,
            digest: layer.sha256.to_string(),
            documents: Documents::new(*layer, diff_id),
        })
    }

    /// Writes the image to a layout, whose other images stay.
    fn into_layout(self, dir: &Path, tag: Option<&str>) -> anyhow::Result<Digest> {
        let blobs = dir.join("blobs/sha256");
        let digest = Digest::of(&self.documents.index);
        let size = self.documents.index.len();
        let place = || format!("cannot write to {}", dir.display());
        self.file.persist(blobs.join(&self.digest)).with_context(place)?;
        for document in self.documents.into_all() {
            write_file(&blobs.join(Digest::of(&document).hex()), &document).with_context(place)?;
        }
        write_file(&dir.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#).with_context(place)?;
        let mut entry = json!({"mediaType": media_type::INDEX, "digest": digest, "size": size});
        if let Some(tag) = tag {
            entry["annotations"] = json!({REF_NAME: tag});
        }
        let path = dir.join("index.json");
        let index = add_image(&path, entry, tag).with_context(|| format!("cannot add to {}", path.display()))?;
        write_file(&path, index.to_string().as_bytes()).with_context(place)?;
        Ok(digest)
    }
}

/// Returns the index of the layout with the image in place of that with the same tag.
fn add_image(path: &Path, entry: Value, tag: Option<&str>) -> anyhow::Result<Value> {
    let mut index: Value = match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            json!({"schemaVersion": 2, "mediaType": media_type::INDEX, "manifests": []})
        }
        Err(error) => return Err(error.into()),
    };
    let manifests = index.get_mut("manifests").and_then(Value::as_array_mut);
    let manifests = manifests.context("it has no list of manifests")?;
    manifests.retain(|known| known["annotations"][REF_NAME].as_str() != tag);
    manifests.push(entry);
    Ok(index)
}

/// Writes a file so that it is either the old one or the whole new one.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = temporary_file(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Creates a file that all may read once it has its name: other programs copy the layout.
fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".catalog-mirror-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.tempfile_in(folder)
}
