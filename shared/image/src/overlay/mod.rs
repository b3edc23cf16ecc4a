//! What of each layer is visible, layers coming from the top down. Pure: it sees names, never bytes.

mod links;
mod root;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::path::{ancestors, parent};

pub use links::LinkError;
pub(crate) use links::Links;
pub(crate) use root::{Root, Touch};

/// A layer's place in the image, 0 being the top.
pub(crate) type Depth = usize;

/// The paths claimed so far. What a layer hides is hidden from lower layers only, so everything is
/// remembered with the depth it came from and compared with the depth that asks.
#[derive(Default)]
pub(crate) struct Overlay {
    nodes: HashMap<String, Node>,
    dirs: HashMap<String, Depth>,
    gone: HashMap<String, Depth>,
    opaque: HashMap<String, Depth>,
    /// Folders that a layer removes something from. As overlayfs has it, they are folders of that layer, and what else had
    /// their name in lower layers ended there.
    cleared: HashMap<String, Depth>,
    /// Nothing below this depth is visible at all.
    floor: Option<Depth>,
    root: RootState,
    /// Bytes of all that is remembered.
    held: u64,
    /// The last layers with the root or something below it, and with something else in its place.
    inside: Option<Depth>,
    blocked: Option<Depth>,
}

/// A visible thing that is not a directory.
struct Node {
    depth: Depth,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    /// With the target as written.
    Symlink(String),
    /// With the target as written: a path from the image's root.
    Hardlink(String),
    /// A device, fifo or socket: nothing a catalog can hold.
    Other,
}

/// Whether the FBC root is there.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RootState {
    #[default]
    Missing,
    Directory,
    NotDirectory,
}

/// Two entries of the same layer claim one path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Overlay {
    /// Whether layers under `depth` can still contribute anything.
    pub(crate) fn is_closed_below(&self, depth: Depth) -> bool {
        self.floor.is_some_and(|floor| floor <= depth)
    }

    pub(crate) fn root(&self) -> RootState {
        self.root
    }

    /// The FBC root or a folder above it was removed, emptied or replaced.
    pub(crate) fn close(&mut self, depth: Depth) {
        self.floor.get_or_insert(depth);
    }

    /// The FBC root is a directory of the layer, written out or not.
    pub(crate) fn claim_root(&mut self, depth: Depth) -> Result<(), Contradiction> {
        if self.is_closed_above(depth) {
            return Ok(());
        }
        if self.blocked == Some(depth) {
            return Err(Contradiction);
        }
        self.inside = Some(depth);
        if self.root == RootState::Missing {
            self.root = RootState::Directory;
        }
        Ok(())
    }

    /// Something else than a directory stands where the FBC root, or a folder above it, would be.
    pub(crate) fn block(&mut self, depth: Depth, is_root: bool) -> Result<(), Contradiction> {
        if self.is_closed_above(depth) {
            return Ok(());
        }
        if self.inside == Some(depth) {
            return Err(Contradiction);
        }
        self.blocked = Some(depth);
        if is_root && self.root == RootState::Missing {
            self.root = RootState::NotDirectory;
        }
        self.close(depth);
        Ok(())
    }

    /// Whether upper layers hide all of this one.
    fn is_closed_above(&self, depth: Depth) -> bool {
        self.floor.is_some_and(|floor| floor < depth)
    }

    /// Bytes of the paths and link targets that are remembered.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held
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
        for dir in ancestors(folder).chain([folder]).filter(|dir| !dir.is_empty()) {
            self.held += note(&mut self.cleared, dir.to_owned(), depth);
        }
    }

    /// A directory of the layer. It is no content, but it ends files of that name below.
    pub(crate) fn claim_dir(&mut self, depth: Depth, path: &str) -> Result<(), Contradiction> {
        if self.is_visible(depth, path) {
            self.claim_root(depth)?;
            self.claim_parents(depth, path)?;
            self.claim_as_dir(depth, path)?;
        }
        Ok(())
    }

    /// Anything but a directory. True if it is visible, so its content counts.
    pub(crate) fn claim(&mut self, depth: Depth, path: &str, kind: Kind) -> Result<bool, Contradiction> {
        if !self.is_visible(depth, path) {
            self.held += note(&mut self.gone, path.to_owned(), depth);
            return Ok(false);
        }
        if is_above(&self.dirs, path, depth) || is_above(&self.cleared, path, depth) {
            // A directory of an upper layer stands here: this entry, and all below it, ended there.
            self.held += note(&mut self.gone, path.to_owned(), depth);
            return Ok(false);
        }
        if self.dirs.contains_key(path) || self.nodes.contains_key(path) {
            return Err(Contradiction);
        }
        self.claim_root(depth)?;
        self.claim_parents(depth, path)?;
        self.held += bytes(path) + kind.bytes();
        self.nodes.insert(path.to_owned(), Node { depth, kind });
        Ok(true)
    }

    fn claim_parents(&mut self, depth: Depth, path: &str) -> Result<(), Contradiction> {
        let nearest = parent(path);
        if nearest.is_empty() || self.dirs.contains_key(nearest) {
            return Ok(());
        }
        ancestors(path).try_for_each(|dir| self.claim_as_dir(depth, dir))
    }

    fn claim_as_dir(&mut self, depth: Depth, path: &str) -> Result<(), Contradiction> {
        if self.nodes.contains_key(path) {
            return Err(Contradiction);
        }
        if !self.dirs.contains_key(path) {
            self.held += note(&mut self.dirs, path.to_owned(), depth);
        }
        Ok(())
    }

    fn is_visible(&self, depth: Depth, path: &str) -> bool {
        let is_node = |path: &str| self.nodes.get(path).is_some_and(|node| node.depth < depth);
        let ended = |path: &str| is_above(&self.gone, path, depth) || is_node(path);
        !self.is_closed_above(depth)
            && !ended(path)
            && !ancestors(path).any(|dir| ended(dir) || is_above(&self.opaque, dir, depth))
    }
}

/// Whether a layer over `depth` has the path in `map`.
fn is_above(map: &HashMap<String, Depth>, path: &str, depth: Depth) -> bool {
    map.get(path).is_some_and(|above| *above < depth)
}

impl Kind {
    fn bytes(&self) -> u64 {
        match self {
            Self::Symlink(target) | Self::Hardlink(target) => target.len() as u64,
            Self::File | Self::Other => 0,
        }
    }
}

/// What a table takes for each path besides the path.
const ENTRY_BYTES: u64 = 64;

fn bytes(path: &str) -> u64 {
    path.len() as u64 + ENTRY_BYTES
}

/// Remembers a path, unless it is known, and returns the bytes that this takes.
fn note(map: &mut HashMap<String, Depth>, path: String, depth: Depth) -> u64 {
    match map.entry(path) {
        Entry::Occupied(_) => 0,
        Entry::Vacant(free) => {
            let held = bytes(free.key());
            free.insert(depth);
            held
        }
    }
}

#[cfg(test)]
mod tests;
