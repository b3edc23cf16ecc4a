//! The socket of a connection and the bodies of its answers, which report to its watch.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body as InnerBody;
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::access::AccessRecord;
use crate::watch::{ConnectionWatch, RequestTicket};

/// A socket that reports its writes to the watch of its connection.
///
/// It lies below TLS, so that only bytes count that the network takes.
#[derive(Debug)]
pub(crate) struct WatchedSocket<S> {
    socket: S,
    watch: Arc<ConnectionWatch>,
}

impl<S> WatchedSocket<S> {
    pub(crate) const fn new(socket: S, watch: Arc<ConnectionWatch>) -> Self {
        Self { socket, watch }
    }

    fn report(&self, written: &Poll<io::Result<usize>>, given: usize) {
        match written {
            Poll::Pending => self.watch.write_blocked(),
            Poll::Ready(Ok(taken)) => self.watch.wrote(*taken, given),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.report(&written, bytes.len());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [slice] = slices {
            // A response without a body: `send` is cheaper than `writev`.
            return self.poll_write(cx, slice);
        }
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.report(&written, slices.iter().map(|slice| slice.len()).sum());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// Bytes that an HTTP/2 stream gets at once: one frame of the size that every client accepts (RFC
/// 9113, section 4.2). More would wait in the buffer of the connection, where the watch does not
/// see it, until the client makes room.
const HTTP2_PIECE: usize = 16 << 10;

/// The body of an answer. It reports to the watch when it waits for the store and when it hands out
/// bytes.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    inner: InnerBody,
    ticket: Arc<RequestTicket>,
    /// The part of a frame that was not handed out yet.
    rest: Bytes,
    piece: usize,
    /// Line of the access log, which is written when the body is dropped.
    record: Option<AccessRecord>,
}

impl WatchedBody {
    pub(crate) fn new(
        inner: InnerBody,
        ticket: RequestTicket,
        version: Version,
        record: Option<AccessRecord>,
    ) -> Self {
        // HTTP/1.1 writes straight to the socket, which reports its writes itself.
        let piece = if version == Version::HTTP_2 {
            HTTP2_PIECE
        } else {
            usize::MAX
        };
        Self {
            inner,
            ticket: Arc::new(ticket),
            rest: Bytes::new(),
            piece,
            record,
        }
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        self.ticket.handed_out();
        let length = self.rest.len().min(self.piece);
        let piece = self.rest.split_to(length);
        if let Some(record) = &mut self.record {
            record.bytes += length as u64;
        }
        // HTTP/2 may keep the last pieces long after the body has ended.
        Frame::data(match self.piece {
            HTTP2_PIECE => Bytes::from_owner(TicketedBytes {
                bytes: piece,
                _ticket: Arc::clone(&self.ticket),
            }),
            _ => piece,
        })
    }
}

/// Bytes of an answer that is not finished before they are sent.
struct TicketedBytes {
    bytes: Bytes,
    _ticket: Arc<RequestTicket>,
}

impl AsRef<[u8]> for TicketedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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
