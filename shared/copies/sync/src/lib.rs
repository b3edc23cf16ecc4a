#![doc = include_str!("../README.md")]

mod archive;
mod bring;
mod copier;
mod error;
mod history;
mod http;
mod origin;
mod place;
mod plan;
mod planned;
mod rebuild;
mod repair;
mod report;

pub use ::fetch::{FetchSettings, FetchSettingsError, read_header_file};
pub use archive::{
    Archive, ArchiveError, Importer, Manifest, Pack, PackOptions, PackedCatalog, PackedObject,
    Receipt, VolumeFile, WrittenVolume, archive_files, archive_into, receipt,
};
pub use copier::Copier;
pub use error::SyncError;
pub use http::HttpMirror;
pub use origin::{Origin, ReadCatalog};
pub use place::{Address, AddressError, SyncOrigin};
pub use repair::Repair;
pub use report::{CopyProgress, SyncOptions, SyncReport};
