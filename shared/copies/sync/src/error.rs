use model::{CatalogName, DocumentError, Outcome, PREVIOUS_MAX};
use publish::{PublishError, RetryableError};
use reader::ReaderError;
use render::RenderError;
use store::{ReadError, StoreError};
use trust::TrustError;
use upkeep::ObjectProblem;

use crate::ArchiveError;

/// A copy, import or repair that failed. Readers are served the same state as before.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The origin cannot be read, or answers with an error.
    #[error("cannot read the origin")]
    Origin(#[source] ReadError),
    /// A published state of the origin cannot be read.
    #[error("cannot read the origin")]
    Read(#[from] ReaderError),
    /// The origin has no such catalog.
    #[error("the origin has no catalog {0}")]
    UnknownCatalog(CatalogName),
    /// A document of the origin cannot be used.
    #[error("cannot use {key} of the origin")]
    Document {
        /// Key of the document, which is its path.
        key: String,
        /// Error of the parser, with line and column.
        source: DocumentError,
    },
    /// An object of the origin is not what the origin's Snapshot says.
    #[error("{key} of the origin is damaged")]
    Damaged {
        /// Key of the object, which is its path.
        key: String,
        /// Difference from what the Snapshot records.
        source: ObjectProblem,
    },
    /// The origin's pointer and its Snapshot contradict each other, or the Snapshot contradicts
    /// itself.
    #[error("current.json and the snapshot of {0} at the origin do not belong together")]
    Disagrees(CatalogName),
    /// The catalog would unpack to more bytes than the default of a poll's `contentBytes`.
    #[error(
        "{name} of the origin has {size} bytes, which exceeds the limit contentBytes of {limit}"
    )]
    TooLarge {
        /// Name of the catalog.
        name: CatalogName,
        /// Uncompressed bytes of the catalog, as its Snapshot records them.
        size: u64,
        /// Value of the limit, in bytes.
        limit: u64,
    },
    /// The origin's pointer remembers too many publications, or in the wrong order.
    #[error(
        "current.json of {0} at the origin must list at most {PREVIOUS_MAX} earlier publications, newest first"
    )]
    History(CatalogName),
    /// The origin has an earlier state than the store.
    #[error(
        "nothing was copied: the origin is at serial {theirs} and the store at {ours}: --allow-rollback goes back"
    )]
    Rollback {
        /// Serial of the state at the origin.
        theirs: u64,
        /// Serial of the state in the store.
        ours: u64,
    },
    /// The origin has another history than the store.
    #[error(
        "nothing was copied: serial {serial} is one content here and another at the origin: they are not copies of the same \
         catalog, or one of them was rolled back; --allow-diverged replaces the state"
    )]
    Diverged {
        /// Newest serial that both have with different content.
        serial: u64,
    },
    /// The origin's pointer is not signed by a trusted key.
    #[error("nothing was copied")]
    Untrusted(#[from] TrustError),
    /// An archive that is the origin is refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store refused a publication or failed.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The store cannot be read, or a document in it is unusable.
    #[error("cannot read the store")]
    Object(#[from] ReadError),
    /// The store cannot be written to, or fails while it is read.
    #[error("cannot write the store")]
    Store(#[from] StoreError),
    /// The objects that follow from the Shards cannot be made.
    #[error("cannot make all.json, the index and the image from the shards")]
    Rebuild(#[from] RenderError),
    /// A thread that renders or reads ended unexpectedly.
    #[error("a worker thread failed")]
    Worker(#[from] tokio::task::JoinError),
    /// A catalog of an archive cannot be imported. The store has not been changed.
    #[error("nothing was imported, because {catalog} cannot be")]
    Import {
        /// Name of the catalog in both stores.
        catalog: CatalogName,
        /// The underlying error, which the chain prints after this one.
        source: Box<Self>,
    },
}

impl SyncError {
    /// Reports that the origin cannot be read.
    pub(crate) fn origin(error: impl Into<ReadError>) -> Self {
        Self::Origin(error.into())
    }

    /// Reports an object of the origin.
    pub(crate) fn damaged(key: &impl ToString) -> impl Fn(ObjectProblem) -> Self {
        let key = key.to_string();
        move |source| Self::Damaged {
            key: key.clone(),
            source,
        }
    }

    /// Returns the outcome of the copy: a refusal by a rule, after which trying again cannot help,
    /// or a failure.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Rollback { .. }
            | Self::Diverged { .. }
            | Self::Untrusted(_)
            | Self::TooLarge { .. } => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }
}

impl RetryableError for SyncError {
    fn is_race(&self) -> bool {
        match self {
            Self::Publish(error) => error.is_race(),
            Self::Store(error) => error.is_conflict(),
            // The origin published and collected meanwhile. Its new pointer leads to objects that
            // exist.
            Self::Origin(error) => error.is_not_found(),
            _ => false,
        }
    }
}
