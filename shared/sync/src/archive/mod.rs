//! Copies that are carried on a medium: an archive describes itself, holds what the other side lacks, and is checked as a
//! whole before anything is written.

mod error;
mod file;
mod format;
mod import;
mod pack;
mod read;
mod receipt;

pub use self::{
    error::ArchiveError,
    file::{archive_into, volume_path},
    format::{Manifest, PackedCatalog, PackedObject},
    import::Importer,
    pack::{Pack, PackOptions},
    read::{Archive, VolumeFile},
    receipt::{Receipt, Since, receipt},
};
