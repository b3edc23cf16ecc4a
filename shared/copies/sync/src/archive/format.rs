//! Format of a volume: a tar file (POSIX.1-2017, `pax`, "ustar Interchange Format") of
//! `manifest.json`, `volume.json` and the objects in the order of the manifest, at the paths that
//! they have in a store. All headers have the same owner, mode and time, so that equal states make
//! equal archives but for the time of the export.

use std::{io, path::PathBuf};

use model::{CatalogName, Document, DocumentError, ObjectDigest, PublicationId, Sha256};
use serde::{Deserialize, Serialize};
use store::ReadError;
use tar::Header;

/// Size of a header; content is filled up to a multiple of it.
pub(super) const BLOCK: u64 = 512;
/// Size of the end of a volume: two empty blocks.
pub(super) const END: u64 = 2 * BLOCK;
/// Maximum size of a manifest, in bytes: enough for a million objects.
pub(super) const MANIFEST_MAX: u64 = 256 << 20;

/// `manifest.json`: the first entry of every volume, equal in all volumes of one archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Number of volumes of the archive.
    pub volumes: u32,
    /// Catalogs of the archive, each in one state.
    pub catalogs: Vec<PackedCatalog>,
    /// Content hashes of the states whose objects were left out, so that the receiving store must
    /// hold them already. Empty if the archive is complete.
    #[serde(default)]
    pub since: Vec<Sha256>,
    /// Time of the export: RFC 3339, UTC, whole seconds. Missing in archives of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_at: Option<String>,
    /// All objects in their order in the volumes, from the first volume to the last.
    pub objects: Vec<PackedObject>,
}

/// A catalog of an archive or of a receipt, in its published state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackedCatalog {
    /// Name of the catalog in both stores.
    pub name: CatalogName,
    /// Serial under which the state was published.
    pub serial: u64,
    /// Content hash of the state: the sha256 of its `all.json`.
    pub content_hash: Sha256,
}

/// An object or a pointer in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackedObject {
    /// Path in the archive and in the store.
    pub key: String,
    /// Size of the stored bytes, compressed as they are.
    pub size: u64,
    /// The sha256 of the stored bytes.
    pub sha256: Sha256,
    /// Number of the volume that holds it, counted from 1.
    pub volume: u32,
}

impl PackedCatalog {
    pub(super) fn new(name: &CatalogName, publication: impl Into<PublicationId>) -> Self {
        let PublicationId {
            serial,
            content_hash,
        } = publication.into();
        Self {
            name: name.clone(),
            serial,
            content_hash,
        }
    }
}

impl PackedObject {
    /// Returns size and hash of the stored bytes.
    pub(super) const fn digest(&self) -> ObjectDigest {
        ObjectDigest {
            sha256: self.sha256,
            size: self.size,
        }
    }
}

/// `volume.json`: the second entry of every volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Volume {
    /// Number of the volume, counted from 1.
    pub(super) volume: u32,
    /// The sha256 of the manifest, which ties the volumes of one archive together.
    pub(super) manifest: Sha256,
}

impl Document for Manifest {
    const NAME: &'static str = "manifest.json";
}

impl Document for Volume {
    const NAME: &'static str = "volume.json";
    const INDENTED: bool = false;
}

/// Returns the header of an entry.
///
/// # Errors
/// Fails for a path that does not fit: `catalogs/NAME/current.json` with a name of more than 146
/// characters.
pub(super) fn header(path: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Returns the number of bytes that an entry takes in a volume.
pub(super) const fn entry_size(size: u64) -> u64 {
    BLOCK + size.next_multiple_of(BLOCK)
}

/// An archive that cannot be written, or that is refused. A refused archive has not changed the
/// store.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The files are not a whole archive, or the store has not what was asked for. Holds the reason
    /// for people; no caller handles one reason in another way.
    #[error("{0}")]
    Refused(String),
    /// A file that cannot be read.
    #[error("cannot read {volume}")]
    Read {
        /// Name of the file, or of the object in it.
        volume: String,
        /// Error that the file system returned.
        source: io::Error,
    },
    /// A document of the archive that cannot be read.
    #[error("cannot use {name} of the archive")]
    Document {
        /// Name of the document, which is its path in the archive.
        name: &'static str,
        /// Error of the parser, with line and column.
        source: DocumentError,
    },
    /// The store cannot be read, or a document in it is unusable.
    #[error("cannot read the store")]
    Store(#[from] ReadError),
    /// A volume that cannot be written.
    #[error("cannot write the archive")]
    Write(#[source] io::Error),
    /// A file of the archive that cannot be written.
    #[error("cannot write {}", .0.display())]
    File(PathBuf, #[source] io::Error),
}

impl ArchiveError {
    /// Reports that `volume`, a file or an object in it, cannot be read.
    pub(super) fn read(volume: &str, source: io::Error) -> Self {
        // The reader of tar files has no errors of its own for what is not one.
        if source.raw_os_error().is_none() {
            return Self::malformed(
                volume,
                "it is not a tar file of `catalog-mirror export`, or it was cut off",
            );
        }
        let volume = volume.to_owned();
        Self::Read { volume, source }
    }

    /// Reports a file that is not a volume of an archive, or not one that this program made.
    pub(super) fn malformed(volume: &str, reason: &str) -> Self {
        Self::Refused(format!("{volume} is not a volume of an archive: {reason}"))
    }

    /// Reports an object of the store that is not what its key or the Snapshot says.
    pub(super) fn damaged(key: impl std::fmt::Display) -> Self {
        Self::Refused(format!(
            "{key} is missing or damaged; see `catalog-mirror verify`"
        ))
    }

    /// Reports an object that no Snapshot of the archive names, or one with another size or hash.
    pub(super) fn unnamed(key: &str) -> Self {
        Self::Refused(format!(
            "{key} does not belong into the archive: no snapshot in it names it"
        ))
    }
}
