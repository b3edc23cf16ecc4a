use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};
use model::{Document, Key, Kind, ManifestEntry, ObjectDigest, Sha256};
use store::{
    Fetched, Get, Object, ObjectInfo, Operation, ReadStore, StoreError, StoreExt, Version,
    file_chunks,
};
use tar::{Entries, Entry};
use upkeep::{ObjectProblem, check_body};

use super::format::{BLOCK, END, MANIFEST_MAX, Volume, entry_size};
use super::{ArchiveError, Manifest, PackedCatalog};
use crate::http::{object_info, version};
use crate::{ReadCatalog, SyncError};

/// One file of an archive: its name for messages, and the open file.
pub type VolumeFile = (String, File);

/// An archive of which every object was checked.
#[derive(Debug)]
pub struct Archive {
    manifest: Manifest,
    extents: HashMap<Key, Extent>,
}

/// Reason for which a derived object of an archive cannot be read.
const NOT_PACKED: &str = "another version of the program exported it with other bytes, and the \
                          archive does not hold them: export with --whole, or carry out again";

/// Place of an object in the files of an archive.
#[derive(Debug)]
struct Extent {
    file: Arc<File>,
    range: Range<u64>,
    version: Version,
}

impl Archive {
    /// Reads all volumes, in any order, and checks everything that needs no store: the archive is
    /// complete, and every object is one that a Snapshot of the archive names, with the recorded
    /// content. Memory is bounded by the documents.
    ///
    /// # Errors
    /// The first difference.
    pub async fn open(volumes: Vec<VolumeFile>) -> Result<Arc<Self>, SyncError> {
        let mut archive = Self {
            manifest: Manifest::default(),
            extents: HashMap::new(),
        };
        let mut given = BTreeSet::new();
        for (name, file) in volumes {
            archive.read_volume(&name, &Arc::new(file), &mut given)?;
        }
        let of = archive.manifest.volumes.max(1);
        if let Some(missing) = (1..=of).find(|volume| !given.contains(volume)) {
            let reason =
                format!("the archive has {of} volumes, and volume {missing} was not given");
            return Err(ArchiveError::Refused(reason).into());
        }
        let archive = Arc::new(archive);
        archive.check().await?;
        Ok(archive)
    }

    /// Notes the place of each object of one volume. The content is not read yet.
    fn read_volume(
        &mut self,
        name: &str,
        file: &Arc<File>,
        given: &mut BTreeSet<u32>,
    ) -> Result<(), ArchiveError> {
        let mut tar = tar::Archive::new(&**file);
        let entries = tar.entries_with_seek();
        // Raw: an extended header is an entry that no manifest lists.
        let mut entries = entries
            .map_err(|source| ArchiveError::read(name, source))?
            .raw(true);
        let (manifest, bytes): (Manifest, _) = document(&mut entries, name, MANIFEST_MAX)?;
        let (volume, volume_bytes): (Volume, _) = document(&mut entries, name, BLOCK)?;
        let mut end = entry_size(bytes.len() as u64) + entry_size(volume_bytes.len() as u64);
        let malformed = |reason: &str| Err(ArchiveError::malformed(name, reason));
        if volume.manifest != Sha256::of(&bytes) {
            return malformed("its manifest is not the one that it was written with");
        }
        if !given.is_empty() && self.manifest != manifest {
            let reason = format!("{name} belongs to another archive than the first file");
            return Err(ArchiveError::Refused(reason));
        }
        if !given.insert(volume.volume) {
            let reason = format!("volume {} was given twice", volume.volume);
            return Err(ArchiveError::Refused(reason));
        }
        for object in manifest
            .objects
            .iter()
            .filter(|object| object.volume == volume.volume)
        {
            let key = Key::parse(&object.key).ok_or_else(|| ArchiveError::unnamed(&object.key))?;
            let entry = next(&mut entries, name, &object.key)?;
            let start = entry.raw_file_position();
            let extent = Extent {
                file: Arc::clone(file),
                range: start..start + entry.size(),
                version: version(object.sha256),
            };
            if entry.size() != object.size || self.extents.insert(key, extent).is_some() {
                return malformed(&format!("its manifest is wrong about {}", object.key));
            }
            end += entry_size(object.size);
        }
        let metadata = file
            .metadata()
            .map_err(|source| ArchiveError::read(name, source))?;
        if entries.next().is_some() || metadata.len() != end + END {
            return malformed("it was cut off, or holds more than its manifest lists");
        }
        self.manifest = manifest;
        Ok(())
    }

    /// Returns the manifest of the archive.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// True if the archive brings objects that could be made from the Shards.
    pub(super) fn is_whole(&self) -> bool {
        // Some facts cannot be made from the Shards, and each archive has them.
        let mut keys = self.extents.keys();
        keys.any(|key| key.is_derived() && !matches!(key, Key::Object(Kind::Facts, _)))
    }

