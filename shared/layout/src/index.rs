use serde::{Deserialize, Serialize};

use crate::{Document, Sha256};

/// `index.json.zst`: where each Meta of a Snapshot lies, in the order of `all.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The Shards in the order of the Snapshot.
    pub shards: Vec<IndexedShard>,
}

/// The Metas of one Shard in the order of their lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedShard {
    /// The Shard.
    pub sha256: Sha256,
    /// Its Metas.
    pub metas: Vec<IndexedMeta>,
}

/// One Meta: what a `metas` query may ask for, and where its line lies.
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
    /// Where its line starts in the uncompressed Shard, in bytes.
    pub offset: u64,
    /// How long its line is, in bytes, with the newline.
    pub length: u64,
}

impl Document for Index {
    const KIND: &'static str = "index.json";
    const INDENTED: bool = false;
}

impl Index {
    /// The most bytes that an uncompressed index may have: 2 GB of catalog have about 100,000 Metas of some 150 bytes.
    pub const MAX_BYTES: u64 = 256 << 20;
}
