//! Catalogs of other mirrors.
//!
//! ```text
//! resolve  GET current.json, conditional --304--> the known state
//!                                        --200--> signature, format -> content hash
//! read     GET the object of all.json -> hash of the object -> zstd -> content hash -> FileSink, as one file
//! ```
//!
//! `sync` copies all objects of a mirror. This reads the lines of one catalog, so that they can be published under other
//! settings. `sync` depends on the publication of catalogs, which depends on this crate, so its client cannot be used here.

mod content;
mod location;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fetch::{FetchError, Fetcher};
use model::{Current, Document, DocumentError, Key};
use oci::{BlobRef, Digest, FileSink, LayerError};
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use tokio::sync::mpsc::{self, Sender};
use trust::TrustError;

use crate::blob_source::BlobCheck;
use crate::error::Error;
use crate::settings::SourceSettings;
use crate::sources::Pull;
use crate::stream::{CHUNKS_AHEAD, ChannelReader, blocking};
use crate::web::{WebSession, conditions};
use content::{ExpectedLines, content_digest};

pub use location::{MirrorLocation, MirrorLocationError};

/// The reason for which the state of another mirror is not used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// A pointer that is malformed or of another version.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A pointer without a signature of a trusted key.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Lines that cannot be decompressed.
    #[error(transparent)]
    Content(LayerError),
    /// More lines than the pointer states.
    #[error("its all.json has more than the {0} bytes that its current.json states")]
    Longer(u64),
    /// Other content than was resolved.
    #[error("changed between two requests: poll again to read the new content")]
    Changed,
}

/// The last verified pointers of all mirrors. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct KnownPointers(Arc<Mutex<BTreeMap<String, Arc<KnownPointer>>>>);

/// A verified pointer and the conditions under which the mirror sends it again.
struct KnownPointer {
    current: Current,
    conditions: HeaderMap,
}

/// One resolve or read of a catalog of another mirror.
pub(crate) struct MirrorRequest<'a> {
    pub(crate) pointers: &'a KnownPointers,
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) settings: &'a Arc<SourceSettings>,
    pub(crate) location: &'a MirrorLocation,
}

