use std::fmt;

use crate::{CatalogName, Sha256};

/// The key of a stored object. Every key is also a URL path below the mirror's root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The names of all catalogs: a static file server cannot list.
    Catalogs,
    /// Which Snapshot of a catalog is published.
    Current(CatalogName),
    /// The last poll of a catalog.
    Status(CatalogName),
    /// The layers of a catalog's image that are known to hold no FBC.
    Layers(CatalogName),
    /// Up to which publication the receivers of change notifications have been told.
    Notified(CatalogName),
    /// That a content is about to be published, or to be replaced by a copy.
    Intent(CatalogName, Sha256),
    /// Whether objects that nothing names are being removed.
    Sweep,
    /// One published state, by content hash.
    Snapshot(CatalogName, Sha256),
    /// Where each Meta of a published state lies.
    Index(CatalogName, Sha256),
    /// The whole catalog in one of its forms.
    All(CatalogName, Sha256, Form),
    /// One Package, by the hash of its uncompressed bytes.
    Shard(Sha256),
    /// A part of a catalog's container image. Its hash is that of the *stored* bytes, as OCI digests are.
    Blob(Sha256),
}

/// The largest window of a zstd frame that is stored, as a power of two: 8 MiB (RFC 9659), which is also the most memory
/// that it may take to decompress one.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The forms in which `all.json` is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// One zstd frame with the content size in its header and a window of at most 8 MB (RFC 9659).
    Zstd,
    /// One gzip member: several break curl, reqwest and httpx.
    Gzip,
    /// Plain JSON lines.
    Identity,
}

/// How long others may keep an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// For ever: the key names the content.
    Immutable,
    /// A minute, longer while the origin is away: a pointer.
    Pointer,
    /// Not at all.
    NoStore,
}

impl CachePolicy {
    /// The `Cache-Control` field value (RFC 9111, RFC 8246, RFC 5861).
    pub const fn cache_control(self) -> &'static str {
        match self {
            Self::Immutable => "public, max-age=31536000, immutable",
            Self::Pointer => "public, max-age=60, stale-while-revalidate=60, stale-if-error=86400",
            Self::NoStore => "no-store",
        }
    }
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Identity];

    const fn file_name(self) -> &'static str {
        match self {
            Self::Zstd => "all.json.zst",
            Self::Gzip => "all.json.gz",
            Self::Identity => "all.json",
        }
    }

    /// The `Content-Encoding` of the stored bytes (RFC 9110, section 8.4), none for plain ones.
    pub const fn content_encoding(self) -> Option<&'static str> {
        match self {
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }
}

impl Key {
    /// Reads a path back; `None` if no key has that path.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["catalogs.json"] => Some(Self::Catalogs),
            ["sweep.json"] => Some(Self::Sweep),
            ["packages", "sha256", file] => Some(Self::Shard(file.strip_suffix(".json.zst")?.parse().ok()?)),
            ["blobs", "sha256", hash] => Some(Self::Blob(hash.parse().ok()?)),
            ["catalogs", name, "current.json"] => Some(Self::Current(name.parse().ok()?)),
            ["catalogs", name, "status.json"] => Some(Self::Status(name.parse().ok()?)),
            ["catalogs", name, "layers.json"] => Some(Self::Layers(name.parse().ok()?)),
            ["catalogs", name, "notified.json"] => Some(Self::Notified(name.parse().ok()?)),
            ["catalogs", name, "intents", file] => Some(Self::Intent(
                name.parse().ok()?,
                file.strip_suffix(".json")?.parse().ok()?,
            )),
            ["catalogs", name, hash, file] => Self::parse_snapshot(name.parse().ok()?, hash.parse().ok()?, file),
            _ => None,
        }
    }

    fn parse_snapshot(name: CatalogName, hash: Sha256, file: &str) -> Option<Self> {
        match file {
            "snapshot.json" => Some(Self::Snapshot(name, hash)),
            "index.json.zst" => Some(Self::Index(name, hash)),
            _ => {
                let form = Form::ALL.into_iter().find(|form| form.file_name() == file)?;
                Some(Self::All(name, hash, form))
            }
        }
    }

    /// The catalog that the object belongs to; none for what all catalogs share.
    pub const fn catalog(&self) -> Option<&CatalogName> {
        match self {
            Self::Catalogs | Self::Sweep | Self::Shard(_) | Self::Blob(_) => None,
            Self::Current(name)
            | Self::Status(name)
            | Self::Layers(name)
            | Self::Notified(name)
            | Self::Intent(name, _)
            | Self::Snapshot(name, _)
            | Self::Index(name, _)
            | Self::All(name, _, _) => Some(name),
        }
    }

    /// Whether the object never changes once it is written.
    pub fn is_immutable(&self) -> bool {
        self.cache_policy() == CachePolicy::Immutable
    }

    /// How long others may keep the object.
    pub const fn cache_policy(&self) -> CachePolicy {
        match self {
            Self::Catalogs | Self::Current(_) => CachePolicy::Pointer,
            Self::Status(_) | Self::Layers(_) | Self::Notified(_) | Self::Intent(..) | Self::Sweep => {
                CachePolicy::NoStore
            }
            Self::Snapshot(..) | Self::Index(..) | Self::All(..) | Self::Shard(_) | Self::Blob(_) => {
                CachePolicy::Immutable
            }
        }
    }

    /// The media type of the content, under its coding.
    pub const fn content_type(&self) -> &'static str {
        match self {
            Self::All(..) | Self::Shard(_) => "application/jsonl",
            // Its media type is in whatever names it.
            Self::Blob(_) => "application/octet-stream",
            Self::Catalogs
            | Self::Current(_)
            | Self::Status(_)
            | Self::Layers(_)
            | Self::Notified(_)
            | Self::Intent(..)
            | Self::Sweep
            | Self::Snapshot(..)
            | Self::Index(..) => "application/json",
        }
    }

    /// The coding in which the object is stored.
    pub const fn content_encoding(&self) -> Option<&'static str> {
        match self {
            Self::All(_, _, form) => form.content_encoding(),
            Self::Index(..) | Self::Shard(_) => Form::Zstd.content_encoding(),
            Self::Catalogs
            | Self::Current(_)
            | Self::Status(_)
            | Self::Layers(_)
            | Self::Notified(_)
            | Self::Intent(..)
            | Self::Sweep
            | Self::Snapshot(..)
            | Self::Blob(_) => None,
        }
    }
}

