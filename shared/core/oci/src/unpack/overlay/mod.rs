//! The visible paths of an image whose layers arrive from the top down. Sees names only, never
//! bytes.

mod links;
mod root;

use std::collections::HashMap;

use crate::path::{ancestors, parent};

pub use links::LinkError;
pub(crate) use links::LinkResolver;
pub use root::Root;
pub(crate) use root::{MAX_DEPTH, Touch};

/// Position of a layer in the image, 0 at the top.
pub type Depth = usize;

/// The paths claimed so far.
///
/// A layer hides paths of lower layers only, never its own. So each path is stored with the depth
/// that it came from and compared with the depth of the layer that asks.
#[derive(Default)]
pub(crate) struct Overlay {
    nodes: HashMap<String, Node>,
    dirs: HashMap<String, Depth>,
    gone: HashMap<String, Depth>,
    opaque: HashMap<String, Depth>,
    /// Folders in which a layer has a whiteout. As in overlayfs they are folders of that layer, so
    /// a file of the same name in a lower layer is hidden.
    cleared: HashMap<String, Depth>,
    /// Depth below which nothing is visible.
    floor: Option<Depth>,
    /// Estimated memory of all stored paths and link targets, in bytes.
    pub(crate) held: u64,
    /// The last layer with an entry at or below the root, which is a directory then.
    pub(crate) inside: Option<Depth>,
    /// The last layer with something else in place of the root or of a folder above it.
    blocked: Option<Depth>,
    /// True if it is in place of the root itself: a file, a link or a special file.
    pub(crate) is_replaced: bool,
}

/// A visible entry that is not a directory.
struct Node {
    depth: Depth,
    kind: NodeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A directory, which has no content.
    Dir,
    File,
    /// A symlink with its target as written.
    Symlink(String),
    /// A hard link with its target as written: a path from the image's root.
    HardLink(String),
    /// A device, FIFO or socket, which a catalog cannot hold, with its type in words.
    Special(String),
}

/// Two entries of one layer contradict each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Overlay {
    /// Returns true if layers below `depth` cannot contribute anything.
    pub(crate) fn is_closed_below(&self, depth: Depth) -> bool {
        self.floor.is_some_and(|floor| floor <= depth)
    }

    /// Records that a layer removes, empties or replaces the FBC root or a folder above it.
    pub(crate) fn close(&mut self, depth: Depth) {
        // The first layer from the top decides. A lower one cannot open the root again.
        self.floor.get_or_insert(depth);
    }

    /// Records that the FBC root is a directory in the layer, with an entry of its own or implied
    /// by another.
    pub(crate) fn claim_root(&mut self, depth: Depth) -> Result<(), Contradiction> {
        if self.is_closed_above(depth) {
            return Ok(());
        }
        if self.blocked == Some(depth) {
            return Err(Contradiction);
        }
        self.inside = Some(depth);
        Ok(())
    }

    /// Records that the FBC root, or a folder above it, is not a directory in the layer.
    pub(crate) fn block(&mut self, depth: Depth, is_root: bool) -> Result<(), Contradiction> {
        if self.is_closed_above(depth) {
            return Ok(());
        }
        if self.inside == Some(depth) {
            return Err(Contradiction);
        }
        self.blocked = Some(depth);
        self.is_replaced |= is_root;
        self.close(depth);
        Ok(())
    }

    /// Returns true if upper layers hide the whole layer.
    fn is_closed_above(&self, depth: Depth) -> bool {
        self.floor.is_some_and(|floor| floor < depth)
    }

    pub(crate) fn whiteout(&mut self, depth: Depth, path: String) {
        self.clear(depth, parent(&path));
        self.held += note(&mut self.gone, path, depth);
    }

    pub(crate) fn opaque(&mut self, depth: Depth, path: String) {
        self.clear(depth, &path);
        self.held += note(&mut self.opaque, path, depth);
    }

    fn clear(&mut self, depth: Depth, folder: &str) {
        // All folders down to the whiteout: overlayfs needs each of them to hold it.
        for dir in ancestors(folder)
            .chain([folder])
            .filter(|dir| !dir.is_empty())
        {
            self.held += note(&mut self.cleared, dir.to_owned(), depth);
        }
    }

    /// Records an entry. Returns true if it is visible.
    pub(crate) fn claim(
        &mut self,
        depth: Depth,
        path: &str,
        kind: NodeKind,
    ) -> Result<bool, Contradiction> {
        let is_dir = kind == NodeKind::Dir;
        // An upper layer has a directory here, which hides all but directories.
        let is_covered = is_above(&self.dirs, path, depth) || is_above(&self.cleared, path, depth);
        if !self.is_visible(depth, path) || is_covered && !is_dir {
            if !is_dir {
                // Stored although it is hidden: it still hides folders of its name in lower layers.
                self.held += note(&mut self.gone, path.to_owned(), depth);
            }
            return Ok(false);
        }
        self.claim_root(depth)?;
        ancestors(path).try_for_each(|dir| self.claim_dir(depth, dir))?;
        if is_dir {
            self.claim_dir(depth, path)?;
        } else if self.dirs.contains_key(path) || self.nodes.contains_key(path) {
            return Err(Contradiction);
        } else {
            self.held += bytes(path) + kind.bytes();
            self.nodes.insert(path.to_owned(), Node { depth, kind });
        }
        Ok(true)
    }

    fn claim_dir(&mut self, depth: Depth, path: &str) -> Result<(), Contradiction> {
        if self.nodes.contains_key(path) {
            return Err(Contradiction);
        }
        if !self.dirs.contains_key(path) {
            self.held += note(&mut self.dirs, path.to_owned(), depth);
        }
        Ok(())
    }

    fn is_visible(&self, depth: Depth, path: &str) -> bool {
        if self.is_closed_above(depth) || self.is_replaced(depth, path) {
            return false;
        }
        !ancestors(path)
            .any(|dir| self.is_replaced(depth, dir) || is_above(&self.opaque, dir, depth))
    }

    /// True if a layer above removes what is at the path, or has something there itself.
    fn is_replaced(&self, depth: Depth, path: &str) -> bool {
        let node = self.nodes.get(path);
        is_above(&self.gone, path, depth) || node.is_some_and(|node| node.depth < depth)
    }
}

/// Returns true if a layer above `depth` has the path in `map`.
fn is_above(map: &HashMap<String, Depth>, path: &str, depth: Depth) -> bool {
    map.get(path).is_some_and(|above| *above < depth)
}

impl NodeKind {
    fn bytes(&self) -> u64 {
        match self {
            Self::Symlink(target) | Self::HardLink(target) => target.len() as u64,
            Self::Dir | Self::File | Self::Special(_) => 0,
        }
    }
}

/// Memory of a table for each path besides the path itself, estimated.
const ENTRY_BYTES: u64 = 64;

fn bytes(path: &str) -> u64 {
    path.len() as u64 + ENTRY_BYTES
}

/// Stores a path, unless it is stored already. Returns the bytes that this takes.
fn note(map: &mut HashMap<String, Depth>, path: String, depth: Depth) -> u64 {
    if map.contains_key(&path) {
        return 0;
    }
    let held = bytes(&path);
    map.insert(path, depth);
    held
}

#[cfg(test)]
mod tests;
