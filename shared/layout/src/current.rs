use serde::{Deserialize, Serialize};

use crate::{CatalogName, Document, Key, Sha256};

/// How many earlier publications a [`Current`] remembers.
pub const PREVIOUS_MAX: usize = 16;

/// `current.json`: the one mutable document of a catalog. Replacing it is the commit of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    /// Grows by one with every publication, never goes back, starts at 1.
    pub serial: u64,
    /// The sha256 of the uncompressed canonical `all.json`.
    pub content_hash: Sha256,
    /// The published Snapshot.
    pub snapshot: SnapshotRef,
    /// What the source was last seen at, which is what was read to make this content unless it was rolled back: then it
    /// stays what it was, so that a poll does not undo the rollback until the source moves. The only part that changes
    /// when an image is rebuilt around the same FBC.
    pub source: SourceRef,
    /// The version of the canonical form under which the source was read: a newer program reads it again, even after a
    /// rollback.
    pub render_version: u32,
    /// When this content was published: RFC 3339, UTC, whole seconds.
    #[serde(with = "timestamp")]
    pub published_at: std::time::SystemTime,
    /// Set by a rollback, as this content is then not that of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought_back: Option<BroughtBack>,
    /// Whether readers serve the catalog.
    #[serde(default, skip_serializing_if = "Availability::is_available")]
    pub availability: Availability,
    /// Earlier publications, newest first, at most [`PREVIOUS_MAX`].
    #[serde(default)]
    pub previous: Vec<Previous>,
    /// Signatures of this document without this member. None where the publisher has no key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
}

/// A signature as DSSE v1.0.2 writes it (envelope.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Which key it is of: the sha256 of its `SubjectPublicKeyInfo` in hex.
    pub keyid: String,
    /// The signature in base64.
    pub sig: String,
}

/// Where a Snapshot lies and what its bytes hash to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRef {
    /// Its key.
    pub key: String,
    /// The sha256 of its bytes.
    pub sha256: Sha256,
}

/// What a catalog was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRef {
    /// As configured: `quay.io/operatorhubio/catalog:latest`, `oci:DIR`, `dir:PATH`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The digest that it resolved to.
    pub digest: String,
    /// By whom the image with that digest was signed, if the catalog has a policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// An earlier content that is published again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroughtBack {
    /// How the image was verified that it was read from, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// How a source image was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// What was asked for: another policy, another hash.
    pub policy: Sha256,
    /// Who signed it. None if the policy accepts anything.
    pub by: Vec<SignedBy>,
}

/// Who signed an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedBy {
    /// How: `cosign`, `sigstore-bundle` or `openpgp`.
    pub method: String,
    /// The fingerprint of the key: the sha256 of its `SubjectPublicKeyInfo`, or what OpenPGP calls so.
    pub key: String,
}

/// `ClusterCatalog.spec.availabilityMode`: an unavailable catalog is kept up to date but answers 404.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Availability {
    /// Served.
    #[default]
    Available,
    /// Not served.
    Unavailable,
}

impl Availability {
    /// Whether the catalog is served.
    pub const fn is_available(&self) -> bool {
        matches!(self, Self::Available)
    }
}

/// An earlier publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// Its serial.
    pub serial: u64,
    /// Its content hash, which names its Snapshot.
    pub content_hash: Sha256,
    /// When it was published.
    #[serde(with = "timestamp")]
    pub published_at: std::time::SystemTime,
    /// The sha256 of its Snapshot, by which a signature of this document vouches for the earlier ones too. Older
    /// versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Sha256>,
    /// How the image was verified that it was read from, as [`Current::verified`] says. Older versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

impl Document for Current {
    const KIND: &'static str = "current.json";
}

impl Current {
    /// How the image was verified that the content was read from: after a rollback that is not the source.
    pub const fn verified(&self) -> Option<&Verified> {
        match &self.brought_back {
            Some(brought_back) => brought_back.verified.as_ref(),
            None => self.source.verified.as_ref(),
        }
    }

    /// What `previous` of the next publication holds: this one, then its own, newest first.
    pub fn as_previous(&self) -> Vec<Previous> {
        let this = Previous {
            serial: self.serial,
            content_hash: self.content_hash,
            published_at: self.published_at,
            snapshot: Some(self.snapshot.sha256),
            verified: self.verified().cloned(),
        };
        std::iter::once(this)
            .chain(self.previous.iter().cloned())
            .take(PREVIOUS_MAX)
            .collect()
    }
}

