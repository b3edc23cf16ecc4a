//! From the trees of a commit to the files of a catalog.

use std::io::Read;
use std::sync::Arc;

use gix_hash::{Kind as HashKind, ObjectId};
use gix_object::TreeRefIter;
use gix_object::tree::{EntryKind, EntryRef};
use oci::{BlobRef, Budget, FileSink, ImageLimits, LayerScan, LimitExceeded, OverlayState, Root, TreeEntry, shown};

use super::error::{GitFault, ReadStopped};
use super::pack::PackObjects;
use super::scan::malformed;
use crate::web::BodyCopy;

/// Start of a pointer file of Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// Passes the files below `folder` at a commit to `sink`.
pub(super) fn read<S: FileSink>(
    copy: &BodyCopy,
    commit: &str,
    folder: &[String],
    limits: &ImageLimits,
    sink: S,
) -> Result<S, ReadStopped> {
    let mut objects = PackObjects::open(copy.path(), limits)?;
    let mut tree = objects.tree_of(commit)?;
    for depth in 0..folder.len() {
        tree = step(&mut objects, &tree, &folder[..=depth])?;
    }
    let root = Root::plain(folder.to_vec());
    let mut walk = TreeWalk {
        pack: &copy.blob,
        limits,
        passed: 0,
        held: 0,
        scan: LayerScan {
            depth: 0,
            layer: copy.blob.clone(),
            root: root.clone(),
            budget: Arc::new(Budget::new(limits)),
        },
        state: OverlayState::new(sink),
        ahead: Vec::new(),
    };
    walk.run(&mut objects, root.path().into_bytes(), tree)?;
    Ok(walk.state.finish(&root, limits)?)
}

/// Returns the tree of the last component of `path`, which `tree` has to hold.
fn step(objects: &mut PackObjects, tree: &ObjectId, path: &[String]) -> Result<ObjectId, ReadStopped> {
    let content = objects.tree(tree)?;
    let wanted = path.last().map_or("", String::as_str).as_bytes();
    let path = shown(path.join("/").as_bytes());
    for entry in TreeRefIter::from_bytes(&content, HashKind::Sha1) {
        let entry = entry.map_err(malformed)?;
        if *entry.filename == *wanted {
            let tree = entry.oid.to_owned();
            return if entry.mode.is_tree() {
                Ok(tree)
            } else {
                Err(GitFault::NotFolder(path).into())
            };
        }
    }
    Err(GitFault::NoFolder(path).into())
}

/// A walk over all trees of a catalog, without recursion: the depth is chosen by others.
struct TreeWalk<'a, S> {
    pack: &'a BlobRef,
    limits: &'a ImageLimits,
    /// Bytes of all trees and files so far. One object can be used many times.
    passed: u64,
    /// Bytes of the paths in `ahead`.
    held: u64,
    scan: LayerScan,
    state: OverlayState<S>,
    /// Folders that are still to be read.
    ahead: Vec<(Vec<u8>, ObjectId)>,
}

impl<S: FileSink> TreeWalk<'_, S> {
    fn run(&mut self, objects: &mut PackObjects, root: Vec<u8>, tree: ObjectId) -> Result<(), ReadStopped> {
        self.hold(root, tree)?;
        while let Some((folder, tree)) = self.ahead.pop() {
            self.held -= folder.len() as u64;
            let content = objects.tree(&tree)?;
            self.count(content.len() as u64)?;
            for entry in TreeRefIter::from_bytes(&content, HashKind::Sha1) {
                let entry = entry.map_err(malformed)?;
                self.scan.budget.count_entry(|| "its files".to_owned())?;
                self.entry(objects, &folder, &entry)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, objects: &mut PackObjects, folder: &[u8], entry: &EntryRef<'_>) -> Result<(), ReadStopped> {
        let separator: &[u8] = if folder.is_empty() { b"" } else { b"/" };
        let path = [folder, separator, entry.filename].concat();
        if !is_name(entry.filename) {
            return Err(GitFault::Name(shown(&path)).into());
        }
        self.scan.budget.check_path(&path, || "its files".to_owned())?;
        match entry.mode.kind() {
            EntryKind::Tree => Ok(self.hold(path, entry.oid.to_owned())?),
            EntryKind::Commit => Err(GitFault::Submodule(shown(&path)).into()),
            EntryKind::Blob | EntryKind::BlobExecutable => self.file(objects, path, entry.oid.to_owned()),
            EntryKind::Link => self.link(objects, path, entry.oid.to_owned()),
        }
    }

    fn file(&mut self, objects: &mut PackObjects, path: Vec<u8>, name: ObjectId) -> Result<(), ReadStopped> {
        let mut blob = objects.blob(&name)?;
        self.count(blob.size)?;
        let start = start(&mut blob.content, LFS_POINTER.len() as u64)?;
        if start == LFS_POINTER {
            return Err(GitFault::Lfs(shown(&path)).into());
        }
        let entry = TreeEntry::File {
            size: blob.size,
            content: &mut start.as_slice().chain(blob.content),
        };
        Ok(self.scan.apply(&mut self.state, path, entry)?)
    }

    fn link(&mut self, objects: &mut PackObjects, path: Vec<u8>, name: ObjectId) -> Result<(), ReadStopped> {
        let mut blob = objects.blob(&name)?;
        // One byte more shows that the target is too long.
        let target = start(&mut blob.content, self.limits.path_bytes.saturating_add(1))?;
        Ok(self.scan.apply(&mut self.state, path, TreeEntry::Symlink(target))?)
    }

    fn hold(&mut self, folder: Vec<u8>, tree: ObjectId) -> Result<(), LimitExceeded> {
        self.held += folder.len() as u64;
        if self.held > self.limits.tree_bytes {
            return Err(LimitExceeded {
                name: "treeBytes",
                limit: self.limits.tree_bytes,
                place: "the paths of its folders".to_owned(),
            });
        }
        self.ahead.push((folder, tree));
        Ok(())
    }

    fn count(&mut self, bytes: u64) -> Result<(), LimitExceeded> {
        let place = || "its files".to_owned();
        self.scan.budget.count_bytes(bytes, place)?;
        self.passed += bytes;
        if self.passed > self.limits.decompressed_of(self.pack.size) {
            return Err(LimitExceeded {
                name: "ratio",
                limit: self.limits.ratio,
                place: place(),
            });
        }
        Ok(())
    }
}

fn start(content: &mut dyn Read, length: u64) -> Result<Vec<u8>, GitFault> {
    let mut start = Vec::new();
    content.take(length).read_to_end(&mut start).map_err(malformed)?;
    Ok(start)
}

/// Returns true for a name that a checkout can have. Git itself refuses the others.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git") && !name.contains(&b'/')
}
