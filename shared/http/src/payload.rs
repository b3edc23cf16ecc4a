use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use http::StatusCode;
use model::{Content, Encoding, Kind, ObjectRef, Sha256, ShardRef};

use crate::{
    app::{App, blocking},
    cache::BodyKey,
    coding::{decode, decode_all, encode, encode_all},
    error::ApiError,
    lines::SelectedLines,
    pointer::ServedCatalog,
    queries::CatalogQuery,
    rfc9110::Coding,
    routes::Comparison,
    stored::Extent,
    stream::{self, Chunks},
};

/// The bytes of a representation, described before anything is read: conditions are evaluated first.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Bytes that are in memory already.
    Memory(Bytes),
    /// An immutable object as it is stored.
    Stored(ObjectRef),
    /// The lines of a zstd object in another coding.
    Transcoded {
        object: ObjectRef,
        lines: Content,
        coding: Coding,
    },
    /// Some lines of a catalog in a coding.
    Selected { lines: SelectedLines, coding: Coding },
    /// A comparison of two published states, a JSON document.
    Compared(Comparison),
    /// The answer to a query in a coding, a JSON document.
    Queried { query: CatalogQuery, coding: Coding },
}

impl Payload {
    /// Returns the whole catalog in a coding.
    pub(crate) fn all(served: &ServedCatalog, coding: Coding) -> Self {
        let current = &served.current;
        let stored = match coding {
            Coding::Zstd => Some(current.all.zstd),
            Coding::Gzip => Some(current.all.gzip),
            Coding::Identity => current.all.identity,
        };
        let lines = Content {
            sha256: current.content_hash,
            size: current.size,
        };
        match stored {
            Some(object) => Self::Stored(object),
            None => Self::Transcoded {
                // From the zstd object, the smallest to read and the fastest to decompress.
                object: current.all.zstd,
                lines,
                coding,
            },
        }
    }

    /// Returns the lines of one Package in a coding.
    pub(crate) fn shard(shard: &ShardRef, coding: Coding) -> Self {
        let object = shard.stored.with_kind(Kind::Package);
        match coding {
            Coding::Zstd => Self::Stored(object),
            Coding::Gzip | Coding::Identity => Self::Transcoded {
                object,
                lines: shard.lines,
                coding,
            },
        }
    }

    /// Returns the object whose stored bytes are this payload.
    pub(crate) const fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Stored(object) => Some(object),
            Self::Memory(_)
            | Self::Transcoded { .. }
            | Self::Selected { .. }
            | Self::Compared(_)
            | Self::Queried { .. } => None,
        }
    }

    /// Returns the number of bytes; `None` where only making them tells it.
    pub(crate) const fn length(&self) -> Option<u64> {
        match self {
            Self::Memory(bytes) => Some(bytes.len() as u64),
            Self::Stored(object) => Some(object.digest.size),
            Self::Transcoded {
                lines,
                coding: Coding::Identity,
                ..
            } => Some(lines.size),
            Self::Selected {
                lines,
                coding: Coding::Identity,
            } => Some(lines.length),
            Self::Transcoded { .. } | Self::Selected { .. } | Self::Compared(_) | Self::Queried { .. } => None,
        }
    }

    /// True if several ranges cost at most about as much as two answers with all bytes. A stream that is decompressed as it
    /// is sent starts from its beginning for each range (RFC 9110, section 17.15).
    pub(crate) fn is_cheap(&self, parts: &[Range<u64>]) -> bool {
        match (self, self.length()) {
            (Self::Memory(_) | Self::Stored(_), _) => true,
            (_, Some(length)) => parts.len() == 1 || parts.iter().map(|part| part.end).sum::<u64>() <= 2 * length,
            (_, None) => false,
        }
    }

    /// True for documents, which are read as a whole however large they are.
    const fn is_document(object: &ObjectRef) -> bool {
        matches!(
            object.kind,
            Kind::Snapshot | Kind::Index | Kind::Findings | Kind::Search
        )
    }
}

impl App {
    /// Reads, verifies and keeps a small payload, which becomes [`Payload::Memory`]. Returns a large one as it is. The status is
    /// that of the answer.
    pub(crate) async fn load(self: &Arc<Self>, payload: Payload) -> Result<(Payload, StatusCode), ApiError> {
        let small = self.caches.body_max;
        let bytes = match payload {
            Payload::Stored(object) if object.digest.size <= small || Payload::is_document(&object) => {
                Box::pin(self.cached_object(&object)).await?
            }
            Payload::Transcoded { object, lines, coding } if lines.size.max(object.digest.size) <= small => {
                Box::pin(self.transcoded(object, lines, coding)).await?
            }
            Payload::Selected { lines, coding } if lines.length <= small => {
                Box::pin(self.collected(lines, coding)).await?
            }
            Payload::Compared(comparison) => Box::pin(self.compared(comparison)).await?,
            Payload::Queried { query, coding } => {
                let plain = self.hold(Box::pin(self.queried(query.clone())).await?)?;
                let status = status(&plain);
                let answer = match coding {
                    Coding::Identity => plain,
                    coding => self.hold(Box::pin(self.coded(query.identity(), plain, coding)).await?)?,
                };
                return Ok((Payload::Memory(answer), status));
            }
            payload @ (Payload::Memory(_)
            | Payload::Stored(_)
            | Payload::Transcoded { .. }
            | Payload::Selected { .. }) => return Ok((payload, StatusCode::OK)),
        };
        Ok((Payload::Memory(bytes), StatusCode::OK))
    }

