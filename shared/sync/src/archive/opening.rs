use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
};

use model::{Document, Key, Sha256};

use super::{
    ArchiveError, Manifest, PackedObject,
    manifest::{MANIFEST_MAX, Volume},
    read::Extent,
    tar_format::{BLOCK, MANIFEST, VOLUME, VolumeReader},
};

/// State of opening an archive, after some of its volumes.
#[derive(Default)]
pub(super) struct Opening {
    manifest: Option<(Vec<u8>, Manifest)>,
    volumes: BTreeSet<u32>,
    extents: HashMap<Key, Extent>,
}

impl Opening {
    /// Reads one volume, which was given as number `index` (from 0). Every byte is either checked against a hash or known beforehand.
    pub(super) fn volume(&mut self, name: &str, file: &File, index: usize) -> Result<(), ArchiveError> {
        let mut reader = VolumeReader::new(name, file);
        let manifest_bytes = reader.document(MANIFEST, MANIFEST_MAX)?;
        let manifest_sha256 = Sha256::of(&manifest_bytes);
        let objects = self.manifest(name, manifest_bytes)?;
        let volume: Volume = own_document(&reader.document(VOLUME, BLOCK)?, VOLUME)?;
        if volume.manifest != manifest_sha256 {
            return Err(reader.malformed("its manifest is not the one that it was written with".to_owned()));
        }
        if !self.volumes.insert(volume.volume) {
            return Err(ArchiveError::Twice(volume.volume));
        }
        for object in objects.iter().filter(|object| object.volume == volume.volume) {
            let key = Key::parse(&object.key).ok_or_else(|| ArchiveError::Unnamed(object.key.clone()))?;
            let extent = Extent {
                file: index,
                offset: reader.object(object)?,
                digest: object.digest(),
            };
            if self.extents.insert(key, extent).is_some() {
                return Err(reader.malformed(format!("it holds {} twice", object.key)));
            }
        }
        reader.end()
    }

    /// Keeps the first manifest and compares the others with it.
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

    /// Returns the manifest and the place of every object, once all volumes were read.
    pub(super) fn finish(self) -> Result<(Manifest, HashMap<Key, Extent>), ArchiveError> {
        let (_, manifest) = self.manifest.ok_or(ArchiveError::Incomplete { missing: 1, of: 1 })?;
        let of = manifest.volumes;
        if let Some(missing) = (1..=of).find(|volume| !self.volumes.contains(volume)) {
            return Err(ArchiveError::Incomplete { missing, of });
        }
        // The search above does not see an object in a volume beyond the last one.
        let beyond = |object: &&PackedObject| !(1..=of).contains(&object.volume);
        match manifest.objects.iter().find(beyond) {
            Some(object) => Err(ArchiveError::Unnamed(object.key.clone())),
            None => Ok((manifest, self.extents)),
        }
    }
}

/// Parses a document of the archive itself. It must be written as this program writes it, so that it holds no field that
/// this program does not understand.
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
        reason: "it is not written as this program writes it".to_owned(),
    })
}
