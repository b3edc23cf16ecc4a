use std::cmp::Ordering;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::{ops::Range, sync::Arc};

use fbc::{DocumentPosition, Meta, walk_order};
use model::{Content, IndexedMeta, ObjectDigest, Sha256};
use parking_lot::Mutex;
use tempfile::SpooledTempFile;

use crate::ShardPart;

/// The lines of one Package that one chunk of one file holds.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) place: Arc<ChunkPlace>,
    /// Name of the Package; empty for the global group.
    pub(crate) group: Arc<str>,
    /// Position of each line in this fragment.
    pub(crate) metas: Arc<Vec<IndexedMeta>>,
    /// Position of each Meta in its file; empty unless the settings ask for it.
    pub(crate) positions: Arc<[DocumentPosition]>,
    /// Size of the uncompressed lines, in bytes.
    pub(crate) size: u64,
    /// Hash and size of the uncompressed lines, if they are all of their file about the Package:
    /// most likely the whole Shard.
    pub(crate) whole: Option<Content>,
    /// The lines in a published Shard, if they were not parsed.
    pub(crate) published: Option<Box<ShardPart>>,
    /// The lines, or the published Shard that they are a part of.
    pub(crate) body: CompressedLines,
}

/// The chunk that a fragment comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkPlace {
    pub(crate) path: Arc<str>,
    /// Number of the chunk in its file, from 0.
    pub(crate) part: usize,
    /// Hash of the chunk, if chunks are hashed.
    pub(crate) hash: Option<Sha256>,
}

impl ChunkPlace {
    pub(crate) fn new(path: &Arc<str>, part: usize, hash: Option<Sha256>) -> Arc<Self> {
        let path = path.clone();
        Arc::new(Self { path, part, hash })
    }

    /// Compares two chunks in the order in which their files are read.
    pub(crate) fn walk_order(&self, other: &Self) -> Ordering {
        walk_order(&self.path, &other.path).then(self.part.cmp(&other.part))
    }
}

/// Lines of one Package, compressed as one zstd frame.
#[derive(Debug, Clone)]
pub(crate) enum CompressedLines {
    /// The store already has a Shard with these lines.
    Stored(ObjectDigest),
    /// Position in the [`Scratch`] of the rendering.
    New(Range<u64>),
}

/// Returns the entry of a Meta whose line starts at `offset`.
pub(crate) fn indexed(meta: &Meta<'_>, offset: u64) -> IndexedMeta {
    IndexedMeta {
        schema: meta.schema.to_owned(),
        package: meta.package.to_owned(),
        name: meta.name.to_owned(),
        offset,
        length: meta.line.len() as u64,
    }
}

/// The lines of one Package in one chunk, before compression.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metas: Vec<IndexedMeta>,
    pub(crate) positions: Vec<DocumentPosition>,
}

impl Lines {
    pub(crate) fn push(&mut self, meta: &Meta<'_>, keep_position: bool) {
        self.metas.push(indexed(meta, self.bytes.len() as u64));
        if keep_position {
            self.positions.push(meta.position);
        }
        // By a quarter at most: the memory of a chunk counts its lines that way.
        if self.bytes.capacity() - self.bytes.len() < meta.line.len() {
            self.bytes
                .reserve_exact(meta.line.len().max(self.bytes.capacity() / 4));
        }
        self.bytes.extend_from_slice(meta.line);
    }
}

/// Keeps compressed bytes: in memory up to a number of them, then all in one unnamed temporary
/// file.
pub(crate) struct Scratch(Mutex<SpooledTempFile>);

impl Scratch {
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self(Mutex::new(SpooledTempFile::new(memory_bytes)))
    }

    /// Appends bytes and returns their position.
    pub(crate) fn keep(&self, bytes: &[u8]) -> io::Result<Range<u64>> {
        let mut file = self.0.lock();
        let start = file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)?;
        Ok(start..start + bytes.len() as u64)
    }

    pub(crate) fn read(&self, kept: &Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (kept.end - kept.start) as usize];
        let mut file = self.0.lock();
        file.seek(SeekFrom::Start(kept.start))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_beyond_its_memory_uses_a_file_and_reads_back() {
        let scratch = Scratch::new(10);
        let kept = scratch.keep(b"0123456789").unwrap();
        assert!(!scratch.0.lock().is_rolled());
        let others = ["ab", "", "cde"].map(|text| scratch.keep(text.as_bytes()).unwrap());
        assert!(scratch.0.lock().is_rolled());
        assert_eq!(others, [10..12, 12..12, 12..15]);
        let read = others.each_ref().map(|kept| scratch.read(kept).unwrap());
        assert_eq!(read, [&b"ab"[..], b"", b"cde"]);
        assert_eq!(scratch.read(&kept).unwrap(), b"0123456789");
    }
}
