use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    sync::Arc,
};

use layout::{Current, Document, DocumentError, Hasher, Key, Named, Sha256, Snapshot, Stored};
use store::DOCUMENT_MAX;

use super::{
    Manifest, PackedCatalog, PackedObject,
    manifest::{MANIFEST_MAX, Volume},
    tape::{BLOCK, END, MANIFEST, VOLUME, header},
};
use crate::{Flaw, check::Check, plan::is_derived};

/// Why an archive is refused. The store has not been touched.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file that cannot be read, or ends too early.
    #[error("{volume} cannot be read to its end")]
    Read {
        /// Its name.
        volume: String,
        /// Why.
        source: io::Error,
    },
    /// A file that is no volume of an archive, or not one that this program made.
    #[error("{volume} is not a volume of an archive: {what}")]
    Malformed {
        /// Its name.
        volume: String,
        /// What is wrong.
        what: String,
    },
    /// A document that cannot be used.
    #[error("{key} in the archive cannot be used")]
    Document {
        /// Which.
        key: String,
        /// What is wrong with it.
        source: DocumentError,
    },
    /// A volume of another archive.
    #[error("{0} belongs to another archive than the first file")]
    Foreign(String),
    /// The same volume twice.
    #[error("volume {0} was given twice")]
    Twice(u32),
    /// Volumes are missing.
    #[error("the archive has {of} volumes, and volume {missing} was not given")]
    Incomplete {
        /// The first that is missing.
        missing: u32,
        /// How many there are.
        of: u32,
    },
    /// An object that is not what the manifest or the snapshot says.
    #[error("{key} in the archive is not what it should be")]
    Flawed {
        /// Its key.
        key: String,
        /// What is wrong with it.
        source: Flaw,
    },
    /// An object that no catalog of the archive names, or names differently.
    #[error("{0} has no place in the archive: no snapshot in it names it so")]
    Unnamed(String),
    /// Documents of one catalog that do not belong together.
    #[error("the documents of {0} in the archive are missing or do not belong together")]
    Disagrees(String),
}

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
    file: usize,
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
        let manifest = opening.finish()?;
        let archive = Self {
            manifest,
            files,
            extents: opening.extents,
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
        read.map_err(|source| unreadable(&key.to_string(), source))?;
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
            .map_err(|source| unreadable(&key, source))?;
        let mut check = Check::new(named);
        let mut block = vec![0; 64 << 10];
        loop {
            match reader.read(&mut block).map_err(|source| unreadable(&key, source))? {
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

/// What is known after some of the volumes.
#[derive(Default)]
struct Opening {
    manifest: Option<(Vec<u8>, Manifest)>,
    seen: Vec<u32>,
    extents: HashMap<Key, Extent>,
}

impl Opening {
    /// Reads one volume. Every byte of it is either checked against a hash or known beforehand.
    fn volume(&mut self, name: &str, file: &File, at: usize) -> Result<(), ArchiveError> {
        let mut tape = Tape::new(name, file);
        let manifest_bytes = tape.document(MANIFEST, MANIFEST_MAX)?;
        let manifest_sha256 = Sha256::of(&manifest_bytes);
        let objects = self.manifest(name, manifest_bytes)?;
        let volume: Volume = tape_document(&tape.document(VOLUME, BLOCK)?, VOLUME)?;
        if volume.manifest != manifest_sha256 {
            return Err(tape.malformed("its manifest is not the one that it was made with".to_owned()));
        }
        if self.seen.contains(&volume.volume) {
            return Err(ArchiveError::Twice(volume.volume));
        }
        self.seen.push(volume.volume);
        for object in objects.iter().filter(|object| object.volume == volume.volume) {
            let key = Key::parse(&object.key).ok_or_else(|| ArchiveError::Unnamed(object.key.clone()))?;
            let offset = tape.object(object)?;
            let stored = Stored {
                size: object.size,
                sha256: object.sha256,
            };
            let extent = Extent {
                file: at,
                offset,
                stored,
            };
            if self.extents.insert(key, extent).is_some() {
                return Err(tape.malformed(format!("{} is in it twice", object.key)));
            }
        }
        tape.end()
    }

    /// Takes the first manifest, and compares the others with it.
    fn manifest(&mut self, name: &str, bytes: Vec<u8>) -> Result<Vec<PackedObject>, ArchiveError> {
        match &self.manifest {
            Some((first, manifest)) if *first == bytes => Ok(manifest.objects.clone()),
            Some(_) => Err(ArchiveError::Foreign(name.to_owned())),
            None => {
                let manifest: Manifest = tape_document(&bytes, MANIFEST)?;
                let objects = manifest.objects.clone();
                self.manifest = Some((bytes, manifest));
                Ok(objects)
            }
        }
    }

    fn finish(&mut self) -> Result<Manifest, ArchiveError> {
        let (_, manifest) = self
            .manifest
            .take()
            .ok_or(ArchiveError::Incomplete { missing: 1, of: 1 })?;
        let of = manifest.volumes;
        if let Some(missing) = (1..=of).find(|volume| !self.seen.contains(volume)) {
            return Err(ArchiveError::Incomplete { missing, of });
        }
        // An object in a volume beyond the last one would be missed above.
        match manifest
            .objects
            .iter()
            .find(|object| !(1..=of).contains(&object.volume))
        {
            Some(object) => Err(ArchiveError::Unnamed(object.key.clone())),
            None => Ok(manifest),
        }
    }
}

/// A volume that is being read from its beginning.
struct Tape<'a> {
    name: &'a str,
    file: BufReader<&'a File>,
    offset: u64,
}

impl<'a> Tape<'a> {
    fn new(name: &'a str, file: &'a File) -> Self {
        Self {
            name,
            file: BufReader::with_capacity(64 << 10, file),
            offset: 0,
        }
    }

    /// An entry whose size only its header tells.
    fn document(&mut self, path: &str, max: u64) -> Result<Vec<u8>, ArchiveError> {
        let block = self.block()?;
        let size = tar::Header::from_byte_slice(&block).entry_size().unwrap_or(u64::MAX);
        if size > max {
            return Err(self.malformed(format!("there is no {path} where one should be")));
        }
        self.expect_header(&block, path, size)?;
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(size).read_to_end(&mut bytes);
        read.map_err(|source| unreadable(self.name, source))?;
        if bytes.len() as u64 != size {
            return Err(unreadable(self.name, io::ErrorKind::UnexpectedEof.into()));
        }
        self.offset += size;
        self.fill(size)?;
        Ok(bytes)
    }

    /// Checks an entry that the manifest describes, and returns where its content starts.
    fn object(&mut self, object: &PackedObject) -> Result<u64, ArchiveError> {
        let block = self.block()?;
        self.expect_header(&block, &object.key, object.size)?;
        let offset = self.offset;
        let mut hasher = Hasher::new();
        let mut left = object.size;
        let mut block = vec![0; 64 << 10];
        while left > 0 {
            let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.exact(&mut block[..length])?;
            hasher.update(&block[..length]);
            left -= length as u64;
        }
        self.fill(object.size)?;
        let sha256 = hasher.finish();
        if sha256 == object.sha256 {
            return Ok(offset);
        }
        Err(ArchiveError::Flawed {
            key: object.key.clone(),
            source: Flaw::Stored {
                found: object.size,
                sha256,
                recorded: Stored {
                    size: object.size,
                    sha256: object.sha256,
                },
            },
        })
    }

    /// There is one header that an entry can have.
    fn expect_header(&self, block: &[u8; BLOCK as usize], path: &str, size: u64) -> Result<(), ArchiveError> {
        let expected = header(path, size).map_err(|_| self.malformed(format!("{path:?} is no path")))?;
        if expected.as_bytes() == block {
            return Ok(());
        }
        Err(self.malformed(format!("the header of {path} is not the one that it should have")))
    }

    fn block(&mut self) -> Result<[u8; BLOCK as usize], ArchiveError> {
        let mut block = [0; BLOCK as usize];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), ArchiveError> {
        let read = self.file.read_exact(buffer);
        read.map_err(|source| unreadable(self.name, source))?;
        self.offset += buffer.len() as u64;
        Ok(())
    }

    fn fill(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.zeros(size.next_multiple_of(BLOCK) - size)
    }

    fn zeros(&mut self, count: u64) -> Result<(), ArchiveError> {
        let mut bytes = vec![0; count as usize];
        self.exact(&mut bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(self.malformed("there is something where nothing should be".to_owned()))
    }

    fn end(&mut self) -> Result<(), ArchiveError> {
        self.zeros(END)?;
        let more = self
            .file
            .read(&mut [0])
            .map_err(|source| unreadable(self.name, source))?;
        if more == 0 {
            return Ok(());
        }
        Err(self.malformed("it goes on after its end".to_owned()))
    }

    fn malformed(&self, what: String) -> ArchiveError {
        ArchiveError::Malformed {
            volume: self.name.to_owned(),
            what,
        }
    }
}

fn unreadable(volume: &str, source: io::Error) -> ArchiveError {
    ArchiveError::Read {
        volume: volume.to_owned(),
        source,
    }
}

fn parse<T: Document>(key: &Key, bytes: &[u8]) -> Result<T, ArchiveError> {
    T::from_bytes(bytes).map_err(|source| ArchiveError::Document {
        key: key.to_string(),
        source,
    })
}

/// A document of the archive itself. Nothing may be in it that is not understood.
fn tape_document<T: Document>(bytes: &[u8], path: &str) -> Result<T, ArchiveError> {
    let document = T::from_bytes(bytes).map_err(|source| ArchiveError::Document {
        key: path.to_owned(),
        source,
    })?;
    if document.to_bytes() == bytes {
        return Ok(document);
    }
    Err(ArchiveError::Malformed {
        volume: path.to_owned(),
        what: "it is written in another way than this program writes it".to_owned(),
    })
}
