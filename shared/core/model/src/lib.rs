#![doc = include_str!("../README.md")]

mod catalogs;
mod changed_packages;
pub mod crypto;
mod current;
mod document;
mod encoding;
mod facts;
mod gc;
mod hash;
mod image_reference;
mod index;
mod key;
mod name;
mod notified;
mod object;
mod object_stats;
pub mod pem;
mod ring;
mod snapshot;
mod source_ref;
mod status;
pub mod text;
pub mod yaml;

pub use catalogs::Catalogs;
pub use changed_packages::ChangedPackages;
pub use current::{
    Availability, Current, PREVIOUS_MAX, Previous, Publication, Rfc3339, RolledBack, Signature,
};
pub use document::{Document, DocumentCheck, DocumentError, FORMAT_VERSION, StoredDocument};
pub use encoding::{
    DOCUMENT_WINDOW_LOG, Encoding, ZSTD_WINDOW_LOG_MAX, ZstdFrameDecoder, decode_zstd,
    decode_zstd_to,
};
pub use facts::{
    Facts, FindingSeverity, PackageFindings, SearchPackage, SeenPackage, SupportPhase,
    ValidationCounts, ValidationFinding,
};
pub use gc::{Garbage, GcPhase, GcState, ObjectKey};
pub use hash::{Hasher, ParseSha256Error, Sha256};
pub use image_reference::ImageReference;
pub use index::{Index, IndexedMeta, IndexedShard};
pub use key::{CachePolicy, Key, Kind};
pub use name::{CatalogName, CatalogNameError, is_dns_label, is_lower_alphanumeric, is_plain_name};
pub use notified::{Notified, PublicationId};
pub use object::{Content, DecodedContent, ManifestEntry, ObjectDigest, ObjectRef};
pub use object_stats::ObjectStats;
pub use ring::Ring;
pub use snapshot::{AllFormats, CatalogImage, RENDER_VERSION, SEGMENT_LINES, ShardRef, Snapshot};
pub use source_ref::{
    AttachedSignature, INPUTS_MAX, ImageSignatures, SignedBy, SourceInput, SourceRef, Verified,
};
pub use status::{
    EmptyLayers, Hold, OpenPulls, Outcome, PullInputs, RejectedRevision, RejectionKind, Status,
};
