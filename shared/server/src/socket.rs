use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::watch::ConnectionWatch;

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
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
