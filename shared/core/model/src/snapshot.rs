use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Content, DecodedContent, Document, Encoding, Key, Kind, ManifestEntry, ObjectDigest, ObjectRef,
    SeenPackage, Sha256, StoredDocument,
};

/// Version of the canonical form. It grows when the same FBC would give other bytes.
pub const RENDER_VERSION: u32 = 1;

/// Largest size of the lines that one segment of `all.json.gz` holds, in bytes.
///
/// A segment is a run of deflate blocks that begins and ends on a byte border and refers to nothing
/// before it. Each Shard has its own: one for each such number of bytes of its lines, and one for
/// the rest.
pub const SEGMENT_LINES: u64 = 512 << 10;

/// Maximum size of what the tar archive of an image adds to the lines of a Shard, in bytes: the
/// headers of a folder and of a file, with names of at most 255 bytes, and the rest of a block. It
/// is less than 4 KiB in the archives that this program makes.
const LAYER_OVERHEAD_MAX: u64 = 16 << 10;

/// One published state, a function of its content and of the compressors alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Version of the canonical form. A program with a newer version publishes the source anew.
    pub render_version: u32,
    /// The sha256 of the uncompressed canonical `all.json`.
    pub content_hash: Sha256,
    /// Size of the uncompressed `all.json`, in bytes.
    pub size: u64,
    /// Number of Metas.
    pub metas: u64,
    /// The whole catalog in its stored encodings.
    pub all: AllFormats,
    /// Size of each segment of `all.json.gz` in bytes, in their order. The first one follows the
    /// header of the gzip member, which has 10 bytes. The next publication copies the segments of
    /// Packages that did not change. Empty if they were not recorded: it then deflates all lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<u32>,
    /// Hash and size of the index of all Metas.
    pub index: ObjectDigest,
    /// Facts about the Packages by their kind: `findings` of the validation, unless the catalog is
    /// not validated, texts for `search`, and the days on which bundles were first `seen`. Another
    /// program may record other kinds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, ObjectDigest>,
    /// The Metas that belong to no Package, if there are any. Their lines come first in `all.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<ShardRef>,
    /// All Packages in byte order of their names, which is their order in `all.json`.
    pub packages: Vec<ShardRef>,
    /// The catalog as a container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<CatalogImage>,
}

/// The whole catalog in its stored encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllFormats<T = ObjectDigest> {
    /// The encoding under `all/sha256/<hex>.json.zst`.
    pub zstd: T,
    /// The encoding under `all/sha256/<hex>.json.gz`.
    pub gzip: T,
    /// `all/sha256/<hex>.json`, where the publisher is configured to store it.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub identity: Option<T>,
}

/// The Shard of one Package, or of the global group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRef {
    /// Name of the Package; empty for the global group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The Shard as it is stored.
    #[serde(flatten)]
    pub stored: ObjectDigest,
    /// Hash and size of the uncompressed lines.
    pub lines: Content,
    /// Number of Metas.
    pub metas: u64,
}

impl ShardRef {
    /// True for the global group, whose Metas name no Package.
    pub const fn is_global(&self) -> bool {
        self.name.is_empty()
    }
}

/// The catalog as a container image for several platforms. All its parts are stored as blobs under
/// their digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogImage {
    /// The image index, whose digest names the image.
    pub index: ObjectDigest,
    /// The manifests, one for each platform, in the order of the index.
    pub manifests: Vec<ObjectDigest>,
    /// The configurations, in the same order.
    pub configs: Vec<ObjectDigest>,
    /// The one layer, which all platforms share.
    pub layer: ObjectDigest,
    /// The sha256 of the layer's uncompressed tar, by which the configurations name it.
    pub diff_id: Sha256,
}

impl Document for Snapshot {
    const NAME: &'static str = "snapshot";
    const INDENTED: bool = false;
}

impl StoredDocument for Snapshot {
    const KIND: Kind = Kind::Snapshot;
    // 32 MiB: far above a Snapshot of 100,000 packages, far below the smallest machine.
    const MAX_BYTES: u64 = 32 << 20;
    // Every copy of a mirror moves one for each publication: a tenth smaller than at 12, and no
    // larger than at 19.
    const LEVEL: i32 = 15;
}

impl Snapshot {
    /// Returns all Shards in the order in which their lines make up `all.json`.
    pub fn shards(&self) -> impl Iterator<Item = &ShardRef> {
        self.global.iter().chain(&self.packages)
    }

    /// Returns the Shard of a Package.
    pub fn package(&self, name: &str) -> Option<&ShardRef> {
        let at = self
            .packages
            .binary_search_by(|shard| shard.name.as_str().cmp(name));
        self.packages.get(at.ok()?)
    }

