use std::future::ready;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use model::{CachePolicy, Encoding, Key, Kind, ObjectRef, Sha256, decode_zstd};
use reader::{
    BodyKey, CHUNKS_BYTES, Chunks, PublishedCatalogs, PublishedLines, ReaderError, map_chunks,
};

use crate::error::ApiError;
use crate::respond::Representation;
use crate::rfc9110::{Precondition, Tag};
use crate::routes::{RouteCall, WantedChanges};

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
    fn is_kept(&self, catalogs: &PublishedCatalogs) -> bool {
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

impl RouteCall<'_> {
    /// Returns the bytes of a small payload: from memory, or read, verified and kept. `None` for a
    /// large one, which is streamed.
    pub(crate) async fn kept(&self, payload: &Payload) -> Result<Option<Bytes>, ApiError> {
        let catalogs = &self.app.catalogs;
        let is_kept = payload.is_kept(catalogs);
        match payload {
            Payload::Bytes(bytes) => Ok(Some(bytes.clone())),
            Payload::Object(object) if is_kept => {
                let key = BodyKey::Stored((*object).into());
                let body = catalogs.body(&key, || async {
                    let _memory = self.memory(object.digest.size).await?;
                    Ok::<_, ApiError>(catalogs.object(object).await?)
                });
                body.await.map(Some)
            }
            Payload::Document {
                object,
                encoding,
                max,
            } => self
                .decoded_document(object, *encoding, *max)
                .await
                .map(Some),
            Payload::Changes { wanted, encoding } => {
                let plain = self.changes_document(wanted).await?;
                self.coded_bytes(plain, *encoding).await.map(Some)
            }
            Payload::Lines { lines, encoding } if is_kept => {
                let coded = self.coded(
                    lines.identity,
                    *encoding,
                    || lines.length + catalogs.lines_memory(lines),
                    || catalogs.read_lines(lines),
                );
                coded.await.map(Some)
            }
            Payload::Object(_) | Payload::Lines { .. } => Ok(None),
        }
    }

    /// Returns bytes that are in memory in a coding.
    async fn coded_bytes(&self, plain: Bytes, encoding: Encoding) -> Result<Bytes, ApiError> {
        if encoding == Encoding::Identity {
            return Ok(plain);
        }
        let length = plain.len() as u64;
        let hash = Sha256::of(&plain);
        self.coded(hash, encoding, || length, || ready(Ok(plain)))
            .await
    }

    /// Returns a JSON document that is in memory, in the coding that the client prefers.
    pub(crate) async fn document(&self, plain: Bytes) -> Result<Representation, ApiError> {
        let encoding = self.encoding_for(plain.len() as u64)?;
        let tag = Tag::of_made(Sha256::of(&plain), encoding);
        self.coded_document(plain, tag, encoding).await
    }

    /// Returns a document in a coding. A 304 compresses nothing.
    pub(crate) async fn coded_document(
        &self,
        plain: Bytes,
        tag: Tag,
        encoding: Encoding,
    ) -> Result<Representation, ApiError> {
        let payload = Payload::Bytes(plain.clone());
        let mut representation =
            Representation::new(tag, payload, CachePolicy::Pointer).negotiated(encoding);
        if representation.evaluate(&self.request.headers) == Precondition::Proceed {
            representation.payload = Payload::Bytes(self.coded_bytes(plain, encoding).await?);
        }
        Ok(representation)
    }

    /// Returns a document that is stored with zstd in another coding, from memory or into it.
    async fn decoded_document(
        &self,
        object: &ObjectRef,
        encoding: Encoding,
        max: u64,
    ) -> Result<Bytes, ApiError> {
        let catalogs = &self.app.catalogs;
        let size = object.digest.size;
        let coded = self.coded(
            object.digest.sha256,
            encoding,
            // The texts are compressed.
            || 20 * size,
            || async {
                let stored = catalogs.object(object).await?;
                let plain = catalogs.run(size, move || decode_zstd(&stored, max)).await;
                Ok(plain.map_err(ReaderError::coding(&object.key()))?.into())
            },
        );
        coded.await
    }

    /// Returns the content with this hash in a coding, from memory or into it. `plain` reads the
    /// content if it is needed, and `memory` says how many bytes of memory that takes. It must not
    /// read from the cache of bodies what may be too large to be kept there.
    pub(crate) async fn coded<F>(
        &self,
        hash: Sha256,
        encoding: Encoding,
        memory: impl FnOnce() -> u64,
        plain: impl FnOnce() -> F,
    ) -> Result<Bytes, ApiError>
    where
        F: Future<Output = Result<Bytes, ReaderError>>,
    {
        let catalogs = &self.app.catalogs;
        let key = BodyKey::Made(hash, encoding);
        let body = catalogs.body(&key, || async {
            // Requests that wait for the same content take none.
            let _memory = self.memory(memory() + encoder_memory(encoding)).await?;
            let plain = plain().await?;
            let length = plain.len() as u64;
            let coded = catalogs.run(length, move || encode_all(plain, encoding));
            Ok(coded.await.expect("compressors of memory do not fail"))
        });
        body.await
    }
}

