//! What exactly one layer at a time may touch: the overlay and the sink.

use std::io::Read;

use crate::error::{Error, LayerError};
use crate::layers::Tap;
use crate::layers::scan::Scan;
use crate::limits::Limits;
use crate::overlay::{Depth, Kind, Links, Overlay, Root, RootState, Touch};
use crate::path::shown;
use crate::sink::FileSink;

pub(crate) struct Baton<S> {
    overlay: Overlay,
    sink: S,
}

/// A tar entry, reduced to what matters here.
pub(crate) struct Entry<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    pub(crate) content: &'a mut dyn Read,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Dir,
    Content(Kind),
    /// The tar type of anything else.
    Odd(String),
}

impl<S: FileSink> Baton<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self {
            overlay: Overlay::default(),
            sink,
        }
    }

    pub(crate) fn root(&self) -> RootState {
        self.overlay.root()
    }

    /// Applies one entry of the layer whose turn it is.
    pub(crate) fn apply(&mut self, scan: &Scan, touch: Touch, entry: Entry<'_>) -> Result<(), Error> {
        self.place(scan, touch, entry)?;
        scan.budget.tree(self.overlay.held_bytes(), &scan.layer.digest)
    }

    fn place(&mut self, scan: &Scan, touch: Touch, entry: Entry<'_>) -> Result<(), Error> {
        let depth = scan.depth;
        let twice = |_| scan.error(LayerError::Duplicate(format!("/{}", scan.root.path())));
        match touch {
            Touch::Nothing => {}
            Touch::Closes => self.overlay.close(depth),
            Touch::Root if entry.kind == EntryKind::Dir => self.overlay.claim_root(depth).map_err(twice)?,
            Touch::Root => self.overlay.block(depth, true).map_err(twice)?,
            Touch::Blocks => self.overlay.block(depth, false).map_err(twice)?,
            Touch::Whiteout(path) => self.overlay.whiteout(depth, path),
            Touch::Opaque(path) => self.overlay.opaque(depth, path),
            Touch::Malformed(path) => return Err(scan.error(LayerError::Whiteout(shown(path.as_bytes())))),
            Touch::Entry(path) => return self.entry(scan, &path, entry),
        }
        Ok(())
    }

    fn entry(&mut self, scan: &Scan, path: &str, entry: Entry<'_>) -> Result<(), Error> {
        let (kind, odd) = match entry.kind {
            EntryKind::Dir => {
                let claimed = self.overlay.claim_dir(scan.depth, path);
                return claimed.map_err(|_| scan.error(LayerError::Duplicate(shown(path.as_bytes()))));
            }
            EntryKind::Content(kind) => (kind, None),
            EntryKind::Odd(kind) => (Kind::Other, Some(kind)),
        };
        let is_file = kind == Kind::File;
        let claimed = self.overlay.claim(scan.depth, path, kind);
        let visible = claimed.map_err(|_| scan.error(LayerError::Duplicate(shown(path.as_bytes()))))?;
        match odd {
            Some(kind) if visible => {
                let path = shown(path.as_bytes());
                Err(scan.error(LayerError::Kind { path, kind }))
            }
            None if visible && is_file => self.feed(scan, path, entry.size, entry.content),
            _ => Ok(()),
        }
    }

    fn feed(&mut self, scan: &Scan, path: &str, size: u64, content: &mut dyn Read) -> Result<(), Error> {
        scan.budget.file(path, size)?;
        let mut tap = Tap::new(content, size);
        let outcome = self.sink.file(path, size, &mut tap);
        if let Some(error) = tap.failure() {
            let path = shown(path.as_bytes());
            return Err(scan.broken(error, |source| LayerError::Content { path, source }));
        }
        outcome.map_err(Error::Sink)
    }

    /// Resolves the links and gives the sink back.
    pub(crate) fn finish(self, root: &Root, limits: &Limits) -> Result<S, Error> {
        let Self { overlay, mut sink } = self;
        for (path, target) in Links::new(&overlay, root, limits.link_steps).resolve()? {
            match target {
                Ok(target) => sink.link(path, &target).map_err(Error::Sink)?,
                Err(_) if sink.excludes(path) => {}
                Err(source) => {
                    let path = shown(path.as_bytes());
                    return Err(Error::Link { path, source });
                }
            }
        }
        Ok(sink)
    }
}

impl<S> Baton<S> {
    pub(crate) fn is_closed_below(&self, depth: Depth) -> bool {
        self.overlay.is_closed_below(depth)
    }
}
