//! Messages in the bodies of requests and answers, as gRPC over HTTP/2 frames them (PROTOCOL-HTTP2.md of gRPC): a byte that says
//! whether the message is compressed, its length in four bytes, and the message. The status comes in the trailers.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use axum::body::{Body, HttpBody};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use http::{
    HeaderMap, HeaderValue, Request, Response,
    header::{CONTENT_TYPE, HeaderName},
};
use http_body::Frame;
use prost::Message;
use registry::MessageParts;
use tonic::{Status, Streaming, codec::Codec};
use tonic_prost::ProstCodec;

use crate::{
    call::CallStream,
    memory::{CallMemory, MessagePermit},
};

/// Maximum size of a request in bytes. Names have at most some hundred.
const REQUEST_BYTES: usize = 64 << 10;

/// Size of the head of a message, in bytes.
const HEAD: usize = 5;

/// Maximum size of a message that is sent together with others, in bytes.
const SMALL_MAX: usize = 16 << 10;

/// Size from which small messages are sent, in bytes. Clients take many small frames for an attack.
const BUFFER_MAX: usize = 32 << 10;

const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Reads the only message of a request.
pub(crate) async fn read<M: Message + Default + 'static>(request: Request<Body>) -> Result<M, Status> {
    let encoding = request.headers().get(ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Status::unimplemented("the server accepts no compressed requests"));
    }
    let decoder = ProstCodec::<M, M>::default().decoder();
    let mut messages = Streaming::new_request(decoder, request.into_body(), None, Some(REQUEST_BYTES));
    let message = messages.message().await?;
    message.ok_or_else(|| Status::internal("the request has no message"))
}

/// Returns the answer with the messages of a call.
pub(crate) fn answer(messages: CallStream, memory: CallMemory) -> Response<Body> {
    let mut response = Response::new(Body::new(AnswerBody {
        messages: Some(messages),
        buffer: BytesMut::new(),
        parts: Vec::new().into_iter(),
        permit: MessagePermit::default(),
        memory,
        trailers: None,
    }));
    let content_type = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Body of an answer. Small messages that are ready are sent together, and a large one is never in one piece of memory.
struct AnswerBody {
    /// `None` after the last message.
    messages: Option<CallStream>,
    /// Messages that are not in `parts` yet.
    buffer: BytesMut,
    /// Parts that are sent next.
    parts: vec::IntoIter<Bytes>,
    permit: MessagePermit,
    memory: CallMemory,
    /// Status that is sent last.
    trailers: Option<HeaderMap>,
}

impl AnswerBody {
    fn add(&mut self, message: MessageParts) {
        self.buffer.reserve(HEAD);
        self.buffer.put_u8(0);
        // Lines are shorter than 4 GiB.
        self.buffer.put_u32(u32::try_from(message.length()).unwrap_or(u32::MAX));
        let is_small = message.length() <= SMALL_MAX;
        let mut parts = message.into_parts();
        if is_small {
            parts.drain(..).for_each(|part| self.buffer.put_slice(&part));
        }
        if !is_small || self.buffer.len() >= BUFFER_MAX {
            self.send(parts);
        }
    }

    fn send(&mut self, parts: Vec<Bytes>) {
        let mut all = vec![self.buffer.split().freeze()];
        all.extend(parts);
        self.parts = all.into_iter();
        self.permit = self.memory.of_message();
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(part) = this.parts.by_ref().find(|part| !part.is_empty()) {
                return Poll::Ready(Some(Ok(Frame::data(this.permit.hold(part)))));
            }
            this.permit = MessagePermit::default();
            let Some(messages) = &mut this.messages else {
                return Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            };
            match Pin::new(messages).poll_next(cx) {
                Poll::Pending if this.buffer.is_empty() => return Poll::Pending,
                Poll::Pending => this.send(Vec::new()),
                Poll::Ready(Some(Ok(message))) => this.add(message),
                Poll::Ready(end) => {
                    this.messages = None;
                    let status = end.and_then(Result::err).unwrap_or_else(|| Status::ok(""));
                    this.trailers = Some(trailers(&status));
                    this.send(Vec::new());
                }
            }
        }
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // No header can have the text.
        drop(Status::new(status.code(), "").add_header(&mut trailers));
    }
    trailers
}