// The compressors' own defaults. Stored objects are made once at denser levels; here a client
// waits.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 6;

/// Window of zstd for what is compressed while it is sent, as a power of two. Measured on the
/// 132 MB of lines of a large catalog: 8.5 MB by an encoder of 2.5 MB of memory; the default takes
/// 3.5 MB for 7.3 MB, and 2^18 takes 1.5 MB for 12.6 MB.
const ZSTD_WINDOW_LOG: u32 = 20;

/// Returns the memory of an encoder, in bytes: of zstd by `ZSTD_estimateCStreamSize`.
const fn encoder_memory(encoding: Encoding) -> u64 {
    match encoding {
        Encoding::Identity => 0,
        Encoding::Gzip => 320 << 10,
        Encoding::Zstd => 2560 << 10,
    }
}

/// Compresses in memory. Identity returns the bytes as they are.
pub(crate) fn encode_all(bytes: Bytes, coding: Encoding) -> io::Result<Bytes> {
    let Some(mut encoder) = CodingEncoder::new(coding)? else {
        return Ok(bytes);
    };
    let mut output = encoder.push(Some(&bytes))?.to_vec();
    output.extend_from_slice(&encoder.push(None)?);
    Ok(output.into())
}

/// Compresses a stream; identity returns it as it is. Other chunks give equal content but not
/// always equal bytes, so a body that was compressed on the fly is never served in parts.
pub(crate) fn encode(body: Chunks, coding: Encoding, key: Key) -> Result<Chunks, ReaderError> {
    let Some(mut encoder) = CodingEncoder::new(coding).map_err(ReaderError::coding(&key))? else {
        return Ok(body);
    };
    Ok(map_chunks(body, move |chunk| {
        encoder
            .push(chunk.as_deref())
            .map_err(ReaderError::coding(&key))
    }))
}

enum CodingEncoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl CodingEncoder {
    /// Returns `None` for identity, which needs no compressor.
    fn new(coding: Encoding) -> io::Result<Option<Self>> {
        Ok(match coding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(Self::Gzip(GzEncoder::new(
                Vec::new(),
                Compression::new(GZIP_LEVEL),
            ))),
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                Some(Self::Zstd(encoder))
            }
        })
    }

    /// Compresses bytes, or ends the output after the last ones. Returns the output since the last
    /// call, which is often empty.
    fn push(&mut self, bytes: Option<&[u8]>) -> io::Result<Bytes> {
        match (&mut *self, bytes) {
            (Self::Gzip(encoder), Some(bytes)) => encoder.write_all(bytes)?,
            (Self::Zstd(encoder), Some(bytes)) => encoder.write_all(bytes)?,
            (Self::Gzip(encoder), None) => encoder.try_finish()?,
            (Self::Zstd(encoder), None) => encoder.do_finish()?,
        }
        let output = match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        };
        Ok(std::mem::take(output).into())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, TryStreamExt, stream};

    use super::*;

    #[tokio::test]
    async fn encode_makes_one_frame_of_chunks_of_all_sizes() {
        let lines: Vec<u8> = (0_u32..200_000).flat_map(u32::to_be_bytes).collect();
        for chunk in [1 << 10, 100 << 10, 10 << 20] {
            let pieces = lines
                .chunks(chunk)
                .map(|piece| Ok(Bytes::copy_from_slice(piece)));
            let body = stream::iter(pieces.collect::<Vec<_>>()).boxed();
            let encoded: Vec<Bytes> = encode(body, Encoding::Zstd, Key::Catalogs)
                .unwrap()
                .try_collect()
                .await
                .unwrap();
            let decoded = zstd::bulk::decompress(&encoded.concat(), lines.len());
            assert!(decoded.unwrap() == lines, "{chunk}");
        }
    }
}
