use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Document, Kind, Sha256, Snapshot, StoredDocument};

/// The index of a Snapshot: the position of each Meta, in the order of `all.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index<'a> {
    /// The Shards, in the order of the Snapshot.
    pub shards: Vec<IndexedShard<'a>>,
}

/// The index of one Shard: the positions of its Metas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedShard<'a> {
    /// The sha256 of the uncompressed lines.
    pub lines: Sha256,
    /// The Metas, in the order of their lines. What writes an index need not copy them.
    pub metas: Cow<'a, [IndexedMeta]>,
}

/// One Meta: the fields that a `metas` query may ask for, and the position of its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedMeta {
    /// Its `schema`; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// Its `package` field, which an `olm.package` usually lacks; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Its `name`; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Offset of its line in the uncompressed Shard, in bytes.
    pub offset: u64,
    /// Length of its line with the newline, in bytes.
    pub length: u64,
}

impl Index<'_> {
    /// Returns true if the index has the Shards of a Snapshot, in their order.
    pub fn describes(&self, snapshot: &Snapshot) -> bool {
        let described = self.shards.iter().map(|shard| shard.lines);
        described.eq(snapshot.shards().map(|shard| shard.lines.sha256))
    }
}

impl IndexedMeta {
    /// Returns the name of the Package that the Meta belongs to; empty for the global group.
    pub fn package_name(&self) -> &str {
        match (self.package.as_str(), self.schema.as_str()) {
            // Only the Meta that defines a Package may leave the field out: its name is the
            // Package.
            ("", "olm.package") => &self.name,
            (package, _) => package,
        }
    }

    /// Returns the name of the Package that all Metas of a Shard belong to; `None` if they differ
    /// or if there are none.
    pub fn package_of_all(metas: &[Self]) -> Option<&str> {
        let name = metas.first()?.package_name();
        if metas.iter().any(|meta| meta.package_name() != name) {
            return None;
        }
        Some(name)
    }
}

impl Document for Index<'_> {
    const NAME: &'static str = "index";
    const INDENTED: bool = false;
}

impl StoredDocument for Index<'_> {
    const KIND: Kind = Kind::Index;
    // 256 MiB: 2 GB of catalog have about 100,000 Metas of some 150 bytes each.
    const MAX_BYTES: u64 = 256 << 20;
}
