//! The answers of OLM v0's registry API from canonical lines, without network, store and async
//! code.
//!
//! ```text
//! lines of a Shard -> PackageRecorder -> PackageRecord -> ApiIndex -> messages
//!                  -> ContentsBuilder -> PackageContents -> csvJson and object of a bundle
//! ```

mod answers;
pub mod api;
mod bundle;
mod contents;
mod go;
mod json;
mod manifests;
mod record;
mod recorder;

pub use answers::BundlePlace;
pub use bundle::BundleMessage;
pub use contents::{ContentsBuilder, PackageContents};
pub use json::meta_struct;
pub use record::{ApiIndex, BundleRecord, ChannelRecord, EntryRecord, LineRange, PackageRecord};
pub use recorder::PackageRecorder;
