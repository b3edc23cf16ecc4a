use std::fmt;

/// What was being done when a store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading an object.
    Get,
    /// Writing an object.
    Put,
    /// Making written objects durable.
    Flush,
    /// Removing an object.
    Delete,
    /// Listing objects.
    List,
    /// Opening the store.
    Open,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "read",
            Self::Put => "write",
            Self::Flush => "flush",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Open => "open",
        })
    }
}

/// Why an operation on a store did not succeed. Callers tell the kinds apart by variant, never by text.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such object.
    #[error("the store has no {key}")]
    NotFound {
        /// The object's key.
        key: String,
    },
    /// The condition of a put did not hold: somebody else wrote first.
    #[error("{key} was written by another writer in the meantime")]
    Conflict {
        /// The object's key.
        key: String,
    },
    /// A range that the object does not have.
    #[error("{key} has only {size} bytes")]
    RangeNotSatisfiable {
        /// The object's key.
        key: String,
        /// The object's size in bytes.
        size: u64,
    },
    /// Whoever acts here may not do that, and may not the next time either. It was not done.
    #[error("not allowed to {operation} {key}")]
    Denied {
        /// What was to be done.
        operation: Operation,
        /// The key, the prefix, or the store itself.
        key: String,
        /// Who says so.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else: the disk, the network.
    #[error("cannot {operation} {key}")]
    Failed {
        /// What was being done.
        operation: Operation,
        /// The key, the prefix, or the store itself.
        key: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether there is no such object.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether another writer was faster.
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether it may not be done at all.
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }
}

/// For stores to make them.
impl StoreError {
    /// There is no object under `key`.
    pub fn not_found(key: &dyn fmt::Display) -> Self {
        Self::NotFound { key: key.to_string() }
    }

    /// The condition of a put to `key` did not hold.
    pub fn conflict(key: &dyn fmt::Display) -> Self {
        Self::Conflict { key: key.to_string() }
    }

    /// The object under `key` has only `size` bytes.
    pub fn range_not_satisfiable(key: &dyn fmt::Display, size: u64) -> Self {
        Self::RangeNotSatisfiable {
            key: key.to_string(),
            size,
        }
    }

    /// `source` does not allow `operation` on `key`.
    pub fn denied(
        operation: Operation,
        key: &dyn fmt::Display,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Denied {
            operation,
            key: key.to_string(),
            source: source.into(),
        }
    }

    /// `operation` on `key` failed because of `source`.
    pub fn failed(
        operation: Operation,
        key: &dyn fmt::Display,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed {
            operation,
            key: key.to_string(),
            source: source.into(),
        }
    }
}
