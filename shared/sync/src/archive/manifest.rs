use layout::{CatalogName, Document, Sha256};
use serde::{Deserialize, Serialize};

/// The most bytes that a manifest may have: a million objects.
pub(super) const MANIFEST_MAX: u64 = 256 << 20;

/// `manifest.json`, the first entry of every volume of an archive and the same in all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// How many volumes there are.
    pub volumes: u32,
    /// The catalogs and which state of them the archive brings.
    pub catalogs: Vec<PackedCatalog>,
    /// The content hashes that the receiving side must hold already, because the archive brings only what came after
    /// them. Empty if it brings everything.
    #[serde(default)]
    pub since: Vec<Sha256>,
    /// All objects in their order in the volumes, first to last.
    pub objects: Vec<PackedObject>,
}

/// A catalog of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackedCatalog {
    /// Its name.
    pub name: CatalogName,
    /// The serial that the archive brings.
    pub serial: u64,
    /// The content hash that the archive brings.
    pub content_hash: Sha256,
}

/// An object of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackedObject {
    /// Its key, which is its path in the archive and in the store.
    pub key: String,
    /// Its bytes as they are stored.
    pub size: u64,
    /// The sha256 of them.
    pub sha256: Sha256,
    /// The volume that holds it, counted from 1.
    pub volume: u32,
}

/// `volume.json`, the second entry of every volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Volume {
    /// Which one it is, counted from 1.
    pub(super) volume: u32,
    /// The sha256 of the manifest.
    pub(super) manifest: Sha256,
}

impl Document for Manifest {
    const KIND: &'static str = "manifest.json";
}

impl Document for Volume {
    const KIND: &'static str = "volume.json";
    const INDENTED: bool = false;
}