    /// Streams all bytes of a loaded payload. The first read has happened when this returns, so that a failure still gets
    /// its status.
    pub(crate) async fn chunks(self: &Arc<Self>, payload: &Payload) -> Result<Chunks, ApiError> {
        match payload {
            Payload::Memory(bytes) => Ok(stream::once(bytes.clone())),
            Payload::Stored(object) => self.stream_object(object, Extent::Whole).await,
            Payload::Transcoded { object, lines, coding } => {
                let plain = self.decoded(object, lines.size, Extent::Whole).await?;
                encode(plain, *coding, object.key())
            }
            Payload::Selected { lines, coding } => encode(self.lines(lines).await?, *coding, lines.key()),
            Payload::Compared(comparison) => Ok(stream::once(self.compared(comparison.clone()).await?)),
            Payload::Queried { query, coding } => {
                let plain = self.queried(query.clone()).await?;
                Ok(stream::once(self.coded(query.identity(), plain, *coding).await?))
            }
        }
    }

    /// Streams a range of a loaded payload with a known length.
    pub(crate) async fn part(self: &Arc<Self>, payload: &Payload, range: Range<u64>) -> Result<Chunks, ApiError> {
        let slice = |bytes: Bytes| stream::once(bytes.slice(stream::small(range.start)..stream::small(range.end)));
        let (lines, key) = match payload {
            Payload::Memory(bytes) => return Ok(slice(bytes.clone())),
            Payload::Stored(object) => return self.stream_object(object, Extent::Part(range)).await,
            Payload::Compared(comparison) => return Ok(slice(self.compared(comparison.clone()).await?)),
            Payload::Queried { query, coding } => {
                let plain = self.queried(query.clone()).await?;
                return Ok(slice(self.coded(query.identity(), plain, *coding).await?));
            }
            Payload::Transcoded { object, lines, .. } => {
                (self.decoded(object, lines.size, Extent::Prefix).await?, object.key())
            }
            Payload::Selected { lines, .. } => (self.lines(lines).await?, lines.key()),
        };
        let length = range.end - range.start;
        Ok(stream::exact(stream::pick(lines, [range]), length, key))
    }

    /// Returns the lines of a small object in a coding, from memory or into it.
    async fn transcoded(&self, object: ObjectRef, lines: Content, coding: Coding) -> Result<Bytes, ApiError> {
        let entry = BodyKey::Made(lines.sha256, coding);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async {
            let stored = self.cached_object(&object).await?;
            let transcode = move || decode_all(&stored, lines.size).and_then(|lines| encode_all(lines, coding));
            blocking(lines.size, transcode)
                .await
                .map_err(stream::coding(&object.key()))
        };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Returns a document that was made in a coding, from memory or into it.
    async fn coded(&self, identity: Sha256, plain: Bytes, coding: Coding) -> Result<Bytes, ApiError> {
        if coding == Coding::Identity {
            return Ok(plain);
        }
        let make = async {
            let length = plain.len() as u64;
            let coded = blocking(length, move || encode_all(plain, coding)).await;
            // The compressors fail on no input.
            coded.map_err(|_| ApiError::NotAcceptable)
        };
        let entry = BodyKey::Made(identity, coding);
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Returns a few selected lines in a coding, from memory or into it.
    async fn collected(self: &Arc<Self>, lines: SelectedLines, coding: Coding) -> Result<Bytes, ApiError> {
        let entry = BodyKey::Made(lines.identity, coding);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async {
            let plain = stream::collect(self.lines(&lines).await?, lines.length).await?;
            let coded = blocking(lines.length, move || encode_all(plain.into(), coding)).await;
            coded.map_err(stream::coding(&lines.key()))
        };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Streams the `size` bytes of lines of a zstd object.
    pub(crate) async fn decoded(&self, object: &ObjectRef, size: u64, extent: Extent) -> Result<Chunks, ApiError> {
        let stored = if object.digest.size <= self.caches.body_max {
            stream::once(self.cached_object(object).await?)
        } else {
            self.stream_object(object, extent).await?
        };
        let key = object.key();
        Ok(stream::exact(decode(stored, key.clone())?, size, key))
    }

    /// Streams the lines of one Package, for readers that may stop before the end.
    pub(crate) async fn shard(&self, shard: &ShardRef) -> Result<Chunks, ApiError> {
        let object = shard.stored.with_kind(Kind::Package);
        if shard.lines.size.max(object.digest.size) <= self.caches.body_max {
            Ok(stream::once(
                self.transcoded(object, shard.lines, Coding::Identity).await?,
            ))
        } else {
            self.decoded(&object, shard.lines.size, Extent::Prefix).await
        }
    }
}

/// Returns the status of an answer to a query.
fn status(answer: &[u8]) -> StatusCode {
    match graphql::is_refusal(answer) {
        true => StatusCode::BAD_REQUEST,
        // In the other form every answer is 200, as in catalogd.
        false => StatusCode::OK,
    }
}

impl Coding {
    /// Returns the coding that stored bytes are in.
    pub(crate) const fn of_stored(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Zstd => Self::Zstd,
            Encoding::Gzip => Self::Gzip,
            Encoding::Identity => Self::Identity,
        }
    }
}
