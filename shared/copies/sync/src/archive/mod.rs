//! Copies that are carried on a medium: an archive describes itself, holds what the other side
//! lacks, and is checked as a whole before anything is written.

mod file;
mod format;
mod import;
mod pack;
mod read;
mod receipt;

pub use self::file::{WrittenVolume, archive_files, archive_into};
pub use self::format::{ArchiveError, Manifest, PackedCatalog, PackedObject};
pub use self::import::Importer;
pub use self::pack::{Pack, PackOptions};
pub use self::read::{Archive, VolumeFile};
pub use self::receipt::{Receipt, receipt};
