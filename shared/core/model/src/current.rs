use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_with::{As, DeserializeAs, SerializeAs};

use crate::source_ref::read_short_list;
use crate::{
    AllFormats, Document, Encoding, Kind, ObjectDigest, ObjectRef, Sha256, Snapshot, SourceRef,
    Verified,
};

/// Maximum number of earlier publications that a [`Current`] remembers.
pub const PREVIOUS_MAX: usize = 16;

/// `current.json`: the one mutable document of a catalog. Replacing it is the commit of a
/// publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    /// Starts at 1 and grows by one with every publication.
    pub serial: u64,
    /// The sha256 of the uncompressed canonical `all.json`.
    pub content_hash: Sha256,
    /// Key and size of the published Snapshot.
    pub snapshot: ObjectRef,
    /// The whole catalog in its stored encodings, so that curl and a static file server find it
    /// without the Snapshot.
    pub all: AllFormats<ObjectRef>,
    /// The index of the catalog's container image, whose digest names the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ObjectRef>,
    /// Size of the uncompressed `all.json`, in bytes.
    pub size: u64,
    /// Number of Packages, the global group not counted.
    pub packages: u64,
    /// Number of Metas in `all.json`.
    pub metas: u64,
    /// The source's last known revision. It is the one that this content was made from, unless the
    /// catalog was rolled back: then it stays, so that a poll does not undo the rollback until the
    /// source changes. It is all that changes when an image is rebuilt around the same FBC.
    pub source: SourceRef,
    /// Version of the canonical form under which the source was read. A newer program reads the
    /// source again, even after a rollback.
    pub render_version: u32,
    /// Time of the publication: RFC 3339, UTC, whole seconds.
    #[serde(with = "As::<Rfc3339>")]
    pub published_at: SystemTime,
    /// Set by a rollback, because the content is then not that of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<RolledBack>,
    /// Tells readers to serve the catalog or to answer 404.
    #[serde(default, skip_serializing_if = "Availability::is_available")]
    pub availability: Availability,
    /// Earlier publications, newest first, at most [`PREVIOUS_MAX`].
    #[serde(default, deserialize_with = "read_short_list")]
    pub previous: Vec<Previous>,
    /// Signatures of this document without this field. Empty if the publisher has no key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
}

/// The values of a publication that do not follow from its Snapshot or from the publication before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The Snapshot as it is stored.
    pub snapshot: ObjectDigest,
    /// Last known revision of the source.
    pub source: SourceRef,
    /// Version of the canonical form under which the source was read.
    pub render_version: u32,
    /// Set by a rollback; `None` for content of the source.
    pub rolled_back: Option<RolledBack>,
    /// Availability to readers, as it is configured.
    pub availability: Availability,
}

/// A signature in the form of DSSE v1.0.2 (envelope.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Identifies the key: the sha256 of its `SubjectPublicKeyInfo` in hex.
    pub keyid: String,
    /// The signature in base64, standard alphabet with padding.
    pub sig: String,
}

/// Marks a publication of earlier content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// The signatures of the image that the content was made from, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// `ClusterCatalog.spec.availabilityMode`: an unavailable catalog is kept up to date but answers
/// 404.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Availability {
    /// Readers serve the catalog. The default.
    #[default]
    Available,
    /// Readers answer 404, while polls go on.
    Unavailable,
}

impl Availability {
    /// True if readers serve the catalog.
    pub const fn is_available(&self) -> bool {
        matches!(self, Self::Available)
    }
}

/// An earlier publication, which can be rolled back to while it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// Serial of the earlier publication.
    pub serial: u64,
    /// Content hash of the earlier publication, by which a rollback or `since` names it.
    pub content_hash: Sha256,
    /// The Snapshot. Its key is a hash, so a signature of `current.json` also covers earlier
    /// publications.
    pub snapshot: ObjectRef,
    /// Time of the earlier publication, RFC 3339 in the document.
    #[serde(with = "As::<Rfc3339>")]
    pub published_at: SystemTime,
    /// The signatures of the image that the content was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

