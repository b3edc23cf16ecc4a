use std::collections::BTreeMap;

use bytes::Bytes;
use model::{
    AllFormats, CatalogImage, Content, Encoding, Index, IndexedMeta, IndexedShard, Key, Kind,
    ObjectDigest, RENDER_VERSION, Sha256, ShardRef, Snapshot, StoredDocument,
};

/// Returns the Snapshot of these Packages, given as names and lines. An empty name is the global
/// group.
///
/// ```
/// let line = "{\"name\":\"db\",\"schema\":\"olm.package\"}\n";
/// let snapshot = testkit::snapshot(&[("db", line)]);
/// assert_eq!((snapshot.packages[0].name.as_str(), snapshot.metas), ("db", 1));
/// ```
pub fn snapshot(packages: &[(&str, &str)]) -> Snapshot {
    let mut builder = SnapshotBuilder::new();
    for (name, lines) in packages {
        builder = builder.package(name, lines);
    }
    builder.build().snapshot
}

/// Builder of a Snapshot and of the objects that it names.
///
/// The default is a catalog without Packages, with `all.json` as zstd and gzip, and without an
/// image.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SnapshotBuilder {
    packages: BTreeMap<String, Vec<u8>>,
    identity: bool,
    image: Option<CatalogImage>,
    facts: BTreeMap<String, Vec<u8>>,
}

/// A Snapshot with everything that a store needs to serve it, except the blobs of an image.
#[derive(Clone, Debug)]
pub struct BuiltSnapshot {
    /// The Snapshot.
    pub snapshot: Snapshot,
    /// Uncompressed `all.json`.
    pub all: Vec<u8>,
    /// Stored bytes of the Shards, the index, the facts, the encodings of `all.json` and the
    /// Snapshot itself.
    pub objects: BTreeMap<Key, Bytes>,
}

impl SnapshotBuilder {
    /// Creates the builder of a catalog without Packages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds lines to a Package. An empty name is the global group.
    pub fn package(mut self, name: &str, lines: impl AsRef<[u8]>) -> Self {
        self.packages
            .entry(name.to_owned())
            .or_default()
            .extend(lines.as_ref());
        self
    }

    /// Stores `all.json` uncompressed too.
    pub fn identity(self) -> Self {
        Self {
            identity: true,
            ..self
        }
    }

    /// Adds a container image, whose blobs the test stores itself.
    pub fn image(mut self, image: CatalogImage) -> Self {
        self.image = Some(image);
        self
    }

    /// Adds facts of one kind about the Packages.
    pub fn facts(mut self, kind: &str, facts: &impl StoredDocument) -> Self {
        self.facts.insert(kind.to_owned(), stored(facts));
        self
    }

    /// Builds the Snapshot and its objects.
    pub fn build(&self) -> BuiltSnapshot {
        let mut objects = BTreeMap::new();
        let mut put = |kind: Kind, bytes: Vec<u8>| {
            let digest = ObjectDigest::of(&bytes);
            objects.insert(digest.with_kind(kind).key(), Bytes::from(bytes));
            digest
        };
        let mut index = Index::default();
        let mut shards: Vec<ShardRef> = Vec::new();
        for (name, lines) in &self.packages {
            let metas = metas(lines);
            shards.push(ShardRef {
                name: name.clone(),
                stored: put(Kind::Package, compress(lines)),
                lines: Content::of(lines),
                metas: metas.len() as u64,
            });
            index.shards.push(IndexedShard {
                lines: Sha256::of(lines),
                metas: metas.into(),
            });
        }
        // The global group has an empty name, so the map has it first, as `all.json` does.
        let all: Vec<u8> = self.packages.values().flatten().copied().collect();
        let mut global = None;
        if shards.first().is_some_and(|shard| shard.name.is_empty()) {
            global = Some(shards.remove(0));
        }
        let mut identity = None;
        if self.identity {
            identity = Some(put(Kind::All(Encoding::Identity), all.clone()));
        }
        let mut facts = BTreeMap::new();
        for (kind, stored) in &self.facts {
            facts.insert(kind.clone(), put(Kind::Facts, stored.clone()));
        }
        let metas = global.iter().chain(&shards).map(|shard| shard.metas).sum();
        let snapshot = Snapshot {
            render_version: RENDER_VERSION,
            content_hash: Sha256::of(&all),
            size: all.len() as u64,
            metas,
            all: AllFormats {
                zstd: put(Kind::All(Encoding::Zstd), compress(&all)),
                gzip: put(Kind::All(Encoding::Gzip), crate::gzip(&all)),
                identity,
            },
            segments: Vec::new(),
            index: put(Kind::Index, stored(&index)),
            facts,
            global,
            packages: shards,
            image: self.image.clone(),
        };
        put(Kind::Snapshot, stored(&snapshot));
        BuiltSnapshot {
            snapshot,
            all,
            objects,
        }
    }
}

/// Returns the position and fields of each line. A line that is not a JSON object has no fields.
fn metas(lines: &[u8]) -> Vec<IndexedMeta> {
    let mut offset = 0;
    let mut metas = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let meta: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        let field = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
        let length = line.len() as u64;
        metas.push(IndexedMeta {
            schema: field("schema"),
            package: field("package"),
            name: field("name"),
            offset,
            length,
        });
        offset += length;
    }
    metas
}

/// Returns the stored bytes of a document.
pub(super) fn stored(document: &impl StoredDocument) -> Vec<u8> {
    document.to_stored().expect("the compressor has memory")
}

/// One zstd frame with its content size in the header, as publishers write it.
fn compress(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 3).expect("the compressor has memory")
}