    /// Returns the facts of one kind, if they were recorded.
    pub fn facts(&self, kind: &str) -> Option<ObjectRef> {
        self.facts
            .get(kind)
            .map(|facts| facts.with_kind(Kind::Facts))
    }

    /// Returns true if an object of the Snapshot can be made from its Shards: all that
    /// [`Key::is_derived`] says but the days on which a mirror first saw its bundles.
    pub fn can_make(&self, key: &Key) -> bool {
        let days = self.facts(SeenPackage::KIND);
        key.is_derived() && days.is_none_or(|days| days.key() != *key)
    }

    /// Returns each Shard with its segments of `all.json.gz`. `None` if the segments were not
    /// recorded, or if their number is not the one that the lines need.
    pub fn shards_with_segments(&self) -> Option<Vec<(&ShardRef, &[u32])>> {
        let mut shards = Vec::new();
        let mut left = &self.segments[..];
        for shard in self.shards() {
            let count = shard.lines.size.div_ceil(SEGMENT_LINES);
            let (segments, later) = left.split_at_checked(usize::try_from(count).ok()?)?;
            shards.push((shard, segments));
            left = later;
        }
        left.is_empty().then_some(shards)
    }

    /// Returns true if it does not contradict itself: its numbers are the sums of those of its
    /// Shards, these have the names that readers search for, and as many segments as their lines
    /// need, if those were recorded.
    pub fn is_consistent(&self) -> bool {
        // In byte order, each name once.
        if !self.packages.is_sorted_by(|a, b| a.name < b.name) {
            return false;
        }
        let mut globals = self.global.iter();
        if self.packages.first().is_some_and(ShardRef::is_global)
            || !globals.all(ShardRef::is_global)
        {
            return false;
        }
        if !self.segments.is_empty() && self.shards_with_segments().is_none() {
            return false;
        }
        let mut size = 0_u64;
        let mut metas = 0_u64;
        for shard in self.shards() {
            size = size.saturating_add(shard.lines.size);
            metas = metas.saturating_add(shard.metas);
        }
        size == self.size && metas == self.metas
    }

    /// Returns every object that the Snapshot names, each key once: Shards in their order, the
    /// image's blobs, the index, the facts, the encodings of `all.json`.
    pub fn objects(&self) -> Vec<ManifestEntry> {
        let mut entries = Vec::new();
        let mut seen = BTreeSet::new();
        let mut add = |object: ObjectRef, content| {
            if seen.insert(object.key()) {
                entries.push(ManifestEntry { object, content });
            }
        };
        for shard in self.shards() {
            let lines = DecodedContent::Text(shard.lines);
            add(shard.stored.with_kind(Kind::Package), Some(lines));
        }
        if let Some(image) = &self.image {
            let archive = DecodedContent::Layer {
                diff_id: image.diff_id,
                size_max: self.layer_size_max(),
            };
            add(image.layer.with_kind(Kind::Blob), Some(archive));
            for document in image.documents() {
                add(document.with_kind(Kind::Blob), None);
            }
        }
        add(self.index.with_kind(Kind::Index), None);
        for facts in self.facts.values() {
            add(facts.with_kind(Kind::Facts), None);
        }
        let all = DecodedContent::Text(Content {
            sha256: self.content_hash,
            size: self.size,
        });
        for encoding in Encoding::ALL {
            if let Some(object) = self.all.get(encoding) {
                add(object.with_kind(Kind::All(encoding)), Some(all));
            }
        }
        entries
    }

    /// Returns the largest size that the tar archive of the image can have, in bytes.
    fn layer_size_max(&self) -> u64 {
        let shards = self.shards().count() as u64;
        let around_lines = (shards + 1).saturating_mul(LAYER_OVERHEAD_MAX);
        self.size.saturating_add(around_lines)
    }
}

impl CatalogImage {
    /// Returns all parts: the layer, the manifests, the configurations, the image index.
    pub fn blobs(&self) -> impl Iterator<Item = ObjectDigest> {
        std::iter::once(self.layer).chain(self.documents())
    }

    /// Returns all parts but the layer.
    fn documents(&self) -> impl Iterator<Item = ObjectDigest> {
        let documents = self.manifests.iter().chain(&self.configs).copied();
        documents.chain([self.index])
    }
}

