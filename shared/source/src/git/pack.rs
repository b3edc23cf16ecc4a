//! The objects of a received pack, by their names.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

use flate2::bufread::ZlibDecoder;
use gix_hash::{Kind as HashKind, ObjectId};
use gix_object::Kind;
use gix_pack::cache::DecodeEntry;
use gix_pack::cache::lru::MemoryCappedHashmap;
use gix_pack::data::File;
use gix_pack::data::decode::entry::ResolvedBase;
use gix_zlib::Inflate;
use oci::{Budget, ImageLimits, LimitExceeded};

use super::error::{GitFault, ReadStopped};
use super::scan::{DeltaBase, PackEntry, PackScan, malformed, object_hasher, rest};

/// Maximum size of a delta and of its result, which are held in memory. Public hosts refuse files above 100 MiB, and most
/// files of that size are stored whole, which are read piece by piece.
pub(super) const MAX_DELTA_BYTES: u64 = 100 << 20;

/// Memory for applying the deltas of one chain: base, result and instructions.
const CHAIN_BYTES: usize = 2 * (MAX_DELTA_BYTES as usize) + (32 << 20);

/// Memory for results that are bases of further deltas.
const CACHE_BYTES: usize = 64 << 20;

/// Maximum number of deltas between an object and a whole one. Git writes 50, and never more than this.
const MAX_DEPTH: u32 = 4095;

const OTHER_KIND: GitFault = GitFault::Pack("an object has another kind than its tree says");

/// The objects of a pack.
pub(super) struct PackObjects {
    file: File,
    entries: Vec<PackEntry>,
    by_name: HashMap<ObjectId, usize>,
    cache: SmallResults,
    inflate: Inflate,
    limits: ImageLimits,
    /// Counts the bytes that deltas produce, the intermediate ones too.
    work: Budget,
}

/// The content of a file, which is not larger than its size.
pub(super) struct BlobContent<'a> {
    pub(super) size: u64,
    pub(super) content: Box<dyn Read + 'a>,
}

impl PackObjects {
    /// Checks the whole pack and names all its objects by their hashes.
    pub(super) fn open(path: &Path, limits: &ImageLimits) -> Result<Self, ReadStopped> {
        let file = File::at(path, HashKind::Sha1).map_err(malformed)?;
        let file = file.with_alloc_limit_bytes(Some(CHAIN_BYTES));
        let scan = PackScan::of(&file, limits)?;
        let mut objects = Self {
            file,
            entries: scan.entries,
            by_name: HashMap::new(),
            cache: SmallResults(MemoryCappedHashmap::new(CACHE_BYTES)),
            inflate: Inflate::default(),
            limits: limits.clone(),
            work: Budget::new(limits),
        };
        objects.apply_deltas(scan.waiting)?;
        Ok(objects)
    }

    /// Applies each delta once, as soon as its base is known.
    fn apply_deltas(&mut self, mut waiting: HashMap<DeltaBase, Vec<usize>>) -> Result<(), ReadStopped> {
        let mut ready: Vec<usize> = Vec::new();
        // From the end, so that the stack returns the entries in their order.
        for at in (0..self.entries.len()).rev() {
            if let Some(name) = self.entries[at].name {
                self.by_name.insert(name, at);
                ready.push(at);
            }
        }
        while let Some(base) = ready.pop() {
            let PackEntry { offset, name, .. } = self.entries[base];
            let by_offset = waiting.remove(&DeltaBase::Offset(offset));
            let by_name = name.and_then(|name| waiting.remove(&DeltaBase::Name(name)));
            for at in by_offset.into_iter().chain(by_name).flatten() {
                let depth = self.entries[base].depth + 1;
                if depth > MAX_DEPTH {
                    return Err(GitFault::Pack("a chain of deltas is too long").into());
                }
                self.entries[at].depth = depth;
                self.entries[at].largest = self.entries[at].size.max(self.entries[base].largest);
                let (kind, content) = self.rebuild(at)?;
                let mut hasher = object_hasher(kind, content.len() as u64);
                hasher.update(&content);
                let name = hasher.try_finalize().map_err(malformed)?;
                self.entries[at].name = Some(name);
                self.by_name.insert(name, at);
                ready.push(at);
            }
        }
        if waiting.is_empty() {
            Ok(())
        } else {
            Err(GitFault::Pack("the base of a delta is missing").into())
        }
    }

