use std::io;

use layout::DocumentError;

use crate::Flaw;

/// Why an archive is refused. The store has not been touched.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file that cannot be read, or ends too early.
    #[error("{volume} cannot be read to its end")]
    Read {
        /// Its name.
        volume: String,
        /// Why.
        source: io::Error,
    },
    /// A file that is no volume of an archive, or not one that this program made.
    #[error("{volume} is not a volume of an archive: {what}")]
    Malformed {
        /// Its name.
        volume: String,
        /// What is wrong.
        what: String,
    },
    /// A document that cannot be used.
    #[error("{key} in the archive cannot be used")]
    Document {
        /// Which.
        key: String,
        /// What is wrong with it.
        source: DocumentError,
    },
    /// A volume of another archive.
    #[error("{0} belongs to another archive than the first file")]
    Foreign(String),
    /// The same volume twice.
    #[error("volume {0} was given twice")]
    Twice(u32),
    /// Volumes are missing.
    #[error("the archive has {of} volumes, and volume {missing} was not given")]
    Incomplete {
        /// The first that is missing.
        missing: u32,
        /// How many there are.
        of: u32,
    },
    /// An object that is not what the manifest or the snapshot says.
    #[error("{key} in the archive is not what it should be")]
    Flawed {
        /// Its key.
        key: String,
        /// What is wrong with it.
        source: Flaw,
    },
    /// An object that no catalog of the archive names, or names differently.
    #[error("{0} has no place in the archive: no snapshot in it names it so")]
    Unnamed(String),
    /// Documents of one catalog that do not belong together.
    #[error("the documents of {0} in the archive are missing or do not belong together")]
    Disagrees(String),
}

impl ArchiveError {
    /// What `of`, a volume or an object in it, says when it cannot be read.
    pub(super) fn unreadable(of: &str, source: io::Error) -> Self {
        Self::Read {
            volume: of.to_owned(),
            source,
        }
    }
}
