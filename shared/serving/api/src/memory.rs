//! Memory of an answer, from before its work begins until its last byte is sent.
//!
//! The server puts the memory of the client into its requests. Without a server, as in a function
//! that answers one request at a time, answers take what they need.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use reader::CHUNKS_BYTES;
use work::{ClientMemory, HeldMemory};

use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::routes::is_probe;

/// Memory of any answer beside its bytes: its head, its task, and its state in the connection.
const ANSWER_BYTES: u64 = 8 << 10;

/// Payload of an answer, as far as it is in memory.
pub(crate) struct LoadedPayload {
    pub(crate) payload: Payload,
    /// Memory that it takes. `None` if memory is not bounded.
    pub(crate) memory: Option<HeldMemory>,
}

/// Parts of an answer that are in memory.
struct AnswerParts {
    payload: Payload,
    /// Memory that only this answer takes, in bytes.
    own: u64,
    /// Bytes that other answers may send or decode too.
    shared: Bytes,
}

impl AnswerParts {
    fn with(self, memory: Option<HeldMemory>) -> LoadedPayload {
        LoadedPayload {
            payload: self.payload,
            memory,
        }
    }
}

impl<'a> RouteCall<'a> {
    /// Returns the memory of the client. Probes take none: a server that lacks it still lives.
    fn client(&self) -> Option<&'a ClientMemory> {
        let client = self.request.extensions.get();
        client.filter(|_| !is_probe(self.matched.value.path))
    }

    /// Takes memory for work on about so many bytes. Returns `None` if memory is not bounded.
    pub(crate) async fn memory(&self, bytes: u64) -> Result<Option<HeldMemory>, ApiError> {
        match self.client() {
            Some(client) => Ok(Some(client.take(ANSWER_BYTES + bytes).await?)),
            None => Ok(None),
        }
    }

    /// Reads a small payload into memory, and takes memory for sending any payload.
    pub(crate) async fn load(&self, payload: Payload) -> Result<LoadedPayload, ApiError> {
        let parts = self.parts(payload.clone()).await?;
        let has_body = self.request.method != Method::HEAD;
        let Some(client) = self.client().filter(|_| has_body) else {
            return Ok(parts.with(None));
        };
        if let Some(memory) = client.try_take(parts.own, &parts.shared) {
            return Ok(parts.with(Some(memory)));
        }
        let bytes = parts.own + parts.shared.len() as u64;
        // A cache may need their place while it waits.
        drop(parts);
        let mut memory = client.take(bytes).await?;
        let parts = self.parts(payload).await?;
        memory.settle(parts.own, &parts.shared);
        Ok(parts.with(Some(memory)))
    }

    /// Returns what an answer holds while it is sent.
    async fn parts(&self, payload: Payload) -> Result<AnswerParts, ApiError> {
        if let Some(bytes) = self.kept(&payload).await? {
            return Ok(AnswerParts {
                payload: Payload::Bytes(bytes.clone()),
                own: ANSWER_BYTES,
                shared: bytes,
            });
        }
        let own = ANSWER_BYTES + payload.memory(&self.app.catalogs);
        let source = payload.source(&self.app.catalogs);
        let shared = match source.filter(|_| self.request.method != Method::HEAD) {
            Some(object) => self.kept(&Payload::Object(object)).await?,
            None => None,
        };
        Ok(AnswerParts {
            payload,
            own,
            shared: shared.unwrap_or_default(),
        })
    }
}

/// Returns what makes the chunks of a stream hold memory until they are sent. The memory of the work
/// is given back with it.
pub(crate) fn holder(memory: Option<HeldMemory>) -> impl Fn(Bytes) -> Bytes + Send + 'static {
    let parts = memory.map(|mut work| {
        let chunks = work.split(ANSWER_BYTES + CHUNKS_BYTES);
        (work, Arc::new(chunks))
    });
    move |chunk| match &parts {
        Some((_, memory)) => memory.hold(chunk),
        None => chunk,
    }
}
