use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use model::{
    CatalogName, Current, Document, Hasher, Key, ObjectDigest, ObjectKey, Sha256, Snapshot,
};
use render::HashingWriter;
use store::{DOCUMENT_MAX, ReadError, Store, StoreExt, read_stored};
use tokio::runtime::Handle;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::format::{END, Volume, entry_size, header};
use super::{ArchiveError, Manifest, PackedCatalog, PackedObject, Receipt};

/// Options of an archive. The default packs all Shards into one volume.
#[derive(Debug, Clone, Default)]
pub struct PackOptions {
    /// States that the receiving store has, and whose objects are left out. Default: none, the
    /// archive is complete.
    pub since: Receipt,
    /// Packs `all.*`, the index and the image too. Default: false, the receiving side makes them
    /// from the Shards.
    pub whole: bool,
    /// Maximum size of a volume, in bytes. Default: none, one volume.
    pub volume_bytes: Option<u64>,
    /// Time that the manifest tells. Default: none, so that equal states make equal archives.
    pub exported_at: Option<SystemTime>,
}

/// A planned archive, ready to be written.
pub struct Pack {
    store: Arc<dyn Store>,
    manifest: Manifest,
    /// Bytes of `manifest.json`, equal in all volumes.
    manifest_bytes: Bytes,
    /// Pointers as they were read. A publication between planning and writing must not mix two
    /// states.
    documents: BTreeMap<String, Bytes>,
}

impl Pack {
    /// Decides which objects an archive of `names` holds, and in which volumes. Reads documents
    /// only.
    ///
    /// # Errors
    /// [`ArchiveError`] if the store fails, a catalog or a state is unknown, a document is damaged,
    /// or an object does not fit into a volume.
    pub async fn plan(
        store: Arc<dyn Store>,
        names: &[CatalogName],
        options: &PackOptions,
    ) -> Result<Self, ArchiveError> {
        let mut planning = Planning::default();
        for name in names {
            planning.add(&*store, name, options).await?;
        }
        let mut since: Vec<Sha256> = options
            .since
            .catalogs
            .iter()
            .map(|state| state.content_hash)
            .collect();
        // Content that was published several times counts once.
        since.dedup();
        let exported_at = options.exported_at.map(humantime::format_rfc3339_seconds);
        let mut manifest = Manifest {
            volumes: 1,
            catalogs: planning.catalogs,
            exported_at: exported_at.map(|time| time.to_string()),
            since,
            // Pointers last: a reader that unpacks the tar file into a folder then never sees a
            // pointer without its state.
            objects: [planning.snapshots, planning.objects, planning.pointers].concat(),
        };
        divide(&mut manifest, options.volume_bytes)?;
        Ok(Self {
            store,
            manifest_bytes: manifest.to_bytes().into(),
            manifest,
            documents: planning.documents,
        })
    }

    /// Returns the manifest of the archive.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes one volume, counted from 1, and returns its size and hash. Blocks; call it on a
    /// blocking thread of a runtime. After an error, discard everything that was written.
    ///
    /// # Errors
    /// An object that is not what the Snapshot says, [`ArchiveError::Write`],
    /// [`ArchiveError::Store`].
    pub fn write(&self, volume: u32, sink: impl Write) -> Result<ObjectDigest, ArchiveError> {
        let mut tar = tar::Builder::new(HashingWriter::new(sink));
        append(&mut tar, Manifest::NAME, &self.manifest_bytes)?;
        let document = Volume {
            volume,
            manifest: Sha256::of(&self.manifest_bytes),
        };
        append(&mut tar, Volume::NAME, &document.to_bytes())?;
        for object in self
            .manifest
            .objects
            .iter()
            .filter(|object| object.volume == volume)
        {
            match self.documents.get(&object.key) {
                Some(bytes) => append(&mut tar, &object.key, bytes)?,
                None => self.append_stored(&mut tar, object)?,
            }
        }
        let written = tar.into_inner().and_then(HashingWriter::finish);
        written.map_err(ArchiveError::Write)
    }

