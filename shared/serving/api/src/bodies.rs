//! Bytes of payloads: from memory, or read, made and kept there.

use std::future::ready;

use bytes::Bytes;
use model::{CachePolicy, Encoding, ObjectRef, Sha256, decode_zstd};
use reader::{BodyKey, ReaderError};

use crate::call::RouteCall;
use crate::coding::{encode_all, encoder_memory};
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::{Precondition, Tag};

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