impl Document for Current {
    const NAME: &'static str = "current.json";
}

impl Current {
    /// Returns the pointer that publishes `snapshot` after `before`. It is unsigned, and the commit
    /// sets its date.
    pub fn publish(before: Option<&Self>, snapshot: &Snapshot, publication: Publication) -> Self {
        let serial = match before {
            Some(before) => before.serial.saturating_add(1),
            None => 1,
        };
        let identity = snapshot.all.identity;
        let image = snapshot.image.as_ref();
        Self {
            serial,
            content_hash: snapshot.content_hash,
            snapshot: publication.snapshot.with_kind(Kind::Snapshot),
            all: AllFormats {
                zstd: snapshot.all.zstd.with_kind(Kind::All(Encoding::Zstd)),
                gzip: snapshot.all.gzip.with_kind(Kind::All(Encoding::Gzip)),
                identity: identity.map(|all| all.with_kind(Kind::All(Encoding::Identity))),
            },
            image: image.map(|image| image.index.with_kind(Kind::Blob)),
            size: snapshot.size,
            packages: snapshot.packages.len() as u64,
            metas: snapshot.metas,
            source: publication.source,
            render_version: publication.render_version,
            published_at: SystemTime::UNIX_EPOCH,
            rolled_back: publication.rolled_back,
            availability: publication.availability,
            previous: before.map(Self::as_previous).unwrap_or_default(),
            signatures: Vec::new(),
        }
    }

    /// Returns true if it says what the Snapshot says that it names.
    pub fn describes(&self, snapshot: &Snapshot) -> bool {
        let publication = Publication {
            snapshot: self.snapshot.digest,
            source: self.source.clone(),
            render_version: self.render_version,
            rolled_back: self.rolled_back.clone(),
            availability: self.availability,
        };
        // Made anew from the Snapshot, so that no field can be forgotten here.
        let expected = Self {
            serial: self.serial,
            published_at: self.published_at,
            previous: self.previous.clone(),
            signatures: self.signatures.clone(),
            ..Self::publish(None, snapshot, publication)
        };
        expected == *self
    }

    /// Returns the signatures of the image that the content was made from. After a rollback that is
    /// not the source.
    pub const fn verified(&self) -> Option<&Verified> {
        match &self.rolled_back {
            Some(rolled_back) => rolled_back.verified.as_ref(),
            None => self.source.verified.as_ref(),
        }
    }

    /// Returns this publication and the earlier ones that it remembers, newest first.
    pub fn publications(&self) -> Vec<Previous> {
        let mut publications = vec![Previous {
            serial: self.serial,
            content_hash: self.content_hash,
            snapshot: self.snapshot,
            published_at: self.published_at,
            verified: self.verified().cloned(),
        }];
        publications.extend_from_slice(&self.previous);
        publications
    }

    /// Returns `previous` of the next publication.
    pub fn as_previous(&self) -> Vec<Previous> {
        let mut publications = self.publications();
        // Bounded, because every reader fetches this document at each poll.
        publications.truncate(PREVIOUS_MAX);
        publications
    }

    /// Returns the Snapshots under which a content is or was published, newest publication first.
    /// One content has several if it was published again under another compressor.
    pub fn snapshots_of(&self, content_hash: Sha256) -> impl Iterator<Item = ObjectRef> {
        self.publications()
            .into_iter()
            .filter(move |publication| publication.content_hash == content_hash)
            .map(|publication| publication.snapshot)
    }
}

/// Text form of times in documents: RFC 3339 in UTC with whole seconds. Fractions that others write
/// are dropped, so that a document that is read and written again keeps its bytes.
#[derive(Debug)]
pub struct Rfc3339;

impl SerializeAs<SystemTime> for Rfc3339 {
    fn serialize_as<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_seconds(*time))
    }
}

