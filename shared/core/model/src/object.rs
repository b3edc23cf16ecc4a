use serde::{Deserialize, Serialize};

use crate::{Key, Kind, ObjectKey, Sha256};

/// Hash and size of the stored bytes of an object. The hash is also the object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectDigest {
    /// The sha256 of the stored bytes.
    pub sha256: Sha256,
    /// Size of the object as it is stored, in bytes.
    pub size: u64,
}

/// Hash and size of the content that an object decodes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// The sha256 of the decoded content.
    pub sha256: Sha256,
    /// Size of the decoded content, in bytes.
    pub size: u64,
}

/// A reference to an immutable object from a mutable document:
/// `{"key": "snapshots/sha256/<hex>.json.zst", "size": 1234}`.
///
/// The path is written out so that curl and a static file server can follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "WrittenRef", into = "WrittenRef")]
pub struct ObjectRef {
    /// Kind of the object, which decides folder and extension.
    pub kind: Kind,
    /// Hash and size of its stored bytes.
    pub digest: ObjectDigest,
}

/// One object that a Snapshot names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ManifestEntry {
    /// Kind, hash and size of the stored bytes.
    pub object: ObjectRef,
    /// Decoded content, where a document records it.
    pub content: Option<DecodedContent>,
}

/// Content that an object decodes to, as far as its Snapshot records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecodedContent {
    /// Lines or a document, in the encoding of the object's kind.
    Text(Content),
    /// Layer of an image: a tar archive in one gzip member.
    Layer {
        /// The sha256 of the archive.
        diff_id: Sha256,
        /// Maximum size of the archive, in bytes.
        size_max: u64,
    },
}

impl ObjectDigest {
    /// Returns hash and size of these stored bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            sha256: Sha256::of(bytes),
            size: bytes.len() as u64,
        }
    }

    /// Adds the kind, which makes a reference.
    pub const fn with_kind(self, kind: Kind) -> ObjectRef {
        ObjectRef { kind, digest: self }
    }
}

impl Content {
    /// Returns hash and size of this decoded content.
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            sha256: Sha256::of(bytes),
            size: bytes.len() as u64,
        }
    }
}

impl ObjectRef {
    /// Returns the key of the object.
    pub const fn key(&self) -> Key {
        Key::Object(self.kind, self.digest.sha256)
    }
}

impl ManifestEntry {
    /// Returns the key of the object.
    pub const fn key(&self) -> Key {
        self.object.key()
    }
}

impl From<ObjectRef> for ObjectKey {
    fn from(ObjectRef { kind, digest }: ObjectRef) -> Self {
        let sha256 = digest.sha256;
        Self { kind, sha256 }
    }
}

#[derive(Serialize, Deserialize)]
struct WrittenRef {
    key: ObjectKey,
    size: u64,
}

impl From<ObjectRef> for WrittenRef {
    fn from(object: ObjectRef) -> Self {
        let size = object.digest.size;
        Self {
            key: object.into(),
            size,
        }
    }
}

impl From<WrittenRef> for ObjectRef {
    fn from(WrittenRef { key, size }: WrittenRef) -> Self {
        let sha256 = key.sha256;
        ObjectDigest { sha256, size }.with_kind(key.kind)
    }
}
