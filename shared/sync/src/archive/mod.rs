//! Copies that are carried on a medium: an archive describes itself, holds what the other side lacks, and is checked as a
//! whole before anything is written.

mod file;
mod format;
mod import;
mod pack;
mod read;
mod receipt;

pub use self::{
    file::{archive_into, volume_path},
    format::{ArchiveError, Manifest, PackedCatalog, PackedObject},
    import::Importer,
    pack::{Pack, PackOptions},
    read::{Archive, VolumeFile},
    receipt::{Receipt, receipt},
};
