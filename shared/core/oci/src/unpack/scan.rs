//! One layer's tar stream, entry by entry.

use std::io::{self, BufRead, Read};
use std::{borrow::Cow, sync::Arc};

use ::tar::EntryType;

use super::overlay::{NodeKind, Touch};
use super::tar::{TarEntry, TarError, TarReader};
use super::{decompress::MeteredReader, state::LayerEntry};
use crate::{
    BlobRef, Depth, FileSink, LayerError, LimitExceeded, NamedLimit, OverlayState, Root,
    UnpackBudget, UnpackError, clean_path, decompress, shown,
};

/// The entries of a layer, decompressed and counted.
type LayerTar<'a> = TarReader<MeteredReader<'a, Box<dyn Read + 'a>>>;

/// Reads one layer of an image, or an archive that stands alone.
pub struct LayerScan {
    /// Position of the layer, 0 at the top.
    pub depth: Depth,
    /// Digest and compressed size of the layer.
    pub layer: BlobRef,
    /// FBC root of the image; entries outside of it are skipped.
    pub root: Root,
    /// Counters that all layers of the image share.
    pub budget: Arc<UnpackBudget>,
}

impl LayerScan {
    /// Reads the layer from `raw`. At the first entry that matters, waits for the upper layers by
    /// calling `take_state`, once, which returns `None` if they have failed. Returns the state, or
    /// `None` if no entry mattered.
    ///
    /// # Errors
    /// Broken or hostile layers, exceeded limits and errors of the sink.
    pub fn run<S: FileSink>(
        &self,
        raw: &mut impl BufRead,
        mut take_state: impl FnMut() -> Option<OverlayState<S>>,
    ) -> Result<Option<OverlayState<S>>, UnpackError> {
        let mut archive = self.open(raw)?;
        let mut state = None;
        while let Some(entry) = self.next_entry(&mut archive)? {
            let Some(touch) = self.touch(&entry)? else {
                continue;
            };
            let state = match &mut state {
                Some(state) => state,
                // Only now: waiting for the upper layers any earlier would keep base layers from
                // being scanned meanwhile.
                none => none.insert(take_state().ok_or(UnpackError::Abandoned)?),
            };
            let layer_entry = LayerEntry {
                kind: self.kind(&entry)?,
                size: entry.size,
                content: &mut archive,
            };
            state.apply(self, touch, layer_entry)?;
        }
        // A layer is not read on to the end of the compression, as catalogd does not: only a bomb
        // or a wrong checksum of gzip could follow, and its digest covers those bytes. An archive
        // has no digest but that of its bytes.
        if self.root.is_plain {
            archive
                .read_trailer()
                .map_err(|error| self.broken(error, LayerError::Format))?;
        }
        Ok(state)
    }

    /// Returns the name of the one folder that holds all entries, or `None` if there is more than
    /// that at the top. Reads all headers.
    ///
    /// # Errors
    /// Broken or hostile archives and exceeded limits.
    pub fn common_folder(&self, raw: &mut impl BufRead) -> Result<Option<String>, UnpackError> {
        let mut archive = self.open(raw)?;
        let mut common: Option<String> = None;
        while let Some(entry) = self.next_entry(&mut archive)? {
            self.budget.check_path(&entry.path, || self.place())?;
            // A name that is not UTF-8 is refused when the archive is read.
            let Ok(name) = std::str::from_utf8(&entry.path) else {
                return Ok(None);
            };
            // Entries out of the archive are skipped, as `run` does.
            let parts = clean_path(name).unwrap_or_default();
            match parts.as_slice() {
                [] => {}
                [_] if !entry.kind.is_dir() => return Ok(None),
                [top, ..] if common.as_deref().is_none_or(|common| common == *top) => {
                    common.get_or_insert_with(|| (*top).to_owned());
                }
                _ => return Ok(None),
            }
        }
        Ok(common)
    }

    fn open<'a>(&'a self, raw: &'a mut impl BufRead) -> Result<LayerTar<'a>, UnpackError> {
        let metered = MeteredReader {
            inner: decompress(raw).map_err(|error| self.error(error))?,
            scan: self,
            bytes: 0,
        };
        Ok(TarReader::new(metered, self.budget.limits.header_bytes))
    }

