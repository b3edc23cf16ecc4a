use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use layout::{CatalogName, Current, Document, Key, Sha256, Snapshot, Stored};
use store::{DOCUMENT_MAX, ReadError, Store, StoreExt};

use super::{
    Manifest, PackedCatalog, PackedObject, Since,
    manifest::Volume,
    receipt::shared,
    tape::{END, entry_size, header},
};
use crate::plan::is_derived;

/// What goes into an archive.
#[derive(Debug, Clone, Default)]
pub struct Packing {
    /// What the other side has already.
    pub since: Since,
    /// Whether the forms of `all.json`, the index and the image come along, rather than being made of the Shards over
    /// there.
    pub whole: bool,
    /// The most bytes of a volume; one volume without.
    pub volume_bytes: Option<u64>,
}

/// Why an archive cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The store cannot be read.
    #[error("cannot read the store")]
    Read(#[from] ReadError),
    /// No such catalog.
    #[error("the store has no catalog {0}")]
    Unknown(CatalogName),
    /// A Snapshot is not there, or not the one that `current.json` names.
    #[error("the snapshot of {0} is missing or damaged; see `catalog-mirror verify`")]
    Snapshot(CatalogName),
    /// No such state.
    #[error("the store has no state with the content hash {0}; export since a receipt, or everything")]
    UnknownContent(Sha256),
    /// An object that is not what the Snapshot says.
    #[error("{0} is missing or damaged; see `catalog-mirror verify`")]
    Damaged(String),
    /// A volume is too small for it.
    #[error("{key} does not fit into a volume of {volume_bytes} bytes; it takes {needs}")]
    VolumeSize {
        /// The object.
        key: String,
        /// What a volume may have.
        volume_bytes: u64,
        /// What a volume with nothing else would have.
        needs: u64,
    },
    /// Its path does not fit into a tar header.
    #[error("the name of {0} is too long for an archive")]
    Name(String),
    /// The volume cannot be written.
    #[error("cannot write the archive")]
    Write(#[source] std::io::Error),
}

/// An archive that is about to be written.
pub struct Pack {
    pub(super) store: Arc<dyn Store>,
    pub(super) manifest: Manifest,
    /// `manifest.json`.
    pub(super) manifest_bytes: Bytes,
    /// The documents, as they were read: a publication meanwhile must not mix two states.
    pub(super) documents: BTreeMap<String, Bytes>,
}

impl Pack {
    /// Decides what an archive of `names` holds and in which volume. Nothing but documents is read.
    ///
    /// # Errors
    /// [`PackError`].
    pub async fn plan(store: Arc<dyn Store>, names: &[CatalogName], packing: &Packing) -> Result<Self, PackError> {
        let held = held(&*store, names, &packing.since).await?;
        let mut contents = Contents::default();
        for name in names {
            contents.add(&*store, name, &held, packing.whole).await?;
        }
        let since = match &packing.since {
            Since::Nothing => Vec::new(),
            Since::Contents(hashes) => hashes.clone(),
            Since::Receipt(receipt) => receipt.catalogs.iter().map(|catalog| catalog.content_hash).collect(),
        };
        let mut manifest = Manifest {
            volumes: 1,
            catalogs: contents.catalogs,
            since,
            objects: [contents.snapshots, contents.objects, contents.pointers].concat(),
        };
        divide(&mut manifest, packing.volume_bytes)?;
        Ok(Self {
            store,
            manifest_bytes: manifest.to_bytes().into(),
            manifest,
            documents: contents.documents,
        })
    }

    /// What the archive says of itself.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

#[derive(Default)]
struct Contents {
    catalogs: Vec<PackedCatalog>,
    snapshots: Vec<PackedObject>,
    objects: Vec<PackedObject>,
    pointers: Vec<PackedObject>,
    documents: BTreeMap<String, Bytes>,
    seen: BTreeSet<Key>,
}

impl Contents {
    async fn add(
        &mut self,
        store: &dyn Store,
        name: &CatalogName,
        held: &BTreeMap<String, Sha256>,
        whole: bool,
    ) -> Result<(), PackError> {
        let pointer = Key::Current(name.clone());
        let bytes = document(store, &pointer)
            .await?
            .ok_or_else(|| PackError::Unknown(name.clone()))?;
        let damaged = || PackError::Snapshot(name.clone());
        let current = Current::from_bytes(&bytes).map_err(|_| damaged())?;
        let key = Key::Snapshot(name.clone(), current.content_hash);
        let snapshot_bytes = document(store, &key).await?.ok_or_else(damaged)?;
        if Sha256::of(&snapshot_bytes) != current.snapshot.sha256 {
            return Err(damaged());
        }
        let snapshot = Snapshot::from_bytes(&snapshot_bytes).map_err(|_| damaged())?;
        for named in snapshot.objects(name) {
            let known = held.get(&named.key.to_string()) == Some(&named.stored.sha256);
            if !known && (whole || !is_derived(&named.key)) && self.seen.insert(named.key.clone()) {
                self.objects.push(packed(&named.key, named.stored));
            }
        }
        self.catalogs.push(PackedCatalog {
            name: name.clone(),
            serial: current.serial,
            content_hash: current.content_hash,
        });
        let snapshot = self.document(&key, snapshot_bytes);
        self.snapshots.push(snapshot);
        let pointer = self.document(&pointer, bytes);
        self.pointers.push(pointer);
        Ok(())
    }

    fn document(&mut self, key: &Key, bytes: Bytes) -> PackedObject {
        let stored = Stored {
            size: bytes.len() as u64,
            sha256: Sha256::of(&bytes),
        };
        self.documents.insert(key.to_string(), bytes);
        packed(key, stored)
    }
}

fn packed(key: &Key, stored: Stored) -> PackedObject {
    PackedObject {
        key: key.to_string(),
        size: stored.size,
        sha256: stored.sha256,
        volume: 1,
    }
}

async fn document(store: &dyn Store, key: &Key) -> Result<Option<Bytes>, PackError> {
    match store.read_all(key, DOCUMENT_MAX).await {
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What the other side has, by key.
async fn held(store: &dyn Store, names: &[CatalogName], since: &Since) -> Result<BTreeMap<String, Sha256>, PackError> {
    let hashes = match since {
        Since::Nothing => return Ok(BTreeMap::new()),
        Since::Receipt(receipt) => return Ok(receipt.objects.clone()),
        Since::Contents(hashes) => hashes,
    };
    let mut held = BTreeMap::new();
    for hash in hashes {
        let mut found = false;
        for name in names {
            let key = Key::Snapshot(name.clone(), *hash);
            if let Some((snapshot, _)) = store.read_document::<Snapshot>(&key).await? {
                held.extend(shared(&snapshot, name));
                found = true;
            }
        }
        if !found {
            return Err(PackError::UnknownContent(*hash));
        }
    }
    Ok(held)
}

/// Fills one volume after the other, in order.
fn divide(manifest: &mut Manifest, volume_bytes: Option<u64>) -> Result<(), PackError> {
    for object in &manifest.objects {
        header(&object.key, object.size).map_err(|_| PackError::Name(object.key.clone()))?;
    }
    let Some(volume_bytes) = volume_bytes else {
        return Ok(());
    };
    let frame = frame(manifest);
    let (mut volume, mut filled) = (1, frame);
    for object in &mut manifest.objects {
        let needs = entry_size(object.size);
        if frame + needs > volume_bytes {
            return Err(PackError::VolumeSize {
                key: object.key.clone(),
                volume_bytes,
                needs: frame + needs,
            });
        }
        if filled + needs > volume_bytes {
            (volume, filled) = (volume + 1, frame);
        }
        filled += needs;
        object.volume = volume;
    }
    manifest.volumes = volume;
    Ok(())
}

/// What every volume has whatever it holds, with the longest numbers that there can be.
fn frame(manifest: &Manifest) -> u64 {
    let longest = u32::MAX;
    let mut manifest = manifest.clone();
    manifest.volumes = longest;
    manifest.objects.iter_mut().for_each(|object| object.volume = longest);
    let volume = Volume {
        volume: longest,
        manifest: Sha256::of(b""),
    };
    entry_size(manifest.to_bytes().len() as u64) + entry_size(volume.to_bytes().len() as u64) + END
}
