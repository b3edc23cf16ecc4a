//! The state that layers change one after the other: the overlay and the sink.

use std::io::Read;

use super::overlay::{LinkResolver, NodeKind, Overlay, Touch};
use crate::{
    Depth, FileSink, ImageLimits, LayerError, LayerScan, Root, UnpackError, pass_file, pass_link,
    shown,
};

/// The files found so far and the sink that takes them. Exactly one layer at a time holds it, from
/// the top down.
pub struct OverlayState<S> {
    overlay: Overlay,
    sink: S,
}

/// The parts of a tar entry that matter to the overlay.
pub(crate) struct LayerEntry<'a> {
    pub(crate) kind: NodeKind,
    pub(crate) size: u64,
    pub(crate) content: &'a mut dyn Read,
}

impl<S: FileSink> OverlayState<S> {
    /// Creates the state before the top layer: no file is known.
    pub fn new(sink: S) -> Self {
        Self {
            overlay: Overlay::default(),
            sink,
        }
    }

    /// Checks that the FBC root is a directory. The root of a whole image or archive needs no
    /// entry.
    ///
    /// # Errors
    /// `missing` for a root without an entry and `other` for one that is no directory, with its
    /// path for logs.
    pub fn check_root<E>(
        &self,
        root: &Root,
        missing: fn(String) -> E,
        other: fn(String) -> E,
    ) -> Result<(), E> {
        let error = match self.overlay.inside {
            None if self.overlay.is_replaced => other,
            None if !root.parts.is_empty() => missing,
            Some(_) | None => return Ok(()),
        };
        Err(error(shown(root.path().as_bytes())))
    }

    /// Returns true if layers below `depth` cannot contribute anything.
    pub fn is_closed_below(&self, depth: Depth) -> bool {
        self.overlay.is_closed_below(depth)
    }

    /// Applies one entry of the layer that holds the state.
    pub(crate) fn apply(
        &mut self,
        scan: &LayerScan,
        touch: Touch,
        entry: LayerEntry<'_>,
    ) -> Result<(), UnpackError> {
        let depth = scan.depth;
        let twice = |_| scan.error(LayerError::Duplicate(format!("/{}", scan.root.path())));
        match touch {
            Touch::Closes => self.overlay.close(depth),
            Touch::Root if entry.kind == NodeKind::Dir => {
                self.overlay.claim_root(depth).map_err(twice)?;
            }
            Touch::Root => self.overlay.block(depth, true).map_err(twice)?,
            Touch::Blocks => self.overlay.block(depth, false).map_err(twice)?,
            Touch::Whiteout(path) => self.overlay.whiteout(depth, path),
            Touch::Opaque(path) => self.overlay.opaque(depth, path),
            Touch::Malformed(path) => {
                return Err(scan.error(LayerError::Whiteout(shown(path.as_bytes()))));
            }
            Touch::Entry(path) => self.add(scan, &path, entry)?,
        }
        Ok(scan
            .budget
            .check_tree(self.overlay.held, &scan.layer.digest)?)
    }

    fn add(
        &mut self,
        scan: &LayerScan,
        path: &str,
        entry: LayerEntry<'_>,
    ) -> Result<(), UnpackError> {
        let is_visible = self
            .overlay
            .claim(scan.depth, path, entry.kind.clone())
            .map_err(|_| scan.error(LayerError::Duplicate(shown(path.as_bytes()))))?;
        match entry.kind {
            NodeKind::Special(kind) if is_visible => Err(scan.error(LayerError::Kind {
                path: shown(path.as_bytes()),
                kind,
            })),
            NodeKind::File if is_visible => {
                scan.budget.check_file(path, entry.size)?;
                pass_file(&mut self.sink, path, entry.size, entry.content, |error| {
                    let path = shown(path.as_bytes());
                    scan.broken(error, |source| LayerError::Content { path, source })
                })
            }
            _ => Ok(()),
        }
    }

    /// Resolves the links and returns the sink. Only after the last layer is it known where a link
    /// leads.
    ///
    /// # Errors
    /// Links that lead to no file and that the sink does not exclude, and more than `linkSteps` of
    /// work.
    pub fn finish(self, root: &Root, limits: &ImageLimits) -> Result<S, UnpackError> {
        let Self { overlay, mut sink } = self;
        for (path, target) in LinkResolver::new(&overlay, root).resolve(limits.link_steps)? {
            pass_link(&mut sink, path, target)?;
        }
        Ok(sink)
    }
}
