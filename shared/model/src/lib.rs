#![doc = include_str!("../README.md")]

mod catalogs;
mod current;
mod document;
mod encoding;
mod findings;
mod gc;
mod hash;
mod index;
mod key;
mod name;
mod notified;
mod object;
mod search;
mod snapshot;
mod source_ref;
mod status;
pub mod text;

pub use catalogs::Catalogs;
pub use current::{Availability, Current, PREVIOUS_MAX, Previous, Publication, RolledBack, Signature};
pub use document::{Document, DocumentError, FORMAT_VERSION, StoredDocument};
pub use encoding::{Encoding, ZSTD_WINDOW_LOG_MAX, decode_zstd, decode_zstd_to, encode_zstd};
pub use findings::{
    FINDINGS_MAX, FindingSeverity, Findings, PackageFindings, ValidationCounts, ValidationFinding, ValidationVerdict,
};
pub use gc::{Garbage, GcPhase, GcState, ObjectKey};
pub use hash::{Hasher, ParseSha256Error, Sha256};
pub use index::{Index, IndexedMeta, IndexedShard};
pub use key::{CachePolicy, Key, Kind};
pub use name::{CatalogName, CatalogNameError};
pub use notified::{Notified, PublicationId};
pub use object::{Content, ManifestEntry, ObjectDigest, ObjectRef};
pub use search::{SearchDocument, SearchPackage};
pub use snapshot::{AllFormats, CatalogImage, RENDER_VERSION, ShardRef, Snapshot};
pub use source_ref::{INPUTS_MAX, SignedBy, SourceInput, SourceRef, Verified};
pub use status::{EmptyLayers, OpenPulls, Outcome, PullInputs, RejectedRevision, RejectionKind, Status};