impl Current {
    /// What the Snapshot of a content that is or was published hashes to, newest publication first. The same content may
    /// have been published with more than one. Older versions recorded it only of what was current.
    pub fn recorded(&self, content_hash: Sha256) -> impl Iterator<Item = Option<Sha256>> {
        let this = (self.content_hash == content_hash).then_some(Some(self.snapshot.sha256));
        let earlier = self
            .previous
            .iter()
            .filter(move |previous| previous.content_hash == content_hash);
        // What is published has to be just that.
        let earlier = earlier
            .filter(move |_| this.is_none())
            .map(|previous| previous.snapshot);
        this.into_iter().chain(earlier)
    }

    /// Whether a Snapshot with these bytes' hash contradicts what was recorded when that content was published. Nothing
    /// does where nothing was.
    pub fn contradicts(&self, content_hash: Sha256, snapshot: Sha256) -> bool {
        let mut recorded = self.recorded(content_hash).peekable();
        recorded.peek().is_some() && recorded.all(|recorded| recorded.is_some_and(|recorded| recorded != snapshot))
    }
}

impl SnapshotRef {
    /// Points at the Snapshot of `catalog` with that content, whose bytes are `bytes`.
    pub fn new(catalog: &CatalogName, content_hash: Sha256, bytes: &[u8]) -> Self {
        Self {
            key: Key::Snapshot(catalog.clone(), content_hash).to_string(),
            sha256: Sha256::of(bytes),
        }
    }
}

/// RFC 3339 in UTC with whole seconds; what others write beyond them is dropped, lest a document that is read and
/// written again be another one.
pub(crate) mod timestamp {
    use std::time::{Duration, SystemTime};

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_seconds(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    fn parse(text: &str) -> Result<SystemTime, humantime::TimestampError> {
        let time = humantime::parse_rfc3339(text)?;
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(time - Duration::from_nanos(since.subsec_nanos().into()))
    }

    /// The same for a time that may be absent.
    pub(crate) mod option {
        use super::{Deserialize, Deserializer, Error, Serializer, SystemTime};

        pub(crate) fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
            match time {
                Some(time) => super::serialize(time, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SystemTime>, D::Error> {
            Option::<String>::deserialize(deserializer)?
                .map(|text| super::parse(&text).map_err(D::Error::custom))
                .transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn current(serial: u64) -> Current {
        let name = "demo".parse().unwrap();
        Current {
            serial,
            content_hash: Sha256::of(b"lines"),
            snapshot: SnapshotRef::new(&name, Sha256::of(b"lines"), b"{}"),
            source: SourceRef {
                reference: "quay.io/a/b:c".into(),
                digest: "sha256:00".into(),
                verified: None,
            },
            render_version: 1,
            published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000),
            brought_back: None,
            availability: Availability::Available,
            previous: Vec::new(),
            signatures: Vec::new(),
        }
    }

    #[test]
    fn reads_back_and_hides_what_is_default() {
        let bytes = current(3).to_bytes();
        assert_eq!(Current::from_bytes(&bytes).unwrap(), current(3));
        let text = String::from_utf8(bytes).unwrap();
        for absent in ["availability", "signatures", "verified", "broughtBack"] {
            assert!(!text.contains(absent), "{text}");
        }
        assert!(text.contains(r#""publishedAt": "2026-09-21T14:13:20Z""#), "{text}");
    }

    #[test]
    fn what_is_read_is_what_would_be_written() {
        let text = String::from_utf8(current(3).to_bytes()).unwrap();
        let finer = text.replace("14:13:20Z", "14:13:20.999Z");
        assert_ne!(finer, text);
        assert_eq!(Current::from_bytes(finer.as_bytes()).unwrap(), current(3));
    }

    #[test]
    fn what_was_brought_back_is_not_verified_as_its_source_is() {
        let policy = Sha256::of(b"policy");
        let verified = Some(Verified { policy, by: Vec::new() });
        let mut now = current(2);
        now.source.verified.clone_from(&verified);
        assert_eq!(
            (now.verified(), &now.as_previous()[0].verified),
            (verified.as_ref(), &verified)
        );
        now.brought_back = Some(BroughtBack { verified: None });
        assert_eq!((now.verified(), &now.as_previous()[0].verified), (None, &None));
        assert_eq!(Current::from_bytes(&now.to_bytes()).unwrap(), now);
    }

    #[test]
    fn remembers_sixteen_publications_newest_first() {
        let mut now = current(1);
        for serial in 2..=20 {
            now = Current {
                previous: now.as_previous(),
                ..current(serial)
            };
        }
        let serials: Vec<u64> = now.previous.iter().map(|previous| previous.serial).collect();
        assert_eq!(serials, (4..=19).rev().collect::<Vec<_>>());
    }
}
