use serde::{Deserialize, Serialize};

use crate::{Document, Form, Sha256};

/// The version of the canonical form. It grows when the same FBC would give other bytes.
pub const RENDER_VERSION: u32 = 1;

/// `snapshot.json`: one published state, a function of its content alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The version of the canonical form.
    pub render_version: u32,
    /// The sha256 of the uncompressed canonical `all.json`.
    pub content_hash: Sha256,
    /// The bytes of the uncompressed `all.json`.
    pub size: u64,
    /// How many Metas there are.
    pub metas: u64,
    /// The whole catalog as it is stored.
    pub all: Whole,
    /// `index.json.zst` as it is stored.
    pub index: Stored,
    /// The Metas that belong to no Package, if there are any. Their lines come first in `all.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<ShardRef>,
    /// All Packages in byte order of their names, which is their order in `all.json`.
    pub packages: Vec<ShardRef>,
    /// The catalog as a container image. Snapshots of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// The stored forms of `all.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// `all.json.zst`.
    pub zstd: Stored,
    /// `all.json.gz`.
    pub gzip: Stored,
    /// `all.json`, where the store keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Stored>,
}

/// What lies in the store, so that the wire can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The bytes of the object as stored.
    pub size: u64,
    /// The sha256 of the object as stored.
    pub sha256: Sha256,
}

/// One Package of a Snapshot and its Shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRef {
    /// The Package's name; empty for the global group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The sha256 of the uncompressed Shard, which names it.
    pub sha256: Sha256,
    /// The bytes of the uncompressed Shard.
    pub size: u64,
    /// How many Metas it holds.
    pub metas: u64,
    /// The Shard as it is stored.
    pub stored: Stored,
}

/// The catalog as a container image for several platforms, all its parts stored as blobs under their digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The image index, whose digest names the image.
    pub index: Stored,
    /// The manifests, one for each platform, in the order of the index.
    pub manifests: Vec<Stored>,
    /// Their configurations, in the same order.
    pub configs: Vec<Stored>,
    /// The one layer that all platforms share.
    pub layer: Stored,
    /// The sha256 of the layer's uncompressed tar, by which the configurations name it.
    pub diff_id: Sha256,
}

impl Document for Snapshot {
    const KIND: &'static str = "snapshot.json";
}

impl Snapshot {
    /// All Shards in the order in which their lines make up `all.json`.
    pub fn shards(&self) -> impl Iterator<Item = &ShardRef> {
        self.global.iter().chain(&self.packages)
    }

    /// The Shard of a Package.
    pub fn package(&self, name: &str) -> Option<&ShardRef> {
        let at = self
            .packages
            .binary_search_by(|shard| shard.name.as_str().cmp(name))
            .ok()?;
        self.packages.get(at)
    }
}

impl Image {
    /// All its parts, each named by the sha256 of its bytes.
    pub fn blobs(&self) -> impl Iterator<Item = Stored> {
        let documents = self.manifests.iter().chain(&self.configs).copied();
        std::iter::once(self.layer).chain(documents).chain([self.index])
    }
}

impl Whole {
    /// The object of a form, if the store keeps it.
    pub const fn form(&self, form: Form) -> Option<Stored> {
        match form {
            Form::Zstd => Some(self.zstd),
            Form::Gzip => Some(self.gzip),
            Form::Identity => self.identity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(name: &str) -> ShardRef {
        let stored = Stored {
            size: 1,
            sha256: Sha256::of(b"zstd"),
        };
        ShardRef {
            name: name.into(),
            sha256: Sha256::of(name.as_bytes()),
            size: 2,
            metas: 3,
            stored,
        }
    }

    fn snapshot() -> Snapshot {
        let stored = Stored {
            size: 1,
            sha256: Sha256::of(b""),
        };
        Snapshot {
            render_version: RENDER_VERSION,
            content_hash: Sha256::of(b"all"),
            size: 6,
            metas: 9,
            all: Whole {
                zstd: stored,
                gzip: stored,
                identity: None,
            },
            index: stored,
            global: Some(shard("")),
            packages: vec![shard("a"), shard("a-b"), shard("a.b"), shard("b")],
            image: Some(Image {
                index: stored,
                manifests: vec![stored],
                configs: vec![stored],
                layer: stored,
                diff_id: Sha256::of(b"tar"),
            }),
        }
    }

    #[test]
    fn reads_back() {
        assert_eq!(Snapshot::from_bytes(&snapshot().to_bytes()).unwrap(), snapshot());
    }

    #[test]
    fn older_ones_have_no_image() {
        let older = Snapshot {
            image: None,
            ..snapshot()
        };
        let bytes = older.to_bytes();
        assert!(!String::from_utf8_lossy(&bytes).contains("image"));
        assert_eq!(Snapshot::from_bytes(&bytes).unwrap(), older);
    }

    #[test]
    fn finds_packages_by_name() {
        let snapshot = snapshot();
        for name in ["a", "a-b", "a.b", "b"] {
            assert_eq!(snapshot.package(name).unwrap().name, name);
        }
        assert_eq!(snapshot.package(""), None);
        assert_eq!(snapshot.package("c"), None);
    }

    #[test]
    fn the_global_group_comes_first() {
        let snapshot = snapshot();
        let names: Vec<&str> = snapshot.shards().map(|shard| shard.name.as_str()).collect();
        assert_eq!(names, ["", "a", "a-b", "a.b", "b"]);
    }
}
