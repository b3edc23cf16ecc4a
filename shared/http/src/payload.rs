use bytes::Bytes;
use model::{Encoding, Kind, ObjectRef, Sha256};
use reader::{BodyKey, PublishedLines, ReaderError};

use crate::{coding::encode_all, rfc9110::Tag, router::App};

/// The bytes of a representation, described before anything is read: conditions are evaluated first.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Bytes that are in memory already.
    Bytes(Bytes),
    /// An immutable object as it is stored.
    Object(ObjectRef),
    /// Lines of a catalog in an encoding.
    Lines { lines: PublishedLines, encoding: Encoding },
}

impl Payload {
    /// Returns lines in an encoding. `stored` is the object that has them in it, if there is one.
    pub(crate) fn of_lines(lines: PublishedLines, stored: Option<ObjectRef>, encoding: Encoding) -> Self {
        stored.map_or(Self::Lines { lines, encoding }, Self::Object)
    }

    /// Returns the tag of its bytes.
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Bytes(bytes) => Tag::of_stored(Sha256::of(bytes)),
            Self::Object(object) => Tag::of_stored(object.digest.sha256),
            Self::Lines { lines, encoding } => Tag::of_made(lines.identity, *encoding),
        }
    }

    /// Returns the content type and the encoding. Bytes in memory are a JSON document where nothing else is said.
    pub(crate) const fn media(&self) -> (&'static str, Encoding) {
        match self {
            Self::Bytes(_) => ("application/json", Encoding::Identity),
            Self::Object(object) => (object.kind.content_type(), object.kind.encoding()),
            Self::Lines { encoding, .. } => (Kind::Package.content_type(), *encoding),
        }
    }

    /// Returns the number of bytes; `None` where only making them tells it.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Object(object) => Some(object.digest.size),
            Self::Lines { lines, encoding } => (*encoding == Encoding::Identity).then_some(lines.length),
        }
    }
}

impl App {
    /// Reads, verifies and keeps a small payload, which becomes [`Payload::Bytes`]. Returns a large one as it is.
    pub(crate) async fn load(&self, payload: Payload) -> Result<Payload, ReaderError> {
        // Documents are read as a whole however large they are.
        let is_document = |object: &ObjectRef| matches!(object.kind, Kind::Snapshot | Kind::Index | Kind::Facts);
        let bytes = match payload {
            Payload::Object(object) if self.catalogs.keeps(object.digest.size) || is_document(&object) => {
                Box::pin(self.catalogs.cached_object(&object)).await?
            }
            Payload::Lines { lines, encoding } if self.catalogs.keeps(lines.largest()) => {
                let plain = self.catalogs.read_lines(&lines);
                Box::pin(self.coded(lines.identity, encoding, plain)).await?
            }
            payload => return Ok(payload),
        };
        Ok(Payload::Bytes(bytes))
    }

    /// Returns the content with this hash in a coding, from memory or into it. `plain` reads the content if it is needed. It must not
    /// read from the cache of bodies what may be too large to be kept there.
    pub(crate) async fn coded(
        &self,
        hash: Sha256,
        encoding: Encoding,
        plain: impl Future<Output = Result<Bytes, ReaderError>>,
    ) -> Result<Bytes, ReaderError> {
        let make = async {
            let plain = plain.await?;
            let length = plain.len() as u64;
            let coded = self.catalogs.run(length, move || encode_all(plain, encoding)).await;
            Ok::<_, ReaderError>(coded.expect("compressors of memory do not fail"))
        };
        self.catalogs.body(&BodyKey::Made(hash, encoding), make).await
    }
}