impl<'de> DeserializeAs<'de, SystemTime> for Rfc3339 {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        let time = humantime::parse_rfc3339(&String::deserialize(deserializer)?)
            .map_err(D::Error::custom)?;
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Ok(time - Duration::from_nanos(since.subsec_nanos().into()))
    }
}

/// Text form of times that are compared within a second: RFC 3339 in UTC with milliseconds.
#[derive(Debug)]
pub(crate) struct Rfc3339Millis;

impl SerializeAs<SystemTime> for Rfc3339Millis {
    fn serialize_as<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_millis(*time))
    }
}

impl<'de> DeserializeAs<'de, SystemTime> for Rfc3339Millis {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        humantime::parse_rfc3339(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::snapshot::tests::snapshot;

    fn publish(before: Option<&Current>) -> Current {
        let publication = Publication {
            snapshot: ObjectDigest::of(b"{}"),
            source: SourceRef {
                reference: "quay.io/a/b:c".into(),
                revision: "sha256:00".into(),
                ..SourceRef::default()
            },
            render_version: 1,
            rolled_back: None,
            availability: Availability::Available,
        };
        Current {
            published_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000),
            ..Current::publish(before, &snapshot(), publication)
        }
    }

    #[test]
    fn current_reads_back_and_omits_defaults() {
        let bytes = publish(None).to_bytes();
        assert_eq!(Current::from_bytes(&bytes).unwrap(), publish(None));
        let text = String::from_utf8(bytes).unwrap();
        for absent in [
            "availability",
            "signatures",
            "verified",
            "rolledBack",
            "identity",
        ] {
            assert!(!text.contains(absent), "{text}");
        }
        assert!(
            text.contains(r#""publishedAt": "2026-09-21T14:13:20Z""#),
            "{text}"
        );
        assert!(text.contains(r#""key": "snapshots/sha256/"#), "{text}");
    }

    #[test]
    fn previous_of_too_many_publications_is_refused() {
        let mut current = publish(None);
        let previous = current.as_previous().remove(0);
        current.previous = vec![previous; crate::source_ref::LIST_READ_MAX];
        assert_eq!(Current::from_bytes(&current.to_bytes()).unwrap(), current);
        current.previous.push(current.previous[0].clone());
        let error = Current::from_bytes(&current.to_bytes()).unwrap_err();
        let text = crate::text::chain(&error);
        assert!(text.contains("at most 256 entries"), "{text}");
    }

    #[test]
    fn fractions_of_seconds_are_dropped_on_reading() {
        let text = String::from_utf8(publish(None).to_bytes()).unwrap();
        let finer = text.replace("14:13:20Z", "14:13:20.999Z");
        assert_ne!(finer, text);
        assert_eq!(
            Current::from_bytes(finer.as_bytes()).unwrap(),
            publish(None)
        );
    }

    #[test]
    fn rolled_back_content_is_not_verified_as_its_source_is() {
        let policy = Sha256::of(b"policy");
        let verified = Some(Verified {
            policy,
            by: Vec::new(),
        });
        let mut current = publish(None);
        current.source.verified.clone_from(&verified);
        assert_eq!(current.verified(), verified.as_ref());
        assert_eq!(current.as_previous()[0].verified, verified);
        current.rolled_back = Some(RolledBack { verified: None });
        assert_eq!(
            (current.verified(), &current.as_previous()[0].verified),
            (None, &None)
        );
        assert_eq!(Current::from_bytes(&current.to_bytes()).unwrap(), current);
    }

    #[test]
    fn publish_counts_and_remembers_sixteen_publications_newest_first() {
        let mut current = publish(None);
        for _ in 2..=20 {
            current = publish(Some(&current));
        }
        let serials: Vec<u64> = current
            .previous
            .iter()
            .map(|previous| previous.serial)
            .collect();
        assert_eq!(current.serial, 20);
        assert_eq!(serials, (4..=19).rev().collect::<Vec<_>>());
        assert_eq!(current.snapshots_of(Sha256::of(b"all")).count(), 17);
    }
}
