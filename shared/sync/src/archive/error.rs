use std::{io, path::PathBuf};

use model::DocumentError;
use store::{ObjectError, ReadError};

/// An archive that cannot be written, or that is refused. A refused archive has not changed the store.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The files are not a whole archive, or the store has not what was asked for. Holds the reason for people; no caller handles
    /// one reason in another way.
    #[error("{0}")]
    Refused(String),
    /// A file that cannot be read.
    #[error("cannot read {volume}")]
    Read {
        /// Name of the file, or of the object in it.
        volume: String,
        /// Error that the file system returned.
        source: io::Error,
    },
    /// A document of the archive that cannot be read.
    #[error("cannot use {key} of the archive")]
    Document {
        /// Path of the document in the archive.
        key: String,
        /// Error of the parser, with line and column.
        source: DocumentError,
    },
    /// The store cannot be read, or a document in it is unusable.
    #[error("cannot read the store")]
    Store(#[from] ObjectError),
    /// A volume that cannot be written.
    #[error("cannot write the archive")]
    Write(#[source] io::Error),
    /// A file of the archive that cannot be written.
    #[error("cannot write {}", .0.display())]
    File(PathBuf, #[source] io::Error),
}

impl ArchiveError {
    /// Reports that `volume`, a file or an object in it, cannot be read.
    pub(super) fn read(volume: &str, source: io::Error) -> Self {
        // The reader of tar files has no errors of its own for what is not one.
        if source.raw_os_error().is_none() {
            return Self::malformed(
                volume,
                "it is not a tar file of `catalog-mirror export`, or it was cut off",
            );
        }
        let volume = volume.to_owned();
        Self::Read { volume, source }
    }

    /// Reports a file that is not a volume of an archive, or not one that this program made.
    pub(super) fn malformed(volume: &str, reason: &str) -> Self {
        Self::Refused(format!("{volume} is not a volume of an archive: {reason}"))
    }

    /// Reports an object of the store that is not what its key or the Snapshot says.
    pub(super) fn damaged(key: impl std::fmt::Display) -> Self {
        Self::Refused(format!("{key} is missing or damaged; see `catalog-mirror verify`"))
    }

    /// Reports an object that no Snapshot of the archive names, or one with another size or hash.
    pub(super) fn unnamed(key: &str) -> Self {
        Self::Refused(format!(
            "{key} does not belong into the archive: no snapshot in it names it"
        ))
    }
}

impl From<ReadError> for ArchiveError {
    fn from(error: ReadError) -> Self {
        Self::Store(error.into())
    }
}
