//! Copies that are carried: an archive says what it is, holds what the other side lacks, and is checked before it is
//! believed.

mod entries;
mod error;
mod import;
mod manifest;
mod opening;
mod origin;
mod pack;
mod read;
mod receipt;
mod tape;
mod write;

pub use self::{
    error::ArchiveError,
    import::{ImportError, Importer},
    manifest::{Manifest, PackedCatalog, PackedObject},
    pack::{Pack, PackError, Packing},
    read::{Archive, VolumeFile},
    receipt::{Receipt, ReceiptCatalog, Since, receipt},
};
