use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    sync::Arc,
};

use layout::{Current, Document, Key, Named, Sha256, Snapshot, Stored};
use store::DOCUMENT_MAX;

use super::{ArchiveError, Manifest, PackedCatalog, opening::Opening};
use crate::{check::Check, plan::is_derived};

/// One file of an archive: what people call it, and its bytes.
pub type VolumeFile = (String, File);

/// An archive that was checked from the first byte to the last.
#[derive(Debug)]
pub struct Archive {
    manifest: Manifest,
    files: Vec<Arc<File>>,
    extents: HashMap<Key, Extent>,
}

/// Where an object lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) stored: Stored,
}

impl Archive {
    /// Reads all volumes, in any order, and checks everything that can be checked without a store: that they are
    /// complete, that every byte is as the manifest says, and that the manifest says what the snapshots say. Memory is
    /// bounded by the documents. Blocks.
    ///
    /// # Errors
    /// [`ArchiveError`].
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
        archive.check_named()?;
        Ok(archive)
    }

    /// What the archive says of itself.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether it brings what could be made of the Shards.
    pub(super) fn is_whole(&self) -> bool {
        self.extents.keys().any(is_derived)
    }

    pub(super) fn extent(&self, key: &Key) -> Option<(Arc<File>, Extent)> {
        let extent = self.extents.get(key)?;
        Some((self.files[extent.file].clone(), *extent))
    }

    /// Every object must be what a snapshot of the archive names, and hold what its name says.
    fn check_named(&self) -> Result<(), ArchiveError> {
        let mut named: BTreeMap<Key, Option<Named>> = BTreeMap::new();
        for catalog in &self.manifest.catalogs {
            let (pointer, key, snapshot) = self.documents(catalog)?;
            named.extend([(pointer, None), (key, None)]);
            let objects = snapshot.objects(&catalog.name).into_iter();
            named.extend(objects.map(|object| (object.key.clone(), Some(object))));
        }
        for (key, extent) in &self.extents {
            match named.get(key) {
                Some(None) => {}
                Some(Some(named)) if named.stored == extent.stored => self.check_content(named)?,
                _ => return Err(ArchiveError::Unnamed(key.to_string())),
            }
        }
        Ok(())
    }

    fn documents(&self, catalog: &PackedCatalog) -> Result<(Key, Key, Snapshot), ArchiveError> {
        let disagrees = || ArchiveError::Disagrees(catalog.name.to_string());
        let pointer = Key::Current(catalog.name.clone());
        let current: Current = parse(&pointer, &self.document(&pointer)?)?;
        let key = Key::Snapshot(catalog.name.clone(), catalog.content_hash);
        let bytes = self.document(&key)?;
        let snapshot: Snapshot = parse(&key, &bytes)?;
        let belong = current.content_hash == catalog.content_hash
            && current.serial == catalog.serial
            && current.snapshot.key == key.to_string()
            && current.snapshot.sha256 == Sha256::of(&bytes)
            && snapshot.content_hash == catalog.content_hash;
        if belong {
            Ok((pointer, key, snapshot))
        } else {
            Err(disagrees())
        }
    }

    fn document(&self, key: &Key) -> Result<Vec<u8>, ArchiveError> {
        let extent = self
            .extents
            .get(key)
            .filter(|extent| extent.stored.size <= DOCUMENT_MAX);
        let extent = extent.ok_or_else(|| ArchiveError::Disagrees(key.to_string()))?;
        let mut bytes = Vec::with_capacity(extent.stored.size as usize);
        let read = self
            .reader(extent)
            .and_then(|mut reader| reader.read_to_end(&mut bytes));
        read.map_err(|source| ArchiveError::unreadable(&key.to_string(), source))?;
        Ok(bytes)
    }

    fn check_content(&self, named: &Named) -> Result<(), ArchiveError> {
        let key = named.key.to_string();
        let flawed = |source| ArchiveError::Flawed {
            key: key.clone(),
            source,
        };
        let mut reader = self
            .reader(&self.extents[&named.key])
            .map_err(|source| ArchiveError::unreadable(&key, source))?;
        let mut check = Check::new(named);
        let mut block = vec![0; 64 << 10];
        loop {
            match reader
                .read(&mut block)
                .map_err(|source| ArchiveError::unreadable(&key, source))?
            {
                0 => return check.finish().map_err(flawed),
                length => check.update(&block[..length]).map_err(flawed)?,
            }
        }
    }

    fn reader(&self, extent: &Extent) -> io::Result<impl Read> {
        let mut file = &*self.files[extent.file];
        file.seek(SeekFrom::Start(extent.offset))?;
        Ok(BufReader::with_capacity(64 << 10, file.take(extent.stored.size)))
    }
}

fn parse<T: Document>(key: &Key, bytes: &[u8]) -> Result<T, ArchiveError> {
    T::from_bytes(bytes).map_err(|source| ArchiveError::Document {
        key: key.to_string(),
        source,
    })
}
