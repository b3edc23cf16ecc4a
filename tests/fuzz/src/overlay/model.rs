//! Unpacks layers as on a disk: one after another from the lowest one (OCI image specification,
//! "Image Layer Filesystem Changeset").

use std::collections::{BTreeMap, BTreeSet, VecDeque};
#[cfg(test)]
use std::{fs, io, path::Path};

use super::{Entry, EntryKind};

/// Maximum number of links that Linux follows (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Dir,
    File(Vec<u8>),
    Symlink(String),
    /// Hard link to a missing file, which no disk can hold.
    Broken,
}

/// Files on the disk.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
    contradictory: bool,
}

impl Tree {
    /// Reads the files of a folder.
    #[cfg(test)]
    pub(super) fn of_disk(folder: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next)? {
                let path = entry?.path();
                let name = path
                    .strip_prefix(folder)
                    .expect("it is inside")
                    .to_string_lossy()
                    .into_owned();
                let kind = fs::symlink_metadata(&path)?;
                let node = if kind.is_dir() {
                    folders.push(path);
                    Node::Dir
                } else if kind.is_symlink() {
                    Node::Symlink(fs::read_link(&path)?.to_string_lossy().into_owned())
                } else {
                    Node::File(fs::read(&path)?)
                };
                tree.nodes.insert(name, node);
            }
        }
        Ok(tree)
    }

    /// Returns true if a layer had a path twice, or as a folder and as something else.
    pub(crate) fn is_contradictory(&self) -> bool {
        self.contradictory
    }

    /// Unpacks one layer. Whiteouts remove only files of lower layers, and their folder exists
    /// afterwards, as in overlayfs.
    pub(crate) fn unpack(&mut self, entries: &[Entry]) {
        self.note(entries);
        let (mut hard, mut names) = (VecDeque::new(), BTreeSet::new());
        for Entry { path, kind } in entries {
            match kind {
                EntryKind::Whiteout => self.remove(path),
                EntryKind::Opaque => self.empty(path),
                _ => {}
            }
        }
        for Entry { path, kind } in entries {
            match kind {
                EntryKind::Whiteout => self.make_parents(path),
                EntryKind::Opaque => self.put(path, Node::Dir),
                _ => {}
            }
        }
        for Entry { path, kind } in entries {
            match kind {
                EntryKind::File(content) => self.put(path, Node::File(content.clone())),
                EntryKind::Dir => self.put(path, Node::Dir),
                EntryKind::Symlink(target) => self.put(path, Node::Symlink(target.clone())),
                EntryKind::Hardlink(target) => {
                    hard.push_back((path, target));
                    names.insert(path);
                }
                EntryKind::Whiteout | EntryKind::Opaque => {}
            }
        }
        // One after the other, those first whose targets are no hard links that are still to be
        // made. Hard links come after all other entries. A link whose target is another link waits
        // for it.
        let mut waited = 0;
        while let Some((path, target)) = hard.pop_front() {
            if names.contains(target) && waited <= hard.len() {
                hard.push_back((path, target));
                waited += 1;
                continue;
            }
            let node = self.nodes.get(target).filter(|node| **node != Node::Dir);
            let node = if names.contains(target) { None } else { node };
            self.put(path, node.cloned().unwrap_or(Node::Broken));
            names.remove(path);
            waited = 0;
        }
    }

    fn note(&mut self, entries: &[Entry]) {
        let mut names: BTreeMap<&str, bool> = BTreeMap::new();
        for Entry { path, kind } in entries {
            if matches!(kind, EntryKind::Whiteout | EntryKind::Opaque) {
                continue;
            }
            let is_dir = *kind == EntryKind::Dir;
            for (dir, _) in path.match_indices('/') {
                self.contradictory |= names.insert(&path[..dir], true) == Some(false);
            }
            self.contradictory |= names
                .insert(path, is_dir)
                .is_some_and(|was_dir| !(was_dir && is_dir));
        }
    }

    fn make_parents(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            self.nodes.insert(path[..end].to_owned(), Node::Dir);
        }
    }

    fn put(&mut self, path: &str, node: Node) {
        self.make_parents(path);
        if node != Node::Dir {
            self.empty(path);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    fn remove(&mut self, path: &str) {
        self.empty(path);
        self.nodes.remove(path);
    }

    fn empty(&mut self, path: &str) {
        let below = format!("{path}/");
        self.nodes.retain(|other, _| !other.starts_with(&below));
    }

    /// Returns all readable files below the root.
    pub(crate) fn files(&self, root: &str) -> BTreeMap<String, Vec<u8>> {
        let below = |path: &str| match root {
            "" => Some(path.to_owned()),
            _ => path
                .strip_prefix(root)?
                .strip_prefix('/')
                .map(ToOwned::to_owned),
        };
        let files = self.nodes.keys().filter_map(|path| {
            let content = self.content(path)?;
            Some((below(path)?, content.to_owned()))
        });
        files.collect()
    }

    fn content(&self, path: &str) -> Option<&[u8]> {
        let mut here: Vec<&str> = Vec::new();
        let mut ahead: VecDeque<&str> = path.split('/').collect();
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            match part {
                "" | "." => continue,
                ".." => {
                    here.pop();
                    continue;
                }
                part => here.push(part),
            }
            match self.nodes.get(&here.join("/"))? {
                Node::Dir => {}
                Node::File(content) => return ahead.is_empty().then_some(content),
                Node::Symlink(_) if links == MOST_LINKS => return None,
                Node::Symlink(target) => {
                    links += 1;
                    here.pop();
                    if target.starts_with('/') {
                        here.clear();
                    }
                    target.rsplit('/').for_each(|part| ahead.push_front(part));
                }
                Node::Broken => return None,
            }
        }
        None
    }
}
