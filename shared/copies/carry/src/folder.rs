use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{CarriedImage, CarryError};

const FILE: &str = "carry.json";
const VERSION: u32 = 1;

/// Content of `carry.json`: the archive and the images of a folder. It is written when all the rest
/// is there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CarriedFolder {
    format_version: u32,
    /// Name of the archive of the catalogs in the folder.
    pub archive: String,
    /// Images, and what is attached to them.
    pub images: Vec<CarriedImage>,
}

impl CarriedFolder {
    /// Creates the description of a folder.
    pub const fn new(archive: String, images: Vec<CarriedImage>) -> Self {
        Self {
            format_version: VERSION,
            archive,
            images,
        }
    }

    /// Reads the description. It comes from elsewhere, so every name in it is checked.
    ///
    /// # Errors
    /// A missing file, another version, and names that lead out of the folder.
    pub fn read(folder: &Path) -> Result<Self, CarryError> {
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CarryError::Refused(format!(
                    "{} has no carry.json: `catalog-mirror carry out ISC DIR` writes it at its end",
                    folder.display()
                )));
            }
            read => read.map_err(CarryError::file(&path))?,
        };
        let wrong = |reason: String| CarryError::Refused(format!("{}: {reason}", path.display()));
        let carried: Self =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if carried.format_version != VERSION {
            let version = carried.format_version;
            return Err(wrong(format!(
                "it has version {version}; this program reads {VERSION}"
            )));
        }
        if Path::new(&carried.archive).file_name() != Some(carried.archive.as_ref()) {
            return Err(wrong(format!("{:?} is no name of a file", carried.archive)));
        }
        let checked = carried.images.iter().try_for_each(CarriedImage::check);
        checked.map_err(|error| wrong(error.to_string()))?;
        Ok(carried)
    }

    /// Writes the description.
    ///
    /// # Errors
    /// As [`replace_file`].
    pub fn write(&self, folder: &Path) -> Result<(), CarryError> {
        let path = folder.join(FILE);
        let bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| CarryError::File(path.clone(), error.into()))?;
        replace_file(&path, &bytes)
    }
}

/// Replaces a file so that it is either the old one or the whole new one, with the folders above
/// it.
///
/// # Errors
/// A file that cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), CarryError> {
    let partial = path.with_added_extension("partial");
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&partial, bytes))
        .and_then(|()| File::open(&partial)?.sync_all())
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(CarryError::file(path))
}

/// Locks a folder against another `carry out`. The lock ends with the file.
///
/// # Errors
/// Another process that holds it, and a file that cannot be created.
pub fn lock_folder(folder: &Path) -> Result<File, CarryError> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(CarryError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            let reason = format!("another `carry out` fills {}", folder.display());
            Err(CarryError::Refused(reason))
        }
        Err(fs::TryLockError::Error(error)) => Err(CarryError::File(path, error)),
    }
}
