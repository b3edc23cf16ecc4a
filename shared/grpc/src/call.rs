//! One call: the catalog that it asks, and the stream of its messages.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use futures_util::{Stream, future::BoxFuture};
use http::{Request, header::HOST, uri::Authority};
use prost::Message;
use registry::MessageParts;
use tokio::sync::mpsc;
use tonic::Status;

use crate::{
    PublishedError, PublishedState, RegistryApi, memory::CallMemory, metrics::CallTimer, routes::SharedParts, status,
};

/// Messages that a call makes ahead of its client. Windows of HTTP/2 decide when the next one is asked for.
const MESSAGES_AHEAD: usize = 1;

/// Value of the metadata `x-acknowledge-experimental` that experimental methods want.
const ACKNOWLEDGED: &str = "true";

/// A call, as its method sees it.
pub(crate) struct ApiCall {
    pub(crate) shared: SharedParts,
    /// First label of the host that the client asks.
    pub(crate) label: Option<String>,
    /// True if the client knows that an experimental method may change.
    pub(crate) acknowledged: bool,
    pub(crate) timer: CallTimer,
    pub(crate) memory: CallMemory,
}

impl ApiCall {
    pub(crate) fn new(shared: SharedParts, timer: CallTimer, memory: CallMemory, request: &Request<Body>) -> Self {
        let headers = request.headers();
        let host = || {
            headers
                .get(HOST)
                .and_then(|host| Authority::try_from(host.as_bytes()).ok())
        };
        let authority = request.uri().authority().cloned().or_else(host);
        let label = authority
            .as_ref()
            .and_then(|authority| authority.host().split('.').next());
        let experimental = headers.get("x-acknowledge-experimental");
        Self {
            shared,
            label: label.map(str::to_owned),
            acknowledged: experimental.is_some_and(|value| value == ACKNOWLEDGED),
            timer,
            memory,
        }
    }

    /// Returns the catalog that the client asks: by the host, the default, or because there is only one.
    pub(crate) async fn find(&self) -> Result<FoundCatalog, Status> {
        let RegistryApi { published, default, .. } = &self.shared.api;
        let wanted = [self.label.as_deref(), default.as_deref()];
        for name in wanted.into_iter().flatten() {
            match published.state(name).await {
                Err(PublishedError::NotFound) => {}
                state => {
                    let name = name.to_owned();
                    return Ok(FoundCatalog { name, state });
                }
            }
        }
        let mut names = published.names().await.map_err(status::of_published)?;
        // A label has no dots, so a client of `v4.20` asks `v4-20`.
        let label = self.label.as_deref();
        let is_label = |name: &&String| label.is_some_and(|label| name.replace('.', "-") == label);
        let only = || names.first().filter(|_| names.len() == 1 && default.is_none());
        if let Some(name) = names.iter().find(is_label).or_else(only) {
            let state = published.state(name).await;
            let name = name.clone();
            return Ok(FoundCatalog { name, state });
        }
        names.sort_unstable();
        Err(Status::not_found(match names.join(", ") {
            names if names.is_empty() => "no catalog is published".to_owned(),
            names => format!(
                "name a catalog in the first label of the host, as in CATALOG.example.com:50051; there are: {names}"
            ),
        }))
    }

    /// Returns the state of the catalog that the client asks.
    pub(crate) async fn state(&mut self) -> Result<Arc<dyn PublishedState>, Status> {
        let FoundCatalog { name, state } = self.find().await?;
        tracing::Span::current().record("catalog", &name);
        self.timer.catalog = name;
        state.map_err(status::of_published)
    }
}

/// Catalog that a client asks, and its state.
pub(crate) struct FoundCatalog {
    pub(crate) name: String,
    pub(crate) state: Result<Arc<dyn PublishedState>, PublishedError>,
}

/// Sender of the messages of a call.
pub(crate) struct Replies(mpsc::Sender<MessageParts>);

impl Replies {
    pub(crate) async fn send(&self, message: &impl Message) -> Result<(), Status> {
        self.send_parts(MessageParts::of(message)).await
    }

    pub(crate) async fn send_parts(&self, message: MessageParts) -> Result<(), Status> {
        let sent = self.0.send(message).await;
        sent.map_err(|_| Status::cancelled("the client is gone"))
    }
}

/// Stream of the messages of a call. The method runs while the stream is polled, so it waits for the client and ends with it.
pub(crate) struct CallStream {
    running: Option<BoxFuture<'static, Result<(), Status>>>,
    messages: mpsc::Receiver<MessageParts>,
}

impl CallStream {
    pub(crate) fn new(run: impl FnOnce(Replies) -> BoxFuture<'static, Result<(), Status>>) -> Self {
        let (sender, messages) = mpsc::channel(MESSAGES_AHEAD);
        Self {
            running: Some(run(Replies(sender))),
            messages,
        }
    }
}

impl Stream for CallStream {
    type Item = Result<MessageParts, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut end = None;
        // The method runs first, so that a message and the end of its call are known at once.
        if let Some(running) = &mut self.running
            && let Poll::Ready(result) = running.as_mut().poll(cx)
        {
            self.running = None;
            end = result.err();
        }
        match self.messages.poll_recv(cx) {
            Poll::Ready(Some(message)) => {
                // An error comes after the messages that were sent before it.
                if let Some(error) = end {
                    self.running = Some(Box::pin(std::future::ready(Err(error))));
                }
                Poll::Ready(Some(Ok(message)))
            }
            Poll::Ready(None) => Poll::Ready(end.map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }
}
