use http::StatusCode;
use layout::{CatalogNameError, DocumentError, Key, Sha256};
use seal::TrustError;
use store::StoreError;

use crate::{denial::Denial, registry::Refusal};

/// Why a request is not answered with what it asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the path names no catalog")]
    CatalogName(#[source] CatalogNameError),
    #[error("there is no query parameter {0:?} here: only schema, package and name")]
    Parameter(String),
    #[error("there is no query parameter {0:?} here: only since")]
    SinceParameter(String),
    #[error("the query parameter since must be the content hash of an earlier state: 64 lower-case hex digits")]
    Since,
    #[error(
        "the state {0} of this catalog is not kept, or never was: take the whole catalog and its content-hash again"
    )]
    UnknownSince(Sha256),
    #[error("nothing is served at this path")]
    UnknownPath,
    #[error("no catalog {0:?} is served here")]
    UnknownCatalog(String),
    #[error("the catalog has no package {0:?}")]
    UnknownPackage(String),
    #[error("there is no such object")]
    UnknownObject,
    #[error("only GET and HEAD are answered here")]
    Method,
    #[error("none of the content codings that are offered here (zstd, gzip, identity) is acceptable")]
    NotAcceptable,
    #[error("in this content coding the answer is too large to be sent from here; ask for another one")]
    TooLarge,
    #[error("the representation is not the one that the request names")]
    PreconditionFailed,
    #[error("the representation has only {0} bytes")]
    Range(u64),
    #[error(transparent)]
    Registry(#[from] Refusal),
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error("the store does not answer")]
    Store(#[source] StoreError),
    #[error("the store cannot say where {key} can be fetched")]
    Locate {
        key: Key,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{key} is not what was published")]
    Corrupt { key: Key, source: Corruption },
    #[error("what is published of the catalog {catalog} is not served, and there is no earlier state at hand")]
    Untrusted { catalog: String, source: TrustError },
}

/// What is wrong with a stored object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Corruption {
    #[error("it has {found} bytes instead of {expected}")]
    Size { expected: u64, found: u64 },
    #[error("its hash is wrong")]
    Hash,
    #[error("it cannot be decompressed")]
    Coding(#[source] std::io::Error),
    #[error("it cannot be read")]
    Document(#[source] DocumentError),
    #[error("nothing tells what its hash should be")]
    Unproven,
    #[error("it does not fit its snapshot")]
    Mismatch,
    #[error("it is named by its snapshot but is not in the store")]
    Missing,
}

impl Error {
    /// The status that tells a client what to do about it.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Registry(refusal) => refusal.status(),
            Self::Denied(denial) => denial.status(),
            Self::CatalogName(_) | Self::Parameter(_) | Self::SinceParameter(_) | Self::Since => {
                StatusCode::BAD_REQUEST
            }
            Self::UnknownPath
            | Self::UnknownCatalog(_)
            | Self::UnknownPackage(_)
            | Self::UnknownObject
            | Self::UnknownSince(_) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable | Self::TooLarge => StatusCode::NOT_ACCEPTABLE,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::Range(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Store(_) | Self::Locate { .. } | Self::Corrupt { .. } | Self::Untrusted { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The stable word for it, the end of the problem's `type` (RFC 9457, section 3.1.1).
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            // Registries have codes of their own.
            Self::Registry(refusal) => refusal.code(),
            Self::Denied(denial) => denial.word(),
            Self::CatalogName(_) => "bad-catalog-name",
            Self::Parameter(_) | Self::SinceParameter(_) => "unknown-parameter",
            Self::Since => "bad-content-hash",
            Self::UnknownSince(_) => "unknown-state",
            Self::UnknownPath => "unknown-path",
            Self::UnknownCatalog(_) => "unknown-catalog",
            Self::UnknownPackage(_) => "unknown-package",
            Self::UnknownObject => "unknown-object",
            Self::Method => "method-not-allowed",
            Self::NotAcceptable => "not-acceptable",
            Self::TooLarge => "too-large",
            Self::PreconditionFailed => "precondition-failed",
            Self::Range(_) => "range-not-satisfiable",
            Self::Store(_) | Self::Locate { .. } | Self::Corrupt { .. } | Self::Untrusted { .. } => "store-unavailable",
        }
    }

    /// What the client reads: never more than it said itself, and nothing of the inside of the server.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::CatalogName(source) => source.to_string(),
            Self::Store(_) | Self::Locate { .. } | Self::Corrupt { .. } | Self::Untrusted { .. } => {
                "the catalog cannot be read at the moment; try again later".to_owned()
            }
            Self::Parameter(_)
            | Self::SinceParameter(_)
            | Self::Since
            | Self::UnknownSince(_)
            | Self::UnknownPath
            | Self::UnknownCatalog(_)
            | Self::UnknownPackage(_)
            | Self::UnknownObject
            | Self::Method
            | Self::NotAcceptable
            | Self::TooLarge
            | Self::PreconditionFailed
            | Self::Range(_)
            | Self::Registry(_)
            | Self::Denied(_) => self.to_string(),
        }
    }

    /// A failed read of an object that has to be there, because a snapshot names it.
    pub(crate) fn named(key: &Key, error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::corrupt(key, Corruption::Missing),
            error @ (StoreError::Conflict { .. }
            | StoreError::RangeNotSatisfiable { .. }
            | StoreError::Denied { .. }
            | StoreError::Failed { .. }) => Self::Store(error),
        }
    }

    pub(crate) fn corrupt(key: &Key, source: Corruption) -> Self {
        Self::Corrupt {
            key: key.clone(),
            source,
        }
    }
}
