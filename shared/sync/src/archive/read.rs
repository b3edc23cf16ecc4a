use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    sync::Arc,
};

use model::{Current, Document, DocumentError, Key, ManifestEntry, ObjectDigest, Snapshot, StoredDocument};
use store::DOCUMENT_MAX;
use upkeep::IntegrityCheck;

use super::{ArchiveError, Manifest, PackedCatalog, opening::Opening, tar_format::READ_BYTES};

/// One file of an archive: its name for messages, and the open file.
pub type VolumeFile = (String, File);

/// An archive that was checked from the first byte to the last.
#[derive(Debug)]
pub struct Archive {
    manifest: Manifest,
    files: Vec<Arc<File>>,
    extents: HashMap<Key, Extent>,
}

/// Place of an object in the files of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) digest: ObjectDigest,
}

impl Archive {
    /// Reads all volumes, in any order, and checks everything that needs no store: the archive is complete, every byte is
    /// as the manifest says, and every object is one that a Snapshot of the archive names. Memory is bounded by the
    /// documents. Blocks.
    ///
    /// # Errors
    /// [`ArchiveError`] for the first difference.
    pub fn open(volumes: Vec<VolumeFile>) -> Result<Self, ArchiveError> {
        let mut opening = Opening::default();
        let mut files = Vec::new();
        for (name, file) in volumes {
            opening.volume(&name, &file, files.len())?;
            files.push(Arc::new(file));
        }
        let (manifest, extents) = opening.finish()?;
        let archive = Self {
            manifest,
            files,
            extents,
        };
        archive.check_objects()?;
        Ok(archive)
    }

    /// Returns the manifest of the archive.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// True if the archive brings objects that could be made from the Shards.
    pub(super) fn is_whole(&self) -> bool {
        self.extents.keys().any(Key::is_derived)
    }

    pub(super) fn extent(&self, key: &Key) -> Option<(Arc<File>, Extent)> {
        let extent = self.extents.get(key)?;
        Some((self.files[extent.file].clone(), *extent))
    }

    /// Checks that every object is one that a Snapshot of the archive names, and has the content that it records.
    fn check_objects(&self) -> Result<(), ArchiveError> {
        let mut expected: BTreeMap<Key, Option<ManifestEntry>> = BTreeMap::new();
        for catalog in &self.manifest.catalogs {
            let (current, snapshot) = self.documents(catalog)?;
            expected.extend([
                (Key::Current(catalog.name.clone()), None),
                (current.snapshot.key(), None),
            ]);
            let entries = snapshot.objects().into_iter();
            expected.extend(entries.map(|entry| (entry.key(), Some(entry))));
        }
        for (key, extent) in &self.extents {
            match expected.get(key) {
                Some(None) => {}
                Some(Some(entry)) if entry.object.digest == extent.digest => self.check_content(entry, extent)?,
                _ => return Err(ArchiveError::Unnamed(key.to_string())),
            }
        }
        Ok(())
    }

    /// Reads the pointer and the Snapshot of a catalog.
    fn documents(&self, catalog: &PackedCatalog) -> Result<(Current, Snapshot), ArchiveError> {
        let pointer = Key::Current(catalog.name.clone());
        let (bytes, _) = self.document(&pointer)?;
        let current = Current::from_bytes(&bytes).map_err(|source| unusable(&pointer, source))?;
        let key = current.snapshot.key();
        let (bytes, digest) = self.document(&key)?;
        let snapshot = Snapshot::from_stored(&bytes).map_err(|source| unusable(&key, source))?;
        // The extent has the hash of the bytes, and the pointer names that hash.
        let belong = current.content_hash == catalog.content_hash
            && current.serial == catalog.serial
            && current.snapshot.digest == digest
            && snapshot.content_hash == catalog.content_hash;
        if belong {
            Ok((current, snapshot))
        } else {
            Err(ArchiveError::Disagrees(catalog.name.to_string()))
        }
    }

    fn document(&self, key: &Key) -> Result<(Vec<u8>, ObjectDigest), ArchiveError> {
        let extent = self.extents.get(key);
        let extent = extent.filter(|extent| extent.digest.size <= DOCUMENT_MAX);
        let extent = extent.ok_or_else(|| ArchiveError::Disagrees(key.to_string()))?;
        let mut bytes = Vec::with_capacity(extent.digest.size as usize);
        let reader = self.reader(extent);
        let read = reader.and_then(|mut reader| reader.read_to_end(&mut bytes));
        read.map_err(|source| ArchiveError::read(&key.to_string(), source))?;
        Ok((bytes, extent.digest))
    }

    fn check_content(&self, entry: &ManifestEntry, extent: &Extent) -> Result<(), ArchiveError> {
        let key = entry.key().to_string();
        let unreadable = |source| ArchiveError::read(&key, source);
        let damaged = |source| ArchiveError::Content {
            key: key.clone(),
            source,
        };
        let mut reader = self.reader(extent).map_err(unreadable)?;
        let mut check = IntegrityCheck::new(entry);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match reader.read(&mut buffer).map_err(unreadable)? {
                0 => return check.finish().map_err(damaged),
                length => check.update(&buffer[..length]).map_err(damaged)?,
            }
        }
    }

    fn reader(&self, extent: &Extent) -> io::Result<impl Read> {
        let mut file = &*self.files[extent.file];
        file.seek(SeekFrom::Start(extent.offset))?;
        Ok(BufReader::with_capacity(READ_BYTES, file.take(extent.digest.size)))
    }
}

fn unusable(key: &Key, source: DocumentError) -> ArchiveError {
    ArchiveError::Document {
        key: key.to_string(),
        source,
    }
}
