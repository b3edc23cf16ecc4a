//! Payloads of answers, described before anything is read.

use std::sync::Arc;

use bytes::Bytes;
use model::{Encoding, Kind, ObjectRef, Sha256, Snapshot};
use olm::CHANGES_VERSION;
use reader::{CHUNKS_BYTES, PublishedCatalogs, PublishedLines, PublishedState};

use crate::coding::encoder_memory;
use crate::rfc9110::Tag;

/// The bytes of a representation, described before anything is read: conditions are evaluated
/// first.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Bytes that are in memory already.
    Bytes(Bytes),
    /// An immutable object as it is stored.
    Object(ObjectRef),
    /// A document that is stored with zstd, in an encoding that more clients can read.
    Document {
        object: ObjectRef,
        encoding: Encoding,
        /// Maximum size of the decoded document, in bytes.
        max: u64,
    },
    /// The changes between two contents of a catalog, in an encoding.
    Changes {
        wanted: Arc<WantedChanges>,
        encoding: Encoding,
    },
    /// Lines of a catalog in an encoding.
    Lines {
        lines: PublishedLines,
        encoding: Encoding,
    },
}

impl Payload {
    /// Returns the tag of its bytes.
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Bytes(bytes) => Tag::of_stored(Sha256::of(bytes)),
            Self::Object(object) => Tag::of_stored(object.digest.sha256),
            Self::Document {
                object, encoding, ..
            } => {
                let suffix = match encoding {
                    Encoding::Zstd => "-zstd",
                    Encoding::Gzip => "-gzip",
                    Encoding::Identity => "-identity",
                };
                Tag::with_suffix(object.digest.sha256, suffix)
            }
            Self::Changes { wanted, encoding } => {
                let suffix = format!("-changes{}", encoding.tag_suffix());
                Tag::with_suffix(wanted.identity(), &suffix)
            }
            Self::Lines { lines, encoding } => Tag::of_made(lines.identity, *encoding),
        }
    }

    /// Returns the content type and the encoding. Bytes in memory are a JSON document where nothing
    /// else is said.
    pub(crate) const fn media(&self) -> (&'static str, Encoding) {
        match self {
            Self::Bytes(_) => ("application/json", Encoding::Identity),
            Self::Changes { encoding, .. } => ("application/json", *encoding),
            Self::Object(object) => (object.kind.content_type(), object.kind.encoding()),
            Self::Document {
                object, encoding, ..
            } => (object.kind.content_type(), *encoding),
            Self::Lines { encoding, .. } => (Kind::Package.content_type(), *encoding),
        }
    }

    /// True if it is read into memory as a whole, and kept there.
    pub(crate) fn is_kept(&self, catalogs: &PublishedCatalogs) -> bool {
        match self {
            Self::Bytes(_) | Self::Document { .. } | Self::Changes { .. } => true,
            // Documents are read as a whole however large they are.
            Self::Object(object) => {
                matches!(object.kind, Kind::Snapshot | Kind::Index | Kind::Facts)
                    || catalogs.keeps(object.digest.size)
            }
            Self::Lines { lines, .. } => catalogs.keeps(lines.largest()),
        }
    }

    /// Returns the object in memory from which it is made while it is streamed, if there is one.
    pub(crate) fn source(&self, catalogs: &PublishedCatalogs) -> Option<ObjectRef> {
        match self {
            Self::Bytes(_) | Self::Object(_) | Self::Document { .. } | Self::Changes { .. } => None,
            Self::Lines { lines, .. } => catalogs.lines_source(lines),
        }
    }

    /// Returns the memory that it takes to stream it, in bytes, without its source.
    pub(crate) fn memory(&self, catalogs: &PublishedCatalogs) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Object(_) => CHUNKS_BYTES,
            // Never streamed: its bytes are kept in memory.
            Self::Document { .. } | Self::Changes { .. } => 0,
            Self::Lines { lines, encoding } => {
                CHUNKS_BYTES + catalogs.lines_memory(lines) + encoder_memory(*encoding)
            }
        }
    }

    /// Returns the number of bytes; `None` where only making them tells it.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Object(object) => Some(object.digest.size),
            Self::Document { .. } | Self::Changes { .. } => None,
            Self::Lines { lines, encoding } => {
                (*encoding == Encoding::Identity).then_some(lines.length)
            }
        }
    }
}

/// Two contents of a catalog that are to be compared.
#[derive(Debug)]
pub(crate) struct WantedChanges {
    pub(crate) since: Sha256,
    pub(crate) new: Sha256,
    /// Snapshot of the earlier content; `None` if both are the same.
    pub(crate) old: Option<Arc<Snapshot>>,
    pub(crate) state: PublishedState,
}

impl WantedChanges {
    /// Returns a hash that identifies the document, which depends on nothing else.
    pub(crate) fn identity(&self) -> Sha256 {
        let version = CHANGES_VERSION.to_be_bytes();
        let parts = [
            &b"changes"[..],
            &version,
            self.since.as_bytes(),
            self.new.as_bytes(),
        ];
        Sha256::of(&parts.concat())
    }
}