    /// True if the archive holds an object.
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.extents.contains_key(key)
    }

    /// Checks that every object is one that a Snapshot of the archive names, and has the content
    /// that it records.
    async fn check(self: &Arc<Self>) -> Result<(), SyncError> {
        let mut expected: BTreeMap<Key, Option<ManifestEntry>> = BTreeMap::new();
        for packed in &self.manifest.catalogs {
            let catalog = ReadCatalog::open(self.clone(), &packed.name).await?;
            let ReadCatalog::Published { state, snapshot } = catalog else {
                return Err(SyncError::UnknownCatalog(packed.name.clone()));
            };
            if PackedCatalog::new(&packed.name, state.current()) != *packed {
                return Err(SyncError::Disagrees(packed.name.clone()));
            }
            // Nothing describes these two but the manifest.
            let documents = [
                Key::Current(packed.name.clone()),
                state.current().snapshot.key(),
            ];
            expected.extend(documents.map(|key| (key, None)));
            let entries = snapshot.objects().into_iter();
            expected.extend(entries.map(|entry| (entry.key(), Some(entry))));
        }
        for object in &self.manifest.objects {
            let unnamed = || ArchiveError::unnamed(&object.key);
            let key = Key::parse(&object.key).ok_or_else(unnamed)?;
            let checked = match expected.get(&key) {
                Some(None) => {
                    let read = self.read_all(&key, object.size).await;
                    let (bytes, _) = read.map_err(SyncError::origin)?;
                    let found = ObjectDigest::of(&bytes);
                    let is_right = found == object.digest();
                    is_right.then_some(()).ok_or(ObjectProblem::Hash { found })
                }
                Some(Some(entry)) if entry.object.digest == object.digest() => {
                    let opened = self.open(&key, None).await.map_err(SyncError::origin)?;
                    let checked = check_body(entry, opened.body).await;
                    checked.map_err(SyncError::origin)?
                }
                _ => return Err(unnamed().into()),
            };
            checked.map_err(SyncError::damaged(&object.key))?;
        }
        Ok(())
    }
}

/// Reads an archive like any store. An object that is not in it is not found. The version of an
/// object is the hash of its bytes.
#[async_trait]
impl ReadStore for Archive {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        let Some(extent) = self.extents.get(key) else {
            if key.is_derived() {
                // Asked for only after it could not be made from the Shards.
                return Err(StoreError::failed(Operation::Get, key, NOT_PACKED));
            }
            return Err(StoreError::not_found(key));
        };
        if get.unless.as_ref() == Some(&extent.version) {
            return Ok(Fetched::NotModified);
        }
        let info = extent.info();
        let part = get.resolve(info.size, key)?;
        let start = extent.range.start;
        let chunks = file_chunks(extent.file.clone(), start + part.start..start + part.end);
        let key = key.clone();
        let body = chunks.map_err(move |error| StoreError::failed(Operation::Get, &key, error));
        Ok(Fetched::Object(Object {
            info,
            body: body.boxed(),
        }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        Ok(self.extents.get(key).map(Extent::info))
    }
}

impl Extent {
    fn info(&self) -> ObjectInfo {
        object_info(self.range.end - self.range.start, self.version.clone())
    }
}

/// Returns the next entry of a volume, which must be the file `path`.
fn next<'a>(
    entries: &mut Entries<'a, &'a File>,
    volume: &str,
    path: &str,
) -> Result<Entry<'a, &'a File>, ArchiveError> {
    let missing = || ArchiveError::malformed(volume, &format!("{path} is not where it must be"));
    let entry = entries.next().ok_or_else(missing)?;
    let entry = entry.map_err(|source| ArchiveError::read(volume, source))?;
    if entry.header().entry_type().is_file() && *entry.path_bytes() == *path.as_bytes() {
        Ok(entry)
    } else {
        Err(missing())
    }
}

/// Reads the next entry of a volume, which must be a document of at most `max` bytes. Returns it
/// with its bytes.
fn document<'a, T: Document>(
    entries: &mut Entries<'a, &'a File>,
    volume: &str,
    max: u64,
) -> Result<(T, Vec<u8>), ArchiveError> {
    let mut entry = next(entries, volume, T::NAME)?;
    if entry.size() > max {
        return Err(ArchiveError::malformed(
            volume,
            &format!("{} is too large", T::NAME),
        ));
    }
    let mut bytes = Vec::new();
    let read = entry.read_to_end(&mut bytes);
    read.map_err(|source| ArchiveError::read(volume, source))?;
    let document = T::from_bytes(&bytes).map_err(|source| ArchiveError::Document {
        name: T::NAME,
        source,
    })?;
    Ok((document, bytes))
}
