//! One call: the state that it asks, and the stream of its messages.

use std::future::ready;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream::{self, PollNext};
use futures_util::{Stream, StreamExt};
use http::{header::HOST, request::Parts, uri::Authority};
use prost::Message;
use server::ConnectionHandle;
use tokio::sync::mpsc;
use tonic::Status;
use tracing::Instrument;
use work::{ClientMemory, HeldMemory};

use crate::catalogs::IndexedState;
use crate::codec::FinishedMessage;
use crate::contents::ContentCache;
use crate::{AnswerError, GrpcMetrics, RegistryCatalogs};

/// Messages that a call makes ahead of its client. Windows of HTTP/2 decide when the next one is
/// asked for.
const MESSAGES_AHEAD: usize = 1;

/// Value of the metadata `x-acknowledge-experimental` that experimental methods want.
const ACKNOWLEDGED: &str = "true";

/// Parts of the API that all calls share.
pub(crate) struct ApiParts {
    pub(crate) catalogs: Arc<RegistryCatalogs>,
    pub(crate) metrics: GrpcMetrics,
    pub(crate) contents: ContentCache,
}

/// Method, host and metadata of a request.
#[derive(Clone)]
pub(crate) struct CallHead {
    pub(crate) method: &'static str,
    /// First label of the host that the client asks.
    pub(crate) label: Option<String>,
    /// True if the client knows that an experimental method may change.
    pub(crate) acknowledged: bool,
    /// Connection of the call. `None` without a server around the router.
    connection: Option<ConnectionHandle>,
    /// Memory of the connection, which the server bounds.
    memory: Option<ClientMemory>,
}

/// A call, as its method sees it.
pub(crate) struct ApiCall {
    pub(crate) shared: Arc<ApiParts>,
    pub(crate) head: CallHead,
    /// Name of the catalog that is asked, once it is chosen.
    catalog: Arc<OnceLock<String>>,
    replies: mpsc::Sender<Result<FinishedMessage, Status>>,
}

impl CallHead {
    pub(crate) fn new(method: &'static str, request: &Parts) -> Self {
        let headers = &request.headers;
        let mut authority = request.uri.authority().cloned();
        if authority.is_none()
            && let Some(host) = headers.get(HOST)
        {
            authority = Authority::try_from(host.as_bytes()).ok();
        }
        let label =
            authority.and_then(|authority| Some(authority.host().split('.').next()?.to_owned()));
        let experimental = headers.get("x-acknowledge-experimental");
        Self {
            method,
            label,
            acknowledged: experimental.is_some_and(|value| value == ACKNOWLEDGED),
            connection: request.extensions.get().cloned(),
            memory: request.extensions.get().cloned(),
        }
    }
}

impl ApiCall {
    /// Returns the state of the catalog that the client asks.
    pub(crate) async fn state(&self) -> Result<IndexedState, AnswerError> {
        let catalogs = &self.shared.catalogs;
        let name = catalogs.choose(self.head.label.as_deref()).await?;
        tracing::Span::current().record("catalog", &name);
        let connection = self.head.connection.as_ref();
        let name = self.catalog.get_or_init(|| name);
        catalogs.state(name, connection).await
    }

    /// Waits for the memory of a message with content.
    pub(crate) async fn memory(&self, bytes: u64) -> Result<Option<HeldMemory>, AnswerError> {
        match &self.head.memory {
            Some(memory) => Ok(Some(memory.take(bytes).await?)),
            None => Ok(None),
        }
    }

    /// Sends a message when the client has taken the one before.
    pub(crate) async fn send(&self, message: &impl Message) -> Result<(), AnswerError> {
        self.send_bytes(message.encode_to_vec().into(), None).await
    }

    /// Sends an encoded message with the memory that it takes.
    pub(crate) async fn send_bytes(
        &self,
        bytes: Bytes,
        memory: Option<HeldMemory>,
    ) -> Result<(), AnswerError> {
        let sent = self
            .replies
            .send(Ok(FinishedMessage { bytes, memory }))
            .await;
        sent.map_err(|_| AnswerError::ClientGone)
    }
}

/// Starts a call in a span of its own. The method runs while the stream of its messages is polled,
/// so it waits for the client and ends with it.
pub(crate) fn run<Fut>(
    shared: Arc<ApiParts>,
    head: CallHead,
    answer: impl FnOnce(ApiCall) -> Fut,
) -> impl Stream<Item = Result<FinishedMessage, Status>> + Send + 'static
where
    Fut: Future<Output = Result<(), AnswerError>> + Send + 'static,
{
    let (replies, mut messages) = mpsc::channel(MESSAGES_AHEAD);
    let span = tracing::info_span!(
        "grpc_call",
        method = head.method,
        catalog = tracing::field::Empty
    );
    let mut timer = shared.metrics.begin(head.method);
    let answering = answer(ApiCall {
        shared,
        head,
        catalog: Arc::clone(&timer.catalog),
        replies: replies.clone(),
    });
    let running = async move {
        let result = answering.await.map_err(Status::from);
        timer.ended(&result);
        if let Err(status) = result {
            // It comes after the messages that were sent before it.
            drop(replies.send(Err(status)).await);
        }
    };
    let running = stream::once(running.instrument(span)).filter_map(|()| ready(None));
    let messages = stream::poll_fn(move |cx| messages.poll_recv(cx));
    // The method runs before its messages are looked for, because it may make one then. Small
    // messages share a frame only if they come without a pause between them, and clients refuse too
    // many small frames.
    stream::select_with_strategy(running, messages, |_: &mut ()| PollNext::Left)
}
