use std::{collections::BTreeMap, sync::Arc};

use fbc::Meta;
use layout::{IndexedMeta, Sha256};

use crate::scratch::Held;

/// The lines of one Package that one chunk of one file holds.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    pub(crate) path: Arc<str>,
    /// Which chunk of the file it comes from.
    pub(crate) part: usize,
    /// The Package; empty for the global group.
    pub(crate) group: Arc<str>,
    /// Where each line lies in this fragment.
    pub(crate) metas: Arc<[IndexedMeta]>,
    /// Bytes before compression.
    pub(crate) size: u64,
    pub(crate) body: FragmentBody,
}

#[derive(Debug, Clone)]
pub(crate) enum FragmentBody {
    /// A part of a file; its hash alone names nothing.
    Part(Arc<Held>),
    /// All that its file says about the Package, most likely the whole Shard.
    Whole(Sha256, Arc<Held>),
    /// The same, and a Shard with these bytes is published already.
    Published(Sha256),
}

impl Fragment {
    /// The same as part of another file.
    pub(crate) fn at(&self, path: &Arc<str>) -> Self {
        Self {
            path: path.clone(),
            ..self.clone()
        }
    }
}

/// The lines of the Packages of one chunk, before compression.
#[derive(Debug, Default)]
pub(crate) struct Groups(pub(crate) BTreeMap<String, Lines>);

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metas: Vec<IndexedMeta>,
}

impl Groups {
    pub(crate) fn push(&mut self, meta: &Meta<'_>) {
        let group = meta.group().unwrap_or_default();
        match self.0.get_mut(group) {
            Some(lines) => lines.push(meta),
            None => self.0.entry(group.to_owned()).or_default().push(meta),
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
        self.bytes.extend_from_slice(meta.line);
    }
}
