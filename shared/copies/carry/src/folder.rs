use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{CarriedImage, CarryError, MissingImage};

const FILE: &str = "carry.json";
const VERSION: u32 = 1;

/// Maximum size of the description in bytes: that of [`IMAGES_MAX`] images with long names.
const BYTES_MAX: u64 = 64 << 20;

/// Maximum number of images: several times those of all catalogs of OpenShift, with signatures.
const IMAGES_MAX: usize = 200_000;

/// Returns the folder of the images in a folder that is carried.
pub fn images_folder(folder: &Path) -> PathBuf {
    folder.join("images")
}

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
    /// Images that could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingImage>,
}

impl CarriedFolder {
    /// Creates the description of a folder.
    pub const fn new(
        archive: String,
        images: Vec<CarriedImage>,
        missing: Vec<MissingImage>,
    ) -> Self {
        Self {
            format_version: VERSION,
            archive,
            images,
            missing,
        }
    }

    /// Reads the description. It comes from elsewhere, so every name in it is checked. An image that
    /// it lists several times is there once.
    ///
    /// # Errors
    /// A missing file and one that is too large, another version, too many images, and names that
    /// lead out of the folder.
    pub fn read(folder: &Path) -> Result<Self, CarryError> {
        let path = folder.join(FILE);
        let bytes = match work::read_file(&path, BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CarryError::Refused(format!(
                    "{} has no carry.json: `catalog-mirror carry out ISC DIR` writes it at its end",
                    folder.display()
                )));
            }
            read => read.map_err(CarryError::file(&path))?,
        };
        let wrong = |reason: String| CarryError::Refused(format!("{}: {reason}", path.display()));
        let mut carried: Self =
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
        keep_each_once(&mut carried.images);
        carried.check_count().map_err(wrong)?;
        let checked = carried.images.iter().try_for_each(CarriedImage::check);
        checked.map_err(|error| wrong(error.to_string()))?;
        Ok(carried)
    }

    /// Returns the reason for which there are too many images.
    fn check_count(&self) -> Result<(), String> {
        match self.images.len().max(self.missing.len()) {
            0..=IMAGES_MAX => Ok(()),
            count => Err(format!(
                "it has {count} images, and at most {IMAGES_MAX} are carried at once"
            )),
        }
    }

    /// Writes the description.
    ///
    /// # Errors
    /// Too many images, and as [`replace_file`].
    pub fn write(&self, folder: &Path) -> Result<(), CarryError> {
        let path = folder.join(FILE);
        self.check_count().map_err(CarryError::Refused)?;
        let bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| CarryError::File(path.clone(), error.into()))?;
        replace_file(&path, &bytes)
    }
}

/// Sorts images, and removes those that are listed before.
pub(crate) fn keep_each_once(images: &mut Vec<CarriedImage>) {
    images.sort();
    images.dedup_by(|next, before| next.image == before.image && next.target == before.target);
}

/// Replaces a file so that it is either the old one or the whole new one, with the folders above
/// it.
///
/// # Errors
/// A file that cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), CarryError> {
    let folder = path.parent().filter(|path| *path != Path::new(""));
    write_beside(folder.unwrap_or(Path::new(".")), path, bytes).map_err(CarryError::file(path))
}

fn write_beside(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // With a new name: under one that is known, others could have left a link or a FIFO.
    let mut builder = tempfile::Builder::new();
    let mut file = builder
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Locks a folder against another `carry out`. The lock ends with the file.
///
/// # Errors
/// Another process that holds it, and a file that cannot be created.
pub fn lock_folder(folder: &Path) -> Result<File, CarryError> {
    let path = folder.join(".lock");
    let file = work::open_or_create(&path).map_err(CarryError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            let reason = format!("another `carry out` fills {}", folder.display());
            Err(CarryError::Refused(reason))
        }
        Err(fs::TryLockError::Error(error)) => Err(CarryError::File(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use model::Sha256;
    use serde_json::{Value, json};

    use super::*;

    fn read(images: impl Iterator<Item = Value>) -> Result<CarriedFolder, CarryError> {
        let folder = tempfile::tempdir().unwrap();
        let images: Vec<Value> = images.collect();
        let text = json!({"formatVersion": VERSION, "archive": "a.tar", "images": images});
        fs::write(folder.path().join(FILE), text.to_string()).unwrap();
        CarriedFolder::read(folder.path())
    }

    fn image(number: usize) -> Value {
        let digest = format!("sha256:{}", Sha256::of(b""));
        json!({"image": format!("h.example/a:{number}"), "digest": digest})
    }

    #[test]
    fn images_are_counted_once_each_up_to_their_limit() {
        let equal = read((0..=IMAGES_MAX).map(|_| image(0))).unwrap();
        assert_eq!(equal.images.len(), 1);
        let most = read((0..IMAGES_MAX).map(image)).unwrap();
        assert_eq!(most.images.len(), IMAGES_MAX);
        let refused = read((0..=IMAGES_MAX).map(image)).unwrap_err().to_string();
        assert!(
            refused.contains("it has 200001 images, and at most 200000"),
            "{refused}"
        );
    }

    #[test]
    fn replaced_file_is_no_link_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("own"), "own").unwrap();
        std::os::unix::fs::symlink(path("own"), path(FILE)).unwrap();
        replace_file(&path(FILE), b"new").unwrap();
        assert_eq!(fs::read(path("own")).unwrap(), b"own");
        assert_eq!(fs::read(path(FILE)).unwrap(), b"new");
        let mode = fs::metadata(path(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn lock_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("own"), "own").unwrap();
        std::os::unix::fs::symlink("own", folder.path().join(".lock")).unwrap();
        assert!(lock_folder(folder.path()).is_err());
        assert_eq!(fs::read(folder.path().join("own")).unwrap(), b"own");
    }
}
