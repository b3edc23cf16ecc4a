use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body as InnerBody;
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};

use crate::watch::RequestTicket;

/// Bytes that an HTTP/2 stream gets at once: one frame of the size that every client accepts (RFC 9113, section 4.2).
/// More would wait in the buffer of the connection, where the watch does not see it, until the client makes room.
const HTTP2_PIECE: usize = 16 << 10;

/// The body of an answer. It reports to the watch when it waits for the store and when it hands out bytes.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    inner: InnerBody,
    ticket: RequestTicket,
    /// The part of a frame that was not handed out yet.
    rest: Bytes,
    piece: usize,
}

impl WatchedBody {
    pub(crate) fn new(inner: InnerBody, ticket: RequestTicket, version: Version) -> Self {
        // HTTP/1.1 writes straight to the socket, which reports its writes itself.
        let piece = if version == Version::HTTP_2 {
            HTTP2_PIECE
        } else {
            usize::MAX
        };
        Self {
            inner,
            ticket,
            rest: Bytes::new(),
            piece,
        }
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        self.ticket.handed_out();
        let length = self.rest.len().min(self.piece);
        Frame::data(self.rest.split_to(length))
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_piece())));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if polled.is_pending() {
            self.ticket.producing();
        }
        polled.map_ok(|frame| match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_piece()
            }
            Err(trailers) => trailers,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if !self.rest.is_empty() {
            // hyper asks before the first frame only.
            return SizeHint::default();
        }
        self.inner.size_hint()
    }
}
