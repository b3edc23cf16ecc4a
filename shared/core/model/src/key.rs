use std::fmt;

use crate::{
    CatalogName, DocumentCheck, Encoding, Facts, Garbage, Index, ObjectKey, Sha256, Snapshot,
};

/// The key of a stored object. Every key is also a URL path below the mirror's root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `catalogs.json`: the names of all catalogs, since a static file server cannot list.
    Catalogs,
    /// `current.json`: the published Snapshot of a catalog.
    Current(CatalogName),
    /// `status.json`: the last poll of a catalog.
    Status(CatalogName),
    /// `notified.json`: the last publication that each receiver of change events has acknowledged.
    Notified(CatalogName),
    /// `gc.json`: the state of garbage collection.
    Gc,
    /// An immutable object, named by the sha256 of its stored bytes.
    Object(Kind, Sha256),
}

/// The kind of an immutable object: it decides folder, extension, media type and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A whole catalog as canonical JSON lines.
    All(Encoding),
    /// A Shard: the canonical JSON lines of one Package.
    Package,
    /// A Snapshot: all objects of one published state.
    Snapshot,
    /// The position of each Meta of a Snapshot.
    Index,
    /// Facts of one kind about the Packages of a Snapshot.
    Facts,
    /// A list of keys that the garbage collector has condemned.
    Garbage,
    /// A part of a catalog's container image.
    Blob,
}

/// Caching rule for clients and CDNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// One year: the key names the bytes.
    Immutable,
    /// One minute, and up to a day while the origin fails: a pointer.
    Pointer,
    /// Never cached: a document for operators.
    NoStore,
}

impl CachePolicy {
    /// Returns the `Cache-Control` field value (RFC 9111, RFC 8246, RFC 5861).
    pub const fn cache_control(self) -> &'static str {
        match self {
            Self::Immutable => "public, max-age=31536000, immutable",
            Self::Pointer => "public, max-age=60, stale-while-revalidate=60, stale-if-error=86400",
            Self::NoStore => "no-store",
        }
    }
}

impl Kind {
    /// All kinds, in the order in which paths are matched.
    pub const ALL: [Self; 9] = [
        Self::All(Encoding::Zstd),
        Self::All(Encoding::Gzip),
        Self::All(Encoding::Identity),
        Self::Package,
        Self::Snapshot,
        Self::Index,
        Self::Facts,
        Self::Garbage,
        Self::Blob,
    ];

    /// Returns the folder that holds objects of this kind, with a slash at its end, for listings.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::All(_) => "all/sha256/",
            Self::Package => "packages/sha256/",
            Self::Snapshot => "snapshots/sha256/",
            Self::Index => "indexes/sha256/",
            Self::Facts => "facts/sha256/",
            Self::Garbage => "garbage/sha256/",
            Self::Blob => "blobs/sha256/",
        }
    }

    const fn extension(self) -> &'static str {
        match (self, self.encoding()) {
            // OCI names blobs by their digest alone.
            (Self::Blob, _) => "",
            (_, Encoding::Zstd) => ".json.zst",
            (_, Encoding::Gzip) => ".json.gz",
            (_, Encoding::Identity) => ".json",
        }
    }

    /// Returns the media type of the decoded content.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::All(_) | Self::Package => "application/jsonl",
            Self::Snapshot | Self::Index | Self::Facts | Self::Garbage => "application/json",
            // The document that names a blob knows its media type.
            Self::Blob => "application/octet-stream",
        }
    }

    /// Returns the encoding of the stored bytes.
    pub const fn encoding(self) -> Encoding {
        match self {
            Self::All(encoding) => encoding,
            Self::Package | Self::Snapshot | Self::Index | Self::Facts | Self::Garbage => {
                Encoding::Zstd
            }
            Self::Blob => Encoding::Identity,
        }
    }

    /// Returns the check of a document that can only be read as a whole; `None` for lines and
    /// blobs.
    pub const fn document(self) -> Option<DocumentCheck> {
        match self {
            Self::Snapshot => Some(DocumentCheck::of::<Snapshot>()),
            Self::Index => Some(DocumentCheck::of::<Index<'_>>()),
            Self::Facts => Some(DocumentCheck::of::<Facts>()),
            Self::Garbage => Some(DocumentCheck::of::<Garbage>()),
            Self::All(_) | Self::Package | Self::Blob => None,
        }
    }
}