    /// Returns the next entry and counts it.
    fn next_entry(&self, archive: &mut LayerTar<'_>) -> Result<Option<TarEntry>, UnpackError> {
        let next = archive
            .next()
            .map_err(|error| self.tar_error(error, archive.count))?;
        if next.is_some() {
            // Entries outside the root count too, because reading past them costs time as well.
            self.budget.count_entry(|| self.place())?;
        }
        Ok(next)
    }

    pub(crate) fn error(&self, source: LayerError) -> UnpackError {
        UnpackError::Layer {
            layer: self.layer.digest.clone(),
            source,
        }
    }

    /// Reports a stream that failed, or the limit that ended it.
    pub(crate) fn broken(
        &self,
        error: io::Error,
        source: impl FnOnce(io::Error) -> LayerError,
    ) -> UnpackError {
        match error.downcast::<LimitExceeded>() {
            Ok(limit) => UnpackError::Limit(limit),
            Err(error) => self.error(source(error)),
        }
    }

    fn tar_error(&self, error: TarError, entries: u64) -> UnpackError {
        let entry = entries + 1;
        match error {
            TarError::Read(error) => self.broken(error, LayerError::Format),
            TarError::Malformed(what) => self.error(LayerError::Tar { entry, what }),
            TarError::HeaderBytes => {
                let limit = NamedLimit::new("headerBytes", self.budget.limits.header_bytes);
                UnpackError::Limit(limit.exceeded(format!("entry {entry} of {}", self.place())))
            }
        }
    }

    pub(crate) fn place(&self) -> String {
        format!("layer {}", self.layer.digest)
    }

    /// Returns the effect of an entry on the catalog, or `None` if it has none.
    fn touch(&self, entry: &TarEntry) -> Result<Option<Touch>, UnpackError> {
        self.budget.check_path(&entry.path, || self.place())?;
        let touch = self.touch_of_path(&entry.path, entry.kind.is_dir())?;
        let Some(name) = &entry.sparse else {
            return Ok(touch);
        };
        // The second name of a sparse file may be the one below the root.
        if touch.is_some() || !name.is_empty() && self.touch_of_path(name, false)?.is_some() {
            return Err(self.error(LayerError::Sparse(shown(&entry.path))));
        }
        Ok(None)
    }

    fn touch_of_path(&self, path: &[u8], is_dir: bool) -> Result<Option<Touch>, UnpackError> {
        let name = String::from_utf8_lossy(path);
        match self.root.touch(&name, is_dir) {
            // Only here: base images have such names elsewhere, and they do not matter there.
            Some(_) if matches!(name, Cow::Owned(_)) => {
                Err(self.error(LayerError::NotUtf8(shown(path))))
            }
            Some(_) if name.contains(model::text::is_unprintable) => {
                Err(self.error(LayerError::Unprintable(shown(path))))
            }
            Some(touch) if touch.is_deep() => Err(self.error(LayerError::Deep(shown(path)))),
            touch => Ok(touch),
        }
    }

    fn kind(&self, entry: &TarEntry) -> Result<NodeKind, UnpackError> {
        Ok(match entry.kind {
            EntryType::Directory => NodeKind::Dir,
            // Not type 7, which POSIX lets readers take for a file: containerd refuses an image
            // with it.
            EntryType::Regular => NodeKind::File,
            EntryType::Symlink => NodeKind::Symlink(self.target(entry)?),
            EntryType::Link => NodeKind::HardLink(self.target(entry)?),
            other => NodeKind::Special(special(other)),
        })
    }

    /// Returns the target of a link.
    fn target(&self, entry: &TarEntry) -> Result<String, UnpackError> {
        self.budget.check_path(&entry.target, || self.place())?;
        let target = String::from_utf8(entry.target.clone());
        target.map_err(|_| self.error(LayerError::NotUtf8(shown(&entry.target))))
    }
}

/// Returns the type of a special file in words.
fn special(kind: EntryType) -> String {
    match kind {
        EntryType::Char => "a character device".to_owned(),
        EntryType::Block => "a block device".to_owned(),
        EntryType::Fifo => "a fifo".to_owned(),
        other => format!("of tar type {:?}", char::from(other.as_byte())),
    }
}
