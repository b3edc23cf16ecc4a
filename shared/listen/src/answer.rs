use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body as Inner;
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};

use crate::watch::Ticket;

/// What a stream of HTTP/2 is given at once: one frame of the size that every client takes (RFC 9113, section 4.2).
/// More would lie in the connection's buffer, out of sight, until the client makes room for it.
const PIECE: usize = 16 << 10;

/// The body of an answer, which tells when it is waited for and when it is handed out.
#[derive(Debug)]
pub(crate) struct Answer {
    inner: Inner,
    ticket: Ticket,
    /// What is left of a frame.
    rest: Bytes,
    piece: usize,
}

impl Answer {
    pub(crate) fn new(inner: Inner, ticket: Ticket, version: Version) -> Self {
        Self {
            inner,
            ticket,
            rest: Bytes::new(),
            // HTTP/1.1 writes to the socket, which tells of itself.
            piece: if version == Version::HTTP_2 { PIECE } else { usize::MAX },
        }
    }

    fn next(&mut self) -> Frame<Bytes> {
        self.ticket.handed();
        let length = self.rest.len().min(self.piece);
        Frame::data(self.rest.split_to(length))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next())));
        }
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    self.next()
                }
                Err(trailers) => trailers,
            }))),
            Poll::Pending => {
                self.ticket.made();
                Poll::Pending
            }
            end @ Poll::Ready(_) => end,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