impl Key {
    /// Parses a path without a leading slash; `None` if no key has that path.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["catalogs.json"] => Some(Self::Catalogs),
            ["gc.json"] => Some(Self::Gc),
            ["catalogs", name, "current.json"] => Some(Self::Current(name.parse().ok()?)),
            ["catalogs", name, "status.json"] => Some(Self::Status(name.parse().ok()?)),
            ["catalogs", name, "notified.json"] => Some(Self::Notified(name.parse().ok()?)),
            [_, "sha256", _] => Kind::ALL.into_iter().find_map(|kind| {
                let hash = path
                    .strip_prefix(kind.folder())?
                    .strip_suffix(kind.extension())?;
                Some(Self::Object(kind, hash.parse().ok()?))
            }),
            _ => None,
        }
    }

    /// Returns the catalog that a mutable document belongs to; `None` for documents and objects
    /// that catalogs share.
    pub const fn catalog(&self) -> Option<&CatalogName> {
        match self {
            Self::Catalogs | Self::Gc | Self::Object(..) => None,
            Self::Current(name) | Self::Status(name) | Self::Notified(name) => Some(name),
        }
    }

    /// True if the bytes under this key never change.
    pub const fn is_immutable(&self) -> bool {
        matches!(self, Self::Object(..))
    }

    /// True if the object can be made from the Shards and the Snapshot.
    pub const fn is_derived(&self) -> bool {
        matches!(
            self,
            Self::Object(Kind::All(_) | Kind::Index | Kind::Facts | Kind::Blob, _)
        )
    }

    /// Returns the caching rule for clients and CDNs.
    pub const fn cache_policy(&self) -> CachePolicy {
        match self {
            // A minute bounds the delay of a publication, and lets a CDN answer all other requests
            // for a pointer.
            Self::Catalogs | Self::Current(_) => CachePolicy::Pointer,
            Self::Status(_) | Self::Notified(_) | Self::Gc => CachePolicy::NoStore,
            Self::Object(..) => CachePolicy::Immutable,
        }
    }

    /// Returns the media type of the decoded content. Mutable documents are JSON.
    pub fn content_type(&self) -> &'static str {
        ObjectKey::of(self).map_or("application/json", |object| object.kind.content_type())
    }

    /// Returns the encoding of the stored bytes.
    pub fn encoding(&self) -> Encoding {
        ObjectKey::of(self).map_or(Encoding::Identity, |object| object.kind.encoding())
    }
}

/// Writes the path of the key, without a leading slash.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogs => f.write_str("catalogs.json"),
            Self::Current(name) => write!(f, "catalogs/{name}/current.json"),
            Self::Status(name) => write!(f, "catalogs/{name}/status.json"),
            Self::Notified(name) => write!(f, "catalogs/{name}/notified.json"),
            Self::Gc => f.write_str("gc.json"),
            Self::Object(kind, hash) => write!(f, "{}{hash}{}", kind.folder(), kind.extension()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_key() -> Vec<Key> {
        let name: CatalogName = "v4.20".parse().unwrap();
        let mut keys = vec![
            Key::Catalogs,
            Key::Current(name.clone()),
            Key::Status(name.clone()),
            Key::Notified(name),
            Key::Gc,
        ];
        keys.extend(Kind::ALL.map(|kind| Key::Object(kind, Sha256::of(b""))));
        keys
    }

    #[test]
    fn parse_of_each_path_returns_its_key() {
        for key in every_key() {
            assert_eq!(Key::parse(&key.to_string()), Some(key));
        }
    }

    #[test]
    fn parse_refuses_other_paths() {
        let hash = Sha256::of(b"");
        let upper = hash.to_string().to_uppercase();
        let paths = format!(
            " /catalogs.json catalogs/../current.json catalogs/A/current.json catalogs/a/x.json other.json \
             all/sha256/{hash}.json.br all/sha256/{hash} all/sha256/x/{hash}.json packages/sha256/{hash}.json \
             snapshots/sha256/{hash}.json.gz blobs/sha256/{hash}.json blobs/sha512/{hash} packages/sha256/{upper}.json.zst"
        );
        for path in paths.split(' ') {
            assert_eq!(Key::parse(path), None, "{path}");
        }
    }

    #[test]
    fn only_keys_with_a_hash_are_cached_for_ever() {
        for key in every_key() {
            let has_hash = key.to_string().contains(&Sha256::of(b"").to_string());
            assert_eq!(
                key.cache_policy() == CachePolicy::Immutable,
                has_hash,
                "{key}"
            );
            assert_eq!(key.is_immutable(), has_hash, "{key}");
        }
    }
}
