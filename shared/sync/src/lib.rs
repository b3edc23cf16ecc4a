#![doc = include_str!("../README.md")]

mod archive;
mod check;
mod copier;
mod error;
mod fetch;
mod http;
mod judge;
mod names;
mod origin;
mod plan;
mod progress;
mod rebuild;
mod repair;
mod report;
mod status;

pub use archive::{
    Archive, ArchiveError, ImportError, Importer, Manifest, Pack, PackError, PackedCatalog, PackedObject, Packing,
    Receipt, ReceiptCatalog, Since, VolumeFile, receipt,
};
pub use check::Flaw;
pub use copier::{Copier, Settings};
pub use error::SyncError;
pub use http::{Address, AddressError, ClientError, HttpError, HttpOrigin, HttpSettings};
pub use judge::{Allow, Refusal};
pub use names::names;
pub use origin::{Body, Document, Origin, OriginError, StoreOrigin};
pub use progress::{Progress, Seen};
pub use repair::Repair;
pub use report::{Report, Tally};
