#![doc = include_str!("../README.md")]

mod catalogs;
mod current;
mod document;
mod hash;
mod index;
mod key;
mod name;
mod named;
mod notified;
mod snapshot;
mod status;
mod sweep;

pub use catalogs::Catalogs;
pub use current::{
    Availability, BroughtBack, Current, PREVIOUS_MAX, Previous, Signature, SignedBy, SnapshotRef, SourceRef, Verified,
};
pub use document::{Document, DocumentError, FORMAT_VERSION};
pub use hash::{Hasher, ParseSha256Error, Sha256};
pub use index::{Index, IndexedMeta, IndexedShard};
pub use key::{CachePolicy, Form, Key, ZSTD_WINDOW_LOG_MAX};
pub use name::{CatalogName, CatalogNameError};
pub use named::{Content, Named};
pub use notified::{Mark, Notified};
pub use snapshot::{Image, RENDER_VERSION, ShardRef, Snapshot, Stored, Whole};
pub use status::{Layers, Outcome, Status};
pub use sweep::{Intent, Sweep};