impl<T: Copy> AllFormats<T> {
    /// Returns the object of an encoding, if it is stored.
    pub const fn get(&self, encoding: Encoding) -> Option<T> {
        match encoding {
            Encoding::Zstd => Some(self.zstd),
            Encoding::Gzip => Some(self.gzip),
            Encoding::Identity => self.identity,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn shard(name: &str, lines: &str) -> ShardRef {
        ShardRef {
            name: name.into(),
            stored: ObjectDigest::of(format!("zstd {lines}").as_bytes()),
            lines: Content::of(lines.as_bytes()),
            metas: 3,
        }
    }

    pub(crate) fn snapshot() -> Snapshot {
        let digest = |text: &str| ObjectDigest::of(text.as_bytes());
        Snapshot {
            render_version: RENDER_VERSION,
            content_hash: Sha256::of(b"all"),
            size: 6,
            metas: 9,
            all: AllFormats {
                zstd: digest("zstd"),
                gzip: digest("gzip"),
                identity: None,
            },
            segments: Vec::new(),
            index: digest("index"),
            facts: ["findings", "search"]
                .map(|kind| (kind.to_owned(), digest(kind)))
                .into(),
            global: Some(shard("", "global")),
            packages: ["a", "a-b", "a.b", "b"]
                .map(|name| shard(name, "same"))
                .into(),
            image: Some(CatalogImage {
                index: digest("image"),
                manifests: vec![digest("manifest")],
                configs: vec![digest("config")],
                layer: digest("layer"),
                diff_id: Sha256::of(b"tar"),
            }),
        }
    }

    #[test]
    fn snapshot_reads_back_with_and_without_facts() {
        let bare = Snapshot {
            facts: BTreeMap::new(),
            ..snapshot()
        };
        for snapshot in [&snapshot(), &bare] {
            assert_eq!(
                &Snapshot::from_stored(&snapshot.to_stored().unwrap()).unwrap(),
                snapshot
            );
        }
        let text = String::from_utf8(bare.to_bytes()).unwrap();
        assert!(!text.contains("facts"), "{text}");
        assert_eq!(bare.objects().len() + 2, snapshot().objects().len());
    }

    #[test]
    fn package_is_found_by_name() {
        let snapshot = snapshot();
        for name in ["a", "a-b", "a.b", "b"] {
            assert_eq!(snapshot.package(name).unwrap().name, name);
        }
        assert_eq!(snapshot.package(""), None);
        assert_eq!(snapshot.package("c"), None);
    }

    #[test]
    fn days_are_the_facts_that_shards_do_not_give() {
        let mut snapshot = snapshot();
        let days = ObjectDigest::of(b"days");
        let key = days.with_kind(Kind::Facts).key();
        assert!(snapshot.can_make(&key), "facts of another kind");
        snapshot.facts.insert(SeenPackage::KIND.to_owned(), days);
        assert!(!snapshot.can_make(&key));
        assert!(snapshot.can_make(&snapshot.facts("search").unwrap().key()));
        assert!(!snapshot.can_make(&snapshot.packages[0].stored.with_kind(Kind::Package).key()));
    }

    #[test]
    fn objects_lists_each_key_once() {
        let objects = snapshot().objects();
        let kinds: Vec<String> = objects
            .iter()
            .map(|entry| format!("{:?}", entry.object.kind))
            .collect();
        let expected = "Package Package Blob Blob Blob Blob Index Facts Facts All(Zstd) All(Gzip)";
        assert_eq!(kinds.join(" "), expected);
        let global = Key::Object(Kind::Package, Sha256::of(b"zstd global"));
        assert_eq!(objects[0].key(), global);
    }

    #[test]
    fn shards_with_segments_need_one_for_each_512_kib_of_lines() {
        let mut snapshot = snapshot();
        assert_eq!(snapshot.shards_with_segments(), None);
        snapshot.global = None;
        snapshot.packages.truncate(3);
        let sizes = [SEGMENT_LINES, SEGMENT_LINES + 1, 0];
        for (shard, size) in snapshot.packages.iter_mut().zip(sizes) {
            shard.lines.size = size;
        }
        snapshot.size = sizes.iter().sum();
        assert!(snapshot.is_consistent());
        for (segments, expected) in [
            (&[7, 8, 9][..], true),
            (&[7, 8], false),
            (&[7, 8, 9, 1], false),
        ] {
            snapshot.segments = segments.to_vec();
            assert_eq!(snapshot.is_consistent(), expected, "{segments:?}");
            let of_shards = snapshot.shards_with_segments();
            assert_eq!(of_shards.is_some(), expected, "{segments:?}");
            if let Some(of_shards) = of_shards {
                let segments = of_shards.iter().map(|(_, segments)| *segments);
                assert!(segments.eq([&[7][..], &[8, 9], &[]]));
            }
        }
        snapshot.segments = vec![7, 8, 9];
        let read = Snapshot::from_stored(&snapshot.to_stored().unwrap()).unwrap();
        assert_eq!(read, snapshot);
    }
}
