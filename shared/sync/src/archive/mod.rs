//! Copies that are carried on a medium: an archive describes itself, holds what the other side lacks, and is checked as a
//! whole before anything is written.

mod error;
mod import;
mod manifest;
mod opening;
mod origin;
mod pack;
mod read;
mod receipt;
mod tar_format;
mod write;

pub use self::{
    error::ArchiveError,
    import::Importer,
    manifest::{Manifest, PackedCatalog, PackedObject},
    pack::{Pack, PackOptions},
    read::{Archive, VolumeFile},
    receipt::{Receipt, ReceiptCatalog, Since, receipt},
};