/// The path of the key, without a leading slash.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogs => f.write_str("catalogs.json"),
            Self::Current(name) => write!(f, "catalogs/{name}/current.json"),
            Self::Status(name) => write!(f, "catalogs/{name}/status.json"),
            Self::Layers(name) => write!(f, "catalogs/{name}/layers.json"),
            Self::Notified(name) => write!(f, "catalogs/{name}/notified.json"),
            Self::Intent(name, hash) => write!(f, "catalogs/{name}/intents/{hash}.json"),
            Self::Sweep => f.write_str("sweep.json"),
            Self::Snapshot(name, hash) => write!(f, "catalogs/{name}/{hash}/snapshot.json"),
            Self::Index(name, hash) => write!(f, "catalogs/{name}/{hash}/index.json.zst"),
            Self::All(name, hash, form) => write!(f, "catalogs/{name}/{hash}/{}", form.file_name()),
            Self::Shard(hash) => write!(f, "packages/sha256/{hash}.json.zst"),
            Self::Blob(hash) => write!(f, "blobs/sha256/{hash}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_key() -> Vec<Key> {
        let name: CatalogName = "v4.20".parse().unwrap();
        let hash = Sha256::of(b"");
        let mut keys = vec![
            Key::Catalogs,
            Key::Current(name.clone()),
            Key::Status(name.clone()),
            Key::Layers(name.clone()),
            Key::Notified(name.clone()),
            Key::Intent(name.clone(), hash),
            Key::Sweep,
            Key::Snapshot(name.clone(), hash),
            Key::Index(name.clone(), hash),
            Key::Shard(hash),
            Key::Blob(hash),
        ];
        keys.extend(Form::ALL.map(|form| Key::All(name.clone(), hash, form)));
        keys
    }

    #[test]
    fn every_path_reads_back_as_its_key() {
        for key in every_key() {
            assert_eq!(Key::parse(&key.to_string()), Some(key));
        }
    }

    #[test]
    fn nothing_else_is_a_key() {
        let hash = Sha256::of(b"");
        for path in [
            String::new(),
            "/catalogs.json".into(),
            "catalogs/../current.json".into(),
            "catalogs/A/current.json".into(),
            "catalogs/a/x.json".into(),
            "catalogs/a/intents/x.json".into(),
            format!("catalogs/a/{hash}/all.json.br"),
            format!("packages/sha256/{hash}.json"),
            format!("blobs/sha256/{hash}.json"),
            format!("blobs/sha512/{hash}"),
            format!("packages/sha256/{}.json.zst", hash.to_string().to_uppercase()),
        ] {
            assert_eq!(Key::parse(&path), None, "{path}");
        }
    }

    #[test]
    fn only_what_is_named_by_its_content_is_cached_for_ever() {
        for key in every_key() {
            let by_hash = key.to_string().contains(&Sha256::of(b"").to_string()) && !matches!(key, Key::Intent(..));
            assert_eq!(key.is_immutable(), by_hash, "{key}");
        }
    }
}
