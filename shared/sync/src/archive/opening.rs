use std::{collections::HashMap, fs::File};

use layout::{Document, Key, Sha256, Stored};

use super::{
    ArchiveError, Manifest, PackedObject,
    entries::Entries,
    manifest::{MANIFEST_MAX, Volume},
    read::Extent,
    tape::{BLOCK, MANIFEST, VOLUME},
};

/// What is known after some of the volumes.
#[derive(Default)]
pub(super) struct Opening {
    manifest: Option<(Vec<u8>, Manifest)>,
    seen: Vec<u32>,
    extents: HashMap<Key, Extent>,
}

impl Opening {
    /// Reads one volume. Every byte of it is either checked against a hash or known beforehand.
    pub(super) fn volume(&mut self, name: &str, file: &File, at: usize) -> Result<(), ArchiveError> {
        let mut entries = Entries::new(name, file);
        let manifest_bytes = entries.document(MANIFEST, MANIFEST_MAX)?;
        let manifest_sha256 = Sha256::of(&manifest_bytes);
        let objects = self.manifest(name, manifest_bytes)?;
        let volume: Volume = own_document(&entries.document(VOLUME, BLOCK)?, VOLUME)?;
        if volume.manifest != manifest_sha256 {
            return Err(entries.malformed("its manifest is not the one that it was made with".to_owned()));
        }
        if self.seen.contains(&volume.volume) {
            return Err(ArchiveError::Twice(volume.volume));
        }
        self.seen.push(volume.volume);
        for object in objects.iter().filter(|object| object.volume == volume.volume) {
            let key = Key::parse(&object.key).ok_or_else(|| ArchiveError::Unnamed(object.key.clone()))?;
            let offset = entries.object(object)?;
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
                return Err(entries.malformed(format!("{} is in it twice", object.key)));
            }
        }
        entries.end()
    }

    /// Takes the first manifest, and compares the others with it.
    fn manifest(&mut self, name: &str, bytes: Vec<u8>) -> Result<Vec<PackedObject>, ArchiveError> {
        match &self.manifest {
            Some((first, manifest)) if *first == bytes => Ok(manifest.objects.clone()),
            Some(_) => Err(ArchiveError::Foreign(name.to_owned())),
            None => {
                let manifest: Manifest = own_document(&bytes, MANIFEST)?;
                let objects = manifest.objects.clone();
                self.manifest = Some((bytes, manifest));
                Ok(objects)
            }
        }
    }

    /// The manifest, and where all objects lie.
    pub(super) fn finish(self) -> Result<(Manifest, HashMap<Key, Extent>), ArchiveError> {
        let (_, manifest) = self.manifest.ok_or(ArchiveError::Incomplete { missing: 1, of: 1 })?;
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
            None => Ok((manifest, self.extents)),
        }
    }
}

/// A document of the archive itself. Nothing may be in it that is not understood.
fn own_document<T: Document>(bytes: &[u8], path: &str) -> Result<T, ArchiveError> {
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
