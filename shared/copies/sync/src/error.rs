use fetch::{AttemptCount, FailedFetch, FetchError, RequestError};
use model::{CatalogName, DocumentError, Key, Outcome, PREVIOUS_MAX};
use publish::{PublishError, RetryableError};
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
    Origin(#[from] OriginError),
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
        "nothing was copied: the origin is at serial {theirs} and the store at {ours}: going back has to be allowed"
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
         catalog; replacing a diverged state has to be allowed"
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
            Self::Origin(error) => matches!(error, OriginError::NotFound(_)),
            _ => false,
        }
    }
}

/// An origin that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The origin has no such object.
    #[error("there is no {0}")]
    NotFound(String),
    /// The origin has the object and does not give it, or not as it should be. Holds the reason for
    /// people.
    #[error("{0}")]
    Refused(String),
    /// The list of catalogs cannot be used.
    #[error("cannot use the list of catalogs")]
    Names(#[source] DocumentError),
    /// A store that is the origin failed, or a document of it cannot be read.
    #[error(transparent)]
    Store(ReadError),
    /// A server failed, or could not be reached.
    #[error("cannot fetch {key}{attempts}")]
    Fetch {
        /// Key of the object, which is its path.
        key: String,
        /// Number of attempts.
        attempts: AttemptCount,
        /// Error of the server or of the connection.
        source: FailedFetch,
    },
    /// A file of an archive failed.
    #[error("cannot read {key} from the archive")]
    Archive {
        /// Key of the object, which is its path.
        key: String,
        /// Error that the file system returned.
        source: std::io::Error,
    },
}

impl OriginError {
    /// Adds the key that was requested.
    pub(crate) fn fetch(key: &Key, failed: FailedFetch) -> Self {
        Self::Fetch {
            key: key.to_string(),
            attempts: AttemptCount::default(),
            source: failed,
        }
    }

    pub(crate) fn too_large(key: &Key, max: u64) -> Self {
        Self::Refused(format!("{key} has more than {max} bytes"))
    }
}

impl RequestError for OriginError {
    fn exchange_mut(&mut self) -> Option<(&mut FetchError, &mut AttemptCount)> {
        match self {
            Self::Fetch {
                attempts, source, ..
            } => Some((&mut source.error, attempts)),
            _ => None,
        }
    }
}

impl From<StoreError> for OriginError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(key) => Self::NotFound(key),
            error => Self::Store(error.into()),
        }
    }
}