    fn append_stored(
        &self,
        tar: &mut tar::Builder<impl Write>,
        object: &PackedObject,
    ) -> Result<(), ArchiveError> {
        let damaged = || ArchiveError::damaged(&object.key);
        let key = Key::parse(&object.key).ok_or_else(damaged)?;
        let runtime = Handle::current();
        let body = match runtime.block_on(self.store.open(&key, None)) {
            Ok(found) if found.info.size == object.size => found.body,
            Err(error) if !error.is_not_found() => return Err(ReadError::from(error).into()),
            _ => return Err(damaged()),
        };
        let mut hasher = Hasher::new();
        let body = body.inspect_ok(|chunk| hasher.update(chunk));
        let stream = StreamReader::new(body.map_err(io::Error::other));
        let source = SyncIoBridge::new_with_handle(stream, runtime);
        let header = header(&object.key, object.size).map_err(ArchiveError::Write)?;
        tar.append(&header, source).map_err(ArchiveError::Write)?;
        if hasher.finish() == object.sha256 {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    path: &str,
    bytes: &[u8],
) -> Result<(), ArchiveError> {
    let header = header(path, bytes.len() as u64).map_err(ArchiveError::Write)?;
    tar.append(&header, bytes).map_err(ArchiveError::Write)
}

/// Objects of an archive that is being planned.
#[derive(Default)]
struct Planning {
    catalogs: Vec<PackedCatalog>,
    snapshots: Vec<PackedObject>,
    objects: Vec<PackedObject>,
    pointers: Vec<PackedObject>,
    documents: BTreeMap<String, Bytes>,
    seen: BTreeSet<Key>,
}

impl Planning {
    async fn add(
        &mut self,
        store: &dyn Store,
        name: &CatalogName,
        options: &PackOptions,
    ) -> Result<(), ArchiveError> {
        let pointer = Key::Current(name.clone());
        let bytes = match store.read_all(&pointer, DOCUMENT_MAX).await {
            Err(error) if error.is_not_found() => {
                return Err(ArchiveError::Refused(format!(
                    "the store has no catalog {name}"
                )));
            }
            read => read?.0,
        };
        let current = Current::from_bytes(&bytes).map_err(|_| ArchiveError::damaged(&pointer))?;
        let key = current.snapshot.key();
        let snapshot: Snapshot = match read_stored(store, &current.snapshot.digest).await {
            Err(error) if error.is_not_found() || error.is_damage() => {
                return Err(ArchiveError::damaged(&key));
            }
            read => read?,
        };
        for entry in snapshot.objects() {
            let key = entry.key();
            let is_there = options
                .since
                .objects
                .contains(&ObjectKey::from(entry.object));
            if !is_there
                && (options.whole || !snapshot.can_make(&key))
                && self.seen.insert(key.clone())
            {
                self.objects.push(packed(&key, entry.object.digest));
            }
        }
        self.catalogs.push(PackedCatalog::new(name, &current));
        // Two catalogs with the same content share one Snapshot.
        if self.seen.insert(key.clone()) {
            self.snapshots.push(packed(&key, current.snapshot.digest));
        }
        let pointer = packed(&pointer, ObjectDigest::of(&bytes));
        self.documents.insert(pointer.key.clone(), bytes);
        self.pointers.push(pointer);
        Ok(())
    }
}

fn packed(key: &Key, digest: ObjectDigest) -> PackedObject {
    PackedObject {
        key: key.to_string(),
        size: digest.size,
        sha256: digest.sha256,
        volume: 1,
    }
}

/// Assigns the objects to volumes, filling one volume after the other.
fn divide(manifest: &mut Manifest, volume_bytes: Option<u64>) -> Result<(), ArchiveError> {
    for object in &manifest.objects {
        header(&object.key, object.size).map_err(|_| {
            ArchiveError::Refused(format!(
                "the name of {} is too long for an archive",
                object.key
            ))
        })?;
    }
    let Some(volume_bytes) = volume_bytes else {
        return Ok(());
    };
    let empty = empty_volume_size(manifest);
    let mut volume = 1;
    let mut filled = empty;
    for object in &mut manifest.objects {
        let needs = entry_size(object.size);
        if empty + needs > volume_bytes {
            return Err(ArchiveError::Refused(format!(
                "{} does not fit into a volume of {volume_bytes} bytes; it takes {}",
                object.key,
                empty + needs
            )));
        }
        if filled + needs > volume_bytes {
            volume += 1;
            filled = empty;
        }
        filled += needs;
        object.volume = volume;
    }
    manifest.volumes = volume;
    Ok(())
}

/// Returns the size of a volume without objects.
fn empty_volume_size(manifest: &Manifest) -> u64 {
    // The numbers of the volumes are part of the manifest and are not known yet, so assume the
    // longest ones.
    let longest = u32::MAX;
    let mut manifest = manifest.clone();
    manifest.volumes = longest;
    manifest
        .objects
        .iter_mut()
        .for_each(|object| object.volume = longest);
    let volume = Volume {
        volume: longest,
        manifest: Sha256::of(b""),
    };
    entry_size(manifest.to_bytes().len() as u64) + entry_size(volume.to_bytes().len() as u64) + END
}
