use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    sync::Arc,
};

use fbc::{DocumentPosition, Meta};
use model::{Content, IndexedMeta, ObjectDigest};
use parking_lot::Mutex;

use crate::{
    RenderError, ShardPart,
    context::{ChunkPlace, RenderContext},
    shard::load,
};

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
    /// Hash and size of the uncompressed lines, if they are all of their file about the Package: most likely the whole Shard.
    pub(crate) whole: Option<Content>,
    /// The lines in a published Shard, if they were not parsed.
    pub(crate) published: Option<Box<ShardPart>>,
    /// The lines, or the published Shard that they are a part of.
    pub(crate) body: CompressedLines,
}

/// Lines of one Package, compressed as one zstd frame.
#[derive(Debug, Clone)]
pub(crate) enum CompressedLines {
    /// The store already has a Shard with these lines.
    Stored(ObjectDigest),
    New(Arc<ScratchBuffer>),
}

impl CompressedLines {
    /// Returns the compressed bytes. Bytes of the store are not checked here.
    pub(crate) fn read(&self, context: &RenderContext) -> Result<Cow<'_, [u8]>, RenderError> {
        match self {
            Self::New(buffer) => context.scratch.read(buffer).map_err(RenderError::Scratch),
            Self::Stored(stored) => load(&*context.stored, stored).map(Cow::Owned),
        }
    }
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
            self.bytes.reserve_exact(meta.line.len().max(self.bytes.capacity() / 4));
        }
        self.bytes.extend_from_slice(meta.line);
    }
}

/// Keeps compressed bytes: in memory up to a budget, then in one unnamed temporary file.
#[derive(Debug)]
pub(crate) struct Scratch(Mutex<ScratchState>);

#[derive(Debug)]
struct ScratchState {
    budget: usize,
    file: Option<File>,
}

/// Bytes that a [`Scratch`] keeps, in memory or in its file.
#[derive(Debug)]
pub(crate) enum ScratchBuffer {
    Memory(Vec<u8>),
    File { offset: u64, length: usize },
}

impl Scratch {
    pub(crate) fn new(budget: usize) -> Self {
        Self(Mutex::new(ScratchState { budget, file: None }))
    }

    pub(crate) fn keep(&self, mut bytes: Vec<u8>) -> io::Result<ScratchBuffer> {
        bytes.shrink_to_fit();
        let mut state = self.0.lock();
        if let Some(left) = state.budget.checked_sub(bytes.len()) {
            state.budget = left;
            return Ok(ScratchBuffer::Memory(bytes));
        }
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let offset = file.seek(SeekFrom::End(0))?;
        file.write_all(&bytes)?;
        Ok(ScratchBuffer::File {
            offset,
            length: bytes.len(),
        })
    }

    pub(crate) fn read<'a>(&self, buffer: &'a ScratchBuffer) -> io::Result<Cow<'a, [u8]>> {
        let (offset, length) = match buffer {
            ScratchBuffer::Memory(bytes) => return Ok(Cow::Borrowed(bytes)),
            ScratchBuffer::File { offset, length } => (*offset, *length),
        };
        let mut state = self.0.lock();
        let file = state.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_beyond_its_budget_uses_a_file_and_reads_back() {
        let scratch = Scratch::new(10);
        let texts = ["0123456789", "ab", "", "cde"].map(|text| text.as_bytes().to_vec());
        let kept = texts.clone().map(|bytes| scratch.keep(bytes).unwrap());
        assert!(matches!(kept[0], ScratchBuffer::Memory(_)));
        assert!(matches!(kept[1], ScratchBuffer::File { offset: 0, length: 2 }));
        assert!(matches!(kept[3], ScratchBuffer::File { offset: 2, length: 3 }));
        let read = kept.each_ref().map(|buffer| scratch.read(buffer).unwrap().into_owned());
        assert_eq!(read, texts);
    }
}
