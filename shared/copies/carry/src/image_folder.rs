//! The folder of one image, as skopeo writes it (`dir:`): whether it is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;
use source::Digest;

use crate::CarryError;

/// Maximum size of a manifest in bytes: registries need to take no larger one (OCI distribution
/// specification, "Pushing Manifests").
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Size of one read, in bytes.
const BLOCK: usize = 256 << 10;

/// Parts of a manifest or of an index that are files of the folder.
#[derive(Default, Deserialize)]
struct ManifestParts {
    #[serde(default)]
    manifests: Vec<PartOfImage>,
    config: Option<PartOfImage>,
    #[serde(default)]
    layers: Vec<PartOfImage>,
}

#[derive(Deserialize)]
struct PartOfImage {
    digest: Digest,
    size: u64,
}

/// Folder of one image.
pub(crate) struct ImageFolder<'a> {
    /// Path of the folder.
    pub(crate) path: &'a Path,
    /// Hashes each file too, instead of comparing sizes only.
    pub(crate) hashes: bool,
    /// True for an index whose images lie elsewhere.
    pub(crate) is_sparse: bool,
}

impl ImageFolder<'_> {
    /// Returns the reason for which the folder is no whole copy of the image `digest`, or `None` if
    /// it is one.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub(crate) fn fault(&self, digest: &str) -> Result<Option<String>, CarryError> {
        let mut open = vec![("manifest.json".to_owned(), digest.to_owned())];
        // A manifest of a stranger may name another one many times.
        let mut seen = BTreeSet::new();
        while let Some((name, digest)) = open.pop() {
            if !seen.insert(digest.clone()) {
                continue;
            }
            let parts = match self.manifest(&name, &digest)? {
                Ok(parts) => parts,
                Err(fault) => return Ok(Some(fault)),
            };
            if self.is_sparse {
                continue;
            }
            for part in &parts.manifests {
                let file = format!("{}.manifest.json", part.digest.hex());
                open.push((file, part.digest.to_string()));
            }
            for part in parts.layers.iter().chain(&parts.config) {
                if let Some(fault) = self.blob_fault(part)? {
                    return Ok(Some(fault));
                }
            }
        }
        Ok(None)
    }

    /// Returns the sizes of the files in bytes, by digest. The folder is whole.
    pub(crate) fn sizes(&self, digest: &str) -> Result<BTreeMap<String, u64>, CarryError> {
        let mut sizes = BTreeMap::new();
        let mut open = vec![("manifest.json".to_owned(), digest.to_owned())];
        while let Some((name, digest)) = open.pop() {
            let path = self.path.join(&name);
            let found = fs::metadata(&path).map_err(CarryError::file(&path))?;
            if sizes.insert(digest.clone(), found.len()).is_some() {
                continue;
            }
            let Ok(parts) = self.manifest(&name, &digest)? else {
                continue;
            };
            if self.is_sparse {
                break;
            }
            for part in parts.manifests {
                let file = format!("{}.manifest.json", part.digest.hex());
                open.push((file, part.digest.to_string()));
            }
            for part in parts.layers.into_iter().chain(parts.config) {
                sizes.insert(part.digest.to_string(), part.size);
            }
        }
        Ok(sizes)
    }

    /// Reads a manifest. Returns its parts, or the reason for which it is another one.
    fn manifest(
        &self,
        name: &str,
        digest: &str,
    ) -> Result<Result<ManifestParts, String>, CarryError> {
        let path = self.path.join(name);
        let manifest = match work::read_file(&path, MANIFEST_BYTES_MAX) {
            Ok(manifest) => manifest,
            Err(error) if is_no_file(&error) => return Ok(Err(format!("it has no {name}"))),
            Err(error) => return Err(CarryError::File(path, error)),
        };
        let wanted = digest.parse::<Digest>();
        let is_wanted = wanted.is_ok_and(|wanted| {
            let mut hasher = wanted.hasher();
            hasher.update(&manifest);
            hasher.finish() == wanted
        });
        if !is_wanted {
            return Ok(Err(format!("{name} is damaged")));
        }
        // A manifest of the first schema or of an unknown kind has no parts that are known.
        Ok(Ok(serde_json::from_slice(&manifest).unwrap_or_default()))
    }

    fn blob_fault(&self, part: &PartOfImage) -> Result<Option<String>, CarryError> {
        let digest = &part.digest;
        let name = digest.hex();
        let path = self.path.join(name);
        let found = match fs::metadata(&path) {
            Ok(found) => found,
            Err(error) if is_no_file(&error) => return Ok(Some(format!("it has no {name}"))),
            Err(error) => return Err(CarryError::File(path, error)),
        };
        if !found.is_file() {
            return Ok(Some(format!("{name}: it is not a regular file")));
        }
        if found.len() != part.size {
            let has = found.len();
            let size = part.size;
            return Ok(Some(format!("{name} has {has} bytes instead of {size}")));
        }
        if self.hashes && hash(&path, digest).map_err(CarryError::file(&path))? != *digest {
            return Ok(Some(format!("{name} is damaged")));
        }
        Ok(None)
    }

    /// Refuses a folder with something else than regular files, for which skopeo would wait.
    pub(crate) fn check_files(&self) -> Result<(), CarryError> {
        for entry in fs::read_dir(self.path).map_err(CarryError::file(self.path))? {
            let path = entry.map_err(CarryError::file(self.path))?.path();
            let found = fs::metadata(&path).map_err(CarryError::file(&path))?;
            if !found.is_file() {
                let reason = io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
                return Err(CarryError::File(path, reason));
            }
        }
        Ok(())
    }
}

