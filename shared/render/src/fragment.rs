use std::{collections::BTreeMap, sync::Arc};

use fbc::{DocumentPosition, Meta};
use model::{Content, IndexedMeta, ObjectDigest};

use crate::scratch::ScratchBuffer;

/// The lines of one Package that one chunk of one file holds.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) path: Arc<str>,
    /// Number of the chunk in its file, from 0.
    pub(crate) part: usize,
    /// Name of the Package; empty for the global group.
    pub(crate) group: Arc<str>,
    /// Position of each line in this fragment.
    pub(crate) metas: Arc<[IndexedMeta]>,
    /// Position of each Meta in its file; empty unless the settings ask for it.
    pub(crate) positions: Arc<[DocumentPosition]>,
    /// Hash and size of the uncompressed lines.
    pub(crate) lines: Content,
    pub(crate) body: FragmentBody,
}

#[derive(Debug, Clone)]
pub(crate) enum FragmentBody {
    /// Lines of a file that has several chunks.
    Part(Arc<ScratchBuffer>),
    /// All lines of its file about the Package: most likely the whole Shard.
    Whole(Arc<ScratchBuffer>),
    /// As `Whole`, and the store already has a Shard with these lines.
    Stored(ObjectDigest),
}

impl Fragment {
    /// Returns the fragment as part of another file.
    pub(crate) fn at(&self, path: &Arc<str>) -> Self {
        Self {
            path: path.clone(),
            ..self.clone()
        }
    }
}

/// The lines of each Package of one chunk, before compression.
#[derive(Debug, Default)]
pub(crate) struct LinesByPackage(pub(crate) BTreeMap<String, Lines>);

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metas: Vec<IndexedMeta>,
    pub(crate) positions: Vec<DocumentPosition>,
}

impl LinesByPackage {
    pub(crate) fn push(&mut self, meta: &Meta<'_>, keep_position: bool) {
        let group = meta.group().unwrap_or_default();
        let lines = match self.0.get_mut(group) {
            Some(lines) => lines,
            None => self.0.entry(group.to_owned()).or_default(),
        };
        lines.push(meta);
        if keep_position {
            lines.positions.push(meta.position);
        }
    }
}

impl Lines {
    fn push(&mut self, meta: &Meta<'_>) {
        self.metas.push(IndexedMeta {
            schema: meta.schema.to_owned(),
            package: meta.package.to_owned(),
            name: meta.name.to_owned(),
            offset: self.bytes.len() as u64,
            length: meta.line.len() as u64,
        });
        // By a quarter at most: the memory of a chunk counts its lines that way.
        if self.bytes.capacity() - self.bytes.len() < meta.line.len() {
            self.bytes.reserve_exact(meta.line.len().max(self.bytes.capacity() / 4));
        }
        self.bytes.extend_from_slice(meta.line);
    }
}
