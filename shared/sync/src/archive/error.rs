use std::{io, path::PathBuf};

use model::{CatalogName, DocumentError, Sha256};
use store::{ObjectError, ReadError};
use upkeep::ObjectProblem;

/// An archive that cannot be written, or that is refused. A refused archive has not changed the store.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file that cannot be read.
    #[error("cannot read {volume}")]
    Read {
        /// Name of the file, or of the object in it.
        volume: String,
        /// Error that the file system returned.
        source: io::Error,
    },
    /// A file that is not a volume of an archive, or not one that this program made.
    #[error("{volume} is not a volume of an archive: {reason}")]
    Malformed {
        /// Name of the file that was given.
        volume: String,
        /// First difference from a volume that this program writes.
        reason: String,
    },
    /// A document of the archive that cannot be read.
    #[error("cannot use {key} of the archive")]
    Document {
        /// Path of the document in the archive.
        key: String,
        /// Error of the parser, with line and column.
        source: DocumentError,
    },
    /// A volume of another archive: its manifest differs.
    #[error("{0} belongs to another archive than the first file")]
    Foreign(String),
    /// A volume that was given twice.
    #[error("volume {0} was given twice")]
    Twice(u32),
    /// A volume that was not given.
    #[error("the archive has {of} volumes, and volume {missing} was not given")]
    Incomplete {
        /// Lowest number that was not given.
        missing: u32,
        /// Number of volumes of the archive.
        of: u32,
    },
    /// An object whose content is not the one that a Snapshot records.
    #[error("{key} in the archive is damaged")]
    Content {
        /// Path of the object in the archive.
        key: String,
        /// Difference from what the Snapshot records.
        source: ObjectProblem,
    },
    /// An object that no Snapshot of the archive names, or one with another size or hash.
    #[error("{0} does not belong into the archive: no snapshot in it names it")]
    Unnamed(String),
    /// Documents of one catalog that do not belong together.
    #[error("the documents of {0} in the archive are missing or do not belong together")]
    Disagrees(String),
    /// The store cannot be read, or a document in it is unusable.
    #[error("cannot read the store")]
    Store(#[from] ObjectError),
    /// The store has no such catalog.
    #[error("the store has no catalog {0}")]
    UnknownCatalog(CatalogName),
    /// The store has no state with this content hash.
    #[error("the store has no state with the content hash {0}; export since a receipt, or everything")]
    UnknownContent(Sha256),
    /// An object of the store that is not what its key or the Snapshot says.
    #[error("{0} is missing or damaged; see `catalog-mirror verify`")]
    Damaged(String),
    /// An object that does not fit into a volume.
    #[error("{key} does not fit into a volume of {volume_bytes} bytes; it takes {needs}")]
    VolumeSize {
        /// Path of the object in the archive.
        key: String,
        /// Configured maximum size of a volume, in bytes.
        volume_bytes: u64,
        /// Size of a volume with this object alone, in bytes.
        needs: u64,
    },
    /// A path that does not fit into a tar header.
    #[error("the name of {0} is too long for an archive")]
    Name(String),
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
        let volume = volume.to_owned();
        // The reader of tar files has no errors of its own for what is not one.
        if source.raw_os_error().is_none() {
            let reason = "it is not a tar file of `catalog-mirror export`, or it was cut off".to_owned();
            return Self::Malformed { volume, reason };
        }
        Self::Read { volume, source }
    }
}

impl From<ReadError> for ArchiveError {
    fn from(error: ReadError) -> Self {
        Self::Store(error.into())
    }
}