/// Returns true for what is no regular file of the size of a manifest.
fn is_no_file(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::FileTooLarge
    )
}

/// Returns the digest of a file, by the algorithm of the one that is expected.
fn hash(path: &Path, expected: &Digest) -> io::Result<Digest> {
    let mut file = work::open_file(path)?;
    let mut hasher = expected.hasher();
    let mut block = vec![0; BLOCK];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&block[..read]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Writes a list of one image with one layer, and returns its digest.
    fn write_list(folder: &Path) -> String {
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
        let blob = |bytes: &[u8]| {
            let digest = Digest::of(bytes);
            write(digest.hex(), bytes);
            json!({"digest": digest.as_str(), "size": bytes.len()})
        };
        let image = json!({"config": blob(b"{}"), "layers": [blob(b"layer")]}).to_string();
        let of_image = Digest::of(image.as_bytes());
        write(
            &format!("{}.manifest.json", of_image.hex()),
            image.as_bytes(),
        );
        let list = json!({"manifests": [{"digest": of_image.as_str(), "size": image.len()}]});
        let list = list.to_string();
        write("manifest.json", list.as_bytes());
        Digest::of(list.as_bytes()).to_string()
    }

    #[test]
    fn fault_names_the_file_that_is_not_whole() {
        let layer = Digest::of(b"layer");
        let folder = tempfile::tempdir().unwrap();
        let digest = write_list(folder.path());
        let fault = |hashes| {
            let image = ImageFolder {
                path: folder.path(),
                hashes,
                is_sparse: false,
            };
            image.fault(&digest).unwrap().unwrap_or_default()
        };
        assert_eq!(fault(true), "");
        let path = folder.path().join(layer.hex());
        fs::write(&path, "loyer").unwrap();
        assert_eq!(fault(false), "");
        assert_eq!(fault(true), format!("{} is damaged", layer.hex()));
        fs::write(&path, "lay").unwrap();
        assert!(fault(false).ends_with(" has 3 bytes instead of 5"));
        fs::remove_file(&path).unwrap();
        assert_eq!(fault(false), format!("it has no {}", layer.hex()));
        write_list(folder.path());
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            assert_ne!(fault(false), "", "{}", path.display());
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(fault(true), "");
    }
}
