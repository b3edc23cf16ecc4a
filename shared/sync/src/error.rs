use keep::SettleError;
use layout::DocumentError;
use render::RenderError;
use seal::TrustError;
use store::{ReadError, StoreError};

use crate::{Flaw, OriginError, Refusal};

/// Why a catalog was not copied. What was served before stays served.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The origin cannot be read.
    #[error("cannot read the origin")]
    Origin(#[from] OriginError),
    /// The origin has no such catalog.
    #[error("the origin has no catalog {0}")]
    Unknown(String),
    /// A document of the origin cannot be used.
    #[error("{key} of the origin cannot be used")]
    Document {
        /// Its key.
        key: String,
        /// What is wrong with it.
        source: DocumentError,
    },
    /// An object of the origin is not what the origin's own documents say.
    #[error("{key} of the origin is not what it should be")]
    Flawed {
        /// Its key.
        key: String,
        /// What is wrong with it.
        source: Flaw,
    },
    /// Two documents of the origin contradict each other.
    #[error("the origin's snapshot of {catalog} and its current.json do not belong together")]
    Disagrees {
        /// Which catalog.
        catalog: String,
    },
    /// The origin's state must not replace what is there.
    #[error("nothing was copied")]
    Refused(#[from] Refusal),
    /// The origin's state is not from whom it should be.
    #[error("nothing was copied")]
    Untrusted(#[from] TrustError),
    /// The store cannot be read.
    #[error("cannot read the store")]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("cannot write the store")]
    Store(#[from] StoreError),
    /// What was made of the shards again is not what they were made of.
    #[error("cannot make the whole of the shards again")]
    Rebuild(#[from] RenderError),
    /// A shard lies there under other bytes, and another published state names those.
    #[error(
        "{key} lies in the store in another compressed form, which {catalog} there names; \
         copy into a store of its own, or allow diverged states"
    )]
    Recompressed {
        /// Its key.
        key: String,
        /// The catalog of the store that names it.
        catalog: String,
    },
    /// A garbage collection removed what the copy relied on.
    #[error("{0} was removed as nothing named it yet, and has to be copied again")]
    Swept(String),
    /// A worker thread died.
    #[error("a worker thread failed")]
    Worker(#[from] tokio::task::JoinError),
}

impl SyncError {
    /// Whether starting again at once may help: something moved while it was being looked at.
    pub(crate) const fn is_race(&self) -> bool {
        match self {
            Self::Store(error) | Self::Read(ReadError::Store(error)) => error.is_conflict(),
            Self::Origin(error) => error.is_not_found(),
            Self::Swept(_) => true,
            _ => false,
        }
    }
}

impl From<SettleError> for SyncError {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::Read(error) => error.into(),
            SettleError::Store(error) => error.into(),
            SettleError::Swept(key) => Self::Swept(key),
        }
    }
}
