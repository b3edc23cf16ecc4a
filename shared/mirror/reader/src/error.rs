use std::io;

use model::{CatalogNameError, DocumentError, Key};
use store::StoreError;
use trust::TrustError;

/// Reason why a part of a published state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// A catalog name that is not a DNS-1123 subdomain.
    #[error("no catalog has this name")]
    CatalogName(#[source] CatalogNameError),
    /// A catalog that was never published, or that is unavailable.
    #[error("no catalog {0:?} is served here")]
    UnknownCatalog(String),
    /// A package that the published state does not have.
    #[error("the catalog has no package {0:?}")]
    UnknownPackage(String),
    /// The store failed or cannot be reached.
    #[error("the store does not answer")]
    Store(#[from] StoreError),
    /// Too many requests at a time for what does not fit into a cache.
    #[error("too many requests need what is too large to be kept in memory; try again later")]
    Busy,
    /// An object that is missing or damaged.
    #[error("{key} is not as it was published")]
    Corrupt {
        /// Key of the missing or damaged object.
        key: Key,
        /// Damage that was found, for the log only.
        source: Corruption,
    },
    /// A pointer that fails verification, without an earlier verified state to serve.
    #[error(
        "the published state of the catalog {catalog} is refused, and no earlier verified state is known"
    )]
    Untrusted {
        /// Name of the catalog whose pointer was refused.
        catalog: String,
        /// Reason for the refusal, for the log only.
        source: PointerRefused,
    },
}

/// Damage of a stored object, as the log describes it.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// Another size than its document records.
    #[error("it has {found} bytes instead of {expected}")]
    Size {
        /// Size that the document records, in bytes.
        expected: u64,
        /// Size of the stored object, in bytes.
        found: u64,
    },
    /// A hash other than its name.
    #[error("its hash is wrong")]
    Hash,
    /// Bytes that are not one complete frame or stream of their coding.
    #[error("it cannot be decompressed")]
    Coding(#[source] io::Error),
    /// A document that cannot be read.
    #[error("it cannot be read")]
    Document(#[source] DocumentError),
    /// A document above the limit for reading into memory, in bytes.
    #[error("it is larger than {0} bytes, the limit of this program")]
    TooLarge(u64),
    /// An object that changed each time it was about to be sent.
    #[error("it was replaced again and again while it was read")]
    Replaced,
    /// A document that contradicts another one.
    #[error("it does not fit its snapshot")]
    Mismatch,
    /// An object that a document names but the store lacks.
    #[error("a document names it but the store does not have it")]
    Missing,
}

/// Reason to refuse a version of a pointer under [`crate::ReaderSettings::trust`].
#[derive(Debug, thiserror::Error)]
pub enum PointerRefused {
    /// No valid signature by a trusted key.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A serial below one that was served before: a replay of an old signed pointer.
    #[error("its serial {found} is lower than {served}, which was served before")]
    Older {
        /// Serial of the version that was refused.
        found: u64,
        /// Highest serial that this process has served.
        served: u64,
    },
}

impl ReaderError {
    /// Describes damage of an object.
    pub fn corrupt(key: &Key, source: Corruption) -> Self {
        Self::Corrupt {
            key: key.clone(),
            source,
        }
    }

    /// Returns a function that turns an error of a compressor into that of the object.
    pub fn coding(key: &Key) -> impl Fn(io::Error) -> Self + '_ {
        |source| Self::corrupt(key, Corruption::Coding(source))
    }

    /// Returns a function that turns an error of a document's parser into that of the object.
    pub fn document(key: &Key) -> impl Fn(DocumentError) -> Self + '_ {
        |source| Self::corrupt(key, Corruption::Document(source))
    }

    /// True if a document names an object that the store does not have.
    pub const fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Corrupt {
                source: Corruption::Missing,
                ..
            }
        )
    }
}