impl MirrorRequest<'_> {
    /// Returns the content hash of the published state.
    pub(crate) async fn resolve(self) -> Result<Digest, Error> {
        let session = self.session().await?;
        let pointer = self.pointer(&session).await;
        let pointer = pointer.map_err(|error| session.redact(error))?;
        Ok(content_digest(pointer.current.content_hash))
    }

    /// Passes the lines of the catalog to `sink` as one file, if they still have the hash `expected`.
    pub(crate) async fn read<S: FileSink + 'static>(self, expected: &Digest, sink: S) -> Result<(S, Pull), Error> {
        let session = self.session().await?;
        let read = self.read_lines(&session, expected, sink).await;
        let sink = read.map_err(|error| session.redact(error))?;
        let pull = Pull {
            layers_fetched: 1,
            ..session.traffic().into()
        };
        Ok((sink, pull))
    }

    async fn read_lines<S: FileSink + 'static>(
        &self,
        session: &WebSession,
        expected: &Digest,
        sink: S,
    ) -> Result<S, Error> {
        let is_expected = |pointer: &KnownPointer| content_digest(pointer.current.content_hash) == *expected;
        let known = self.pointers.get(self.location).filter(|known| is_expected(known));
        let pointer = match known {
            Some(known) => known,
            None => self.pointer(session).await?,
        };
        if !is_expected(&pointer) {
            return Err(self.location.error(MirrorError::Changed));
        }
        let lines = ExpectedLines::new(self.location, &pointer.current, &self.settings.limits)?;
        let object = &pointer.current.all.zstd;
        let blob = BlobRef {
            digest: content_digest(object.digest.sha256),
            size: object.digest.size,
        };
        let url = self.location.url(&object.key());
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let location = self.location.clone();
        let feeding = blocking(move || lines.feed(&location, ChannelReader::new(from), sink));
        let (fetched, fed) = tokio::join!(self.stream(session, &url, &blob, to), feeding);
        // A failed fetch explains a failed sink, not the other way round.
        fetched?;
        fed
    }

    async fn session(&self) -> Result<WebSession, Error> {
        WebSession::open(self.fetcher, self.settings, &self.current_url()).await
    }

    fn current_url(&self) -> Url {
        self.location.url(&Key::Current(self.location.catalog().clone()))
    }

    /// Returns the published pointer, verified. A document can change between two attempts, so a broken one is read again
    /// from its start.
    async fn pointer(&self, session: &WebSession) -> Result<Arc<KnownPointer>, Error> {
        let mut waits = session.retry_waits();
        loop {
            match self.attempt(session).await {
                Ok(pointer) => return Ok(pointer),
                Err(error) => session.pause(&mut waits, error).await?,
            }
        }
    }

    async fn attempt(&self, session: &WebSession) -> Result<Arc<KnownPointer>, Error> {
        let known = self.pointers.get(self.location);
        let asked = known.as_ref().map(|known| known.conditions.clone()).unwrap_or_default();
        let response = session.get(&self.current_url(), &asked).await?;
        if let (StatusCode::NOT_MODIFIED, Some(known)) = (response.status(), known) {
            return Ok(known);
        }
        let conditions = conditions(response.headers());
        let place = session.shown().to_owned();
        let document = session.document(response, &self.settings.limits, place).await?;
        let pointer = Arc::new(KnownPointer {
            current: self.verified(&document).map_err(|error| self.location.error(error))?,
            conditions,
        });
        self.pointers.set(self.location, Arc::clone(&pointer));
        Ok(pointer)
    }

    fn verified(&self, document: &[u8]) -> Result<Current, MirrorError> {
        // Before the format: an unknown publisher gets no say about the version of this program.
        if let Some(trust) = &self.settings.trust {
            trust.verify(self.location.catalog(), document)?;
        }
        Ok(Current::from_bytes(document)?)
    }

    /// Streams an object into `to`, and continues where a connection broke. Verifies the whole at its end.
    async fn stream(&self, session: &WebSession, url: &Url, blob: &BlobRef, to: Sender<Bytes>) -> Result<(), Error> {
        let mut check = BlobCheck::new("object of the mirror", blob);
        let mut waits = session.retry_waits();
        let mut body = loop {
            match session.get(url, &HeaderMap::new()).await {
                Ok(response) => break response.into_resumable(),
                Err(error) => session.pause(&mut waits, error).await?,
            }
        };
        loop {
            let error = match body.chunk().await {
                Ok(Some(chunk)) => {
                    check.update(&chunk)?;
                    if to.send(chunk).await.is_err() {
                        // The sink has failed and reports the cause.
                        return Ok(());
                    }
                    continue;
                }
                Ok(None) if check.is_complete() => return check.finish(),
                Ok(None) => session.failed(FetchError::Truncated {
                    received: check.seen(),
                    expected: blob.size,
                }),
                Err(failed) => session.fetch_failed(failed),
            };
            if body.earns_retries() {
                waits = session.retry_waits();
            }
            session.pause(&mut waits, error).await?;
            let rest = loop {
                match session.get_rest(url, &body).await {
                    Ok(rest) => break rest,
                    Err(error) => session.pause(&mut waits, error).await?,
                }
            };
            let continued = body.continue_with(rest);
            continued.map_err(|failed| session.fetch_failed(failed))?;
        }
    }
}

impl KnownPointers {
    fn get(&self, location: &MirrorLocation) -> Option<Arc<KnownPointer>> {
        let pointers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pointers.get(&location.to_string()).cloned()
    }

    fn set(&self, location: &MirrorLocation, pointer: Arc<KnownPointer>) {
        let mut pointers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pointers.insert(location.to_string(), pointer);
    }
}

impl MirrorLocation {
    pub(crate) fn error(&self, source: MirrorError) -> Error {
        Error::Mirror {
            source,
            mirror: self.to_string(),
        }
    }
}
