//! Names of the files of an archive, and writing them.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use model::{CatalogName, ObjectDigest, Sha256};
use serde::Serialize;
use store::Store;
use tokio::task::spawn_blocking;

use super::{ArchiveError, Manifest, Pack, PackOptions};

/// Write buffer in bytes, larger than most objects, so that slow media get long writes.
const BUFFER_BYTES: usize = 1 << 20;

/// Number of hex digits of a hash in the name of a file.
const HASH_DIGITS: usize = 12;

impl Manifest {
    /// Returns a name for the archive: the catalog, the day of the export in UTC, and the first
    /// digits of the content hash. So it is not mixed up with that of last month.
    pub fn file_name(&self) -> String {
        let name = match self.catalogs.as_slice() {
            [catalog] => catalog.name.as_str(),
            _ => "catalogs",
        };
        let time = self.exported_at.as_deref().unwrap_or_default();
        let day = time.split('T').next().unwrap_or_default();
        format!("{name}-{day}-{}.tar", self.state_digits())
    }

    /// Returns the first digits of the content hash. Several catalogs have a hash of all their
    /// states.
    pub fn state_digits(&self) -> String {
        let hash = match self.catalogs.as_slice() {
            [catalog] => catalog.content_hash,
            catalogs => {
                let mut states = String::new();
                for packed in catalogs {
                    states += &format!("{} {}\n", packed.name, packed.content_hash);
                }
                Sha256::of(states.as_bytes())
            }
        };
        hash.to_string().chars().take(HASH_DIGITS).collect()
    }
}

/// Volume of an archive that was written. The other side compares its hash.
#[derive(Debug, Serialize)]
pub struct WrittenVolume {
    /// Path of the file.
    pub file: String,
    /// Size and hash of the file.
    #[serde(flatten)]
    pub stored: ObjectDigest,
}

impl Pack {
    /// Writes all volumes to files that are numbered from 1, also if there is only one: one pattern
    /// matches each archive. Blocks, as [`Self::write`].
    ///
    /// # Errors
    /// As [`Self::write_file`].
    pub fn write_files(&self, to: &Path) -> Result<Vec<WrittenVolume>, ArchiveError> {
        let mut volumes = Vec::new();
        for volume in 1..=self.manifest().volumes {
            let path = volume_path(to, volume);
            volumes.push(WrittenVolume {
                file: path.display().to_string(),
                stored: self.write_file(volume, &path)?,
            });
        }
        Ok(volumes)
    }

    /// Writes one volume to a file, which gets its name when it is complete and on the medium.
    /// Blocks, as [`Self::write`].
    ///
    /// # Errors
    /// As [`Self::write`], and [`ArchiveError::File`].
    pub fn write_file(&self, volume: u32, path: &Path) -> Result<ObjectDigest, ArchiveError> {
        let failed = |error: io::Error| ArchiveError::File(path.to_owned(), error);
        let partial = path.with_added_extension("partial");
        // What is left of a run that was killed goes. On a medium that comes back it could also be
        // a link or a FIFO, so the file is a new one.
        drop(fs::remove_file(&partial));
        let file = File::create_new(&partial).map_err(failed)?;
        let written = self
            .write(volume, BufWriter::with_capacity(BUFFER_BYTES, &file))
            .and_then(|stored| file.sync_all().map(|()| stored).map_err(failed))
            .and_then(|stored| fs::rename(&partial, path).map(|()| stored).map_err(failed));
        if written.is_err() {
            // The partial file is of no use. A second error would only hide the first one.
            drop(fs::remove_file(&partial));
        }
        written
    }
}

/// Writes an archive of the whole catalogs into a folder, and returns the name of the file. One that
/// is there is replaced: it may be damaged, or have other sources of the same content.
///
/// It holds also what could be made from the shards, so that another version of the program reads it.
/// Beside the images of a folder this is little.
///
/// # Errors
/// As [`Pack::plan`] and [`Pack::write_file`].
#[expect(clippy::disallowed_methods, reason = "only the own store is read")]
pub async fn archive_into(
    store: Arc<dyn Store>,
    names: &[CatalogName],
    folder: &Path,
    now: SystemTime,
) -> Result<String, ArchiveError> {
    let options = PackOptions {
        whole: true,
        exported_at: Some(now),
        ..PackOptions::default()
    };
    let pack = Pack::plan(store, names, &options).await?;
    let name = pack.manifest().file_name();
    let path = folder.join(&name);
    let written = spawn_blocking(move || pack.write_file(1, &path)).await;
    written.expect("writing is not aborted")?;
    Ok(name)
}

/// Returns the files that an argument of an import names: itself, or all volumes of the archive that
/// an export has written under this name.
pub fn archive_files(path: &Path) -> Vec<PathBuf> {
    if path.exists() {
        return vec![path.to_owned()];
    }
    let numbered = (1..).map(|volume| volume_path(path, volume));
    let volumes: Vec<PathBuf> = numbered.take_while(|volume| volume.exists()).collect();
    if volumes.is_empty() {
        // Opening it tells what is wrong.
        vec![path.to_owned()]
    } else {
        volumes
    }
}

/// Returns the name of a volume: `name.001.tar` for `name.tar`.
fn volume_path(path: &Path, volume: u32) -> PathBuf {
    let extension = path.extension().unwrap_or("tar".as_ref()).to_string_lossy();
    path.with_extension(format!("{volume:03}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_volume_keeps_its_extension() {
        for (path, volume, expected) in [
            ("a/name.tar", 1, "a/name.001.tar"),
            ("name", 12, "name.012.tar"),
            ("v4.20.tar", 1000, "v4.20.1000.tar"),
        ] {
            assert_eq!(volume_path(Path::new(path), volume), Path::new(expected));
        }
    }
}
