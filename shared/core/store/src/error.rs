use std::{error::Error, fmt::Display};

/// Operation during which a store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Operation {
    /// Read of an object or of the facts about it.
    #[strum(serialize = "read")]
    Get,
    /// Write of an object, at once or in pieces.
    #[strum(serialize = "write")]
    Put,
    /// Wait until all written objects are durable.
    Flush,
    /// Removal of one object or of a batch.
    Delete,
    /// Listing of the objects under a prefix.
    List,
    /// Opening of the store, before any request.
    Open,
}

/// Any error that another thread may take.
pub(crate) type BoxedError = Box<dyn Error + Send + Sync>;

/// Failure of an operation on a store. Tell the kinds apart by variant, never by text.
#[derive(Debug, thiserror::Error, strum::EnumIs)]
pub enum StoreError {
    /// The store has no object under this key, a path.
    #[error("the store has no {0}")]
    NotFound(String),
    /// The condition of a put did not hold, because another writer was faster. Read again before
    /// you write again. Holds the key of the object, as a path.
    #[error("{0} was changed by another writer in the meantime")]
    Conflict(String),
    /// The object does not have the requested range.
    #[error("{key} has only {size} bytes")]
    RangeNotSatisfiable {
        /// Key of the object, as a path.
        key: String,
        /// Size of the whole object in bytes.
        size: u64,
    },
    /// The store does not allow the operation. It was not done, and a retry will not help.
    #[error("not allowed to {operation} {key}")]
    Denied {
        /// Operation that the store refused.
        operation: Operation,
        /// Key, prefix, or name of the store.
        key: String,
        /// Answer of the store or of the operating system.
        source: BoxedError,
    },
    /// Any other failure, of the disk or the network, say. A retry may help.
    #[error("cannot {operation} {key}")]
    Failed {
        /// Operation that the store did not finish.
        operation: Operation,
        /// Key, prefix, or name of the store.
        key: String,
        /// The underlying error, which the chain prints after this one.
        source: BoxedError,
    },
}

/// Constructors for the implementations of [`Store`](crate::Store).
impl StoreError {
    /// Returns the error for a missing object under `key`.
    pub fn not_found(key: &dyn Display) -> Self {
        Self::NotFound(key.to_string())
    }

    /// Returns the error for a put to `key` whose condition did not hold.
    pub fn conflict(key: &dyn Display) -> Self {
        Self::Conflict(key.to_string())
    }

    /// Returns the error for a range beyond the `size` bytes of the object under `key`.
    pub fn range_not_satisfiable(key: &dyn Display, size: u64) -> Self {
        Self::RangeNotSatisfiable {
            key: key.to_string(),
            size,
        }
    }

    /// Returns the error for an `operation` on `key` that `source` does not allow.
    pub fn denied(operation: Operation, key: &dyn Display, source: impl Into<BoxedError>) -> Self {
        Self::Denied {
            operation,
            key: key.to_string(),
            source: source.into(),
        }
    }

    /// Returns the error for an `operation` on `key` that failed because of `source`.
    pub fn failed(operation: Operation, key: &dyn Display, source: impl Into<BoxedError>) -> Self {
        Self::Failed {
            operation,
            key: key.to_string(),
            source: source.into(),
        }
    }
}