    /// Returns an object in memory. The caller has checked its size.
    fn rebuild(&mut self, at: usize) -> Result<(Kind, Vec<u8>), ReadStopped> {
        let PackEntry {
            offset,
            size,
            depth,
            largest,
            ..
        } = self.entries[at];
        let place = || "the deltas of its pack".to_owned();
        // Before the work, for the case that no result of the chain is in the cache.
        Budget::new(&self.limits).count_bytes(largest.saturating_mul(u64::from(depth)), place)?;
        let (file, entries, by_name) = (&self.file, &self.entries, &self.by_name);
        let base = |name: &gix_hash::oid, _: &mut Vec<u8>| match by_name.get(name) {
            Some(at) => file.entry(entries[*at].offset).map(ResolvedBase::InPack).map(Some),
            None => Ok(None),
        };
        let entry = file.entry(offset).map_err(malformed)?;
        let mut content = Vec::new();
        let decoded = file.decode_entry(entry, &mut content, &mut self.inflate, &base, &mut self.cache);
        let decoded = decoded.map_err(|error| match error.is_resource_exhausted() {
            // A small result can have a large base.
            true => GitFault::LargeDelta(size),
            false => malformed(error),
        })?;
        self.work
            .count_bytes(largest.saturating_mul(u64::from(decoded.num_deltas)), place)?;
        Ok((decoded.kind, content))
    }

    fn find(&self, kind: &'static str, name: &ObjectId) -> Result<usize, GitFault> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| GitFault::Missing {
            kind,
            name: name.to_string(),
        })
    }

    /// Returns the tree of a commit.
    pub(super) fn tree_of(&mut self, commit: &str) -> Result<ObjectId, ReadStopped> {
        let name = ObjectId::from_hex(commit.as_bytes()).map_err(malformed)?;
        let (kind, content) = self.document("commit", &name)?;
        if kind != Kind::Commit {
            return Err(GitFault::NotCommit(commit.to_owned()).into());
        }
        let tree = gix_object::CommitRefIter::from_bytes(&content, HashKind::Sha1).tree_id();
        Ok(tree.map_err(malformed)?)
    }

    /// Returns the bytes of a tree.
    pub(super) fn tree(&mut self, name: &ObjectId) -> Result<Vec<u8>, ReadStopped> {
        match self.document("tree", name)? {
            (Kind::Tree, content) => Ok(content),
            _ => Err(OTHER_KIND.into()),
        }
    }

    /// Returns a commit or a tree.
    fn document(&mut self, kind: &'static str, name: &ObjectId) -> Result<(Kind, Vec<u8>), ReadStopped> {
        let at = self.find(kind, name)?;
        // Held in memory, as the paths of an archive are.
        if self.entries[at].size > self.limits.tree_bytes {
            return Err(ReadStopped::Limit(LimitExceeded {
                name: "treeBytes",
                limit: self.limits.tree_bytes,
                place: format!("the {kind} {name}"),
            }));
        }
        self.rebuild(at)
    }

    /// Returns the content of a file, of which only a delta is held in memory.
    pub(super) fn blob(&mut self, name: &ObjectId) -> Result<BlobContent<'_>, ReadStopped> {
        let at = self.find("file", name)?;
        let size = self.entries[at].size;
        let entry = self.file.entry(self.entries[at].offset).map_err(malformed)?;
        let (kind, content): (_, Box<dyn Read + '_>) = if let Some(kind) = entry.header.as_kind() {
            // Hashed when the pack was opened.
            let packed = rest(&self.file, entry.data_offset)?;
            (kind, Box::new(ZlibDecoder::new(packed).take(size)))
        } else {
            let (kind, content) = self.rebuild(at)?;
            (kind, Box::new(Cursor::new(content)))
        };
        if kind == Kind::Blob {
            Ok(BlobContent { size, content })
        } else {
            Err(OTHER_KIND.into())
        }
    }
}

/// A cache without objects that would displace all others.
struct SmallResults(MemoryCappedHashmap);

impl DecodeEntry for SmallResults {
    fn put(&mut self, pack: u32, offset: u64, data: &[u8], kind: Kind, compressed: usize) {
        if data.len() <= CACHE_BYTES {
            self.0.put(pack, offset, data, kind, compressed);
        }
    }

    fn get(&mut self, pack: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        self.0.get(pack, offset, out)
    }
}
