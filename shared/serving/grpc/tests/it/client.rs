//! A client that sends and receives encoded messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, BufMut};
use futures_util::{StreamExt, TryFutureExt, stream};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// Messages as bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawCodec;

impl Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(bytes.copy_to_bytes(bytes.remaining()).to_vec()))
    }
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client(Channel);

impl Client {
    /// Connects to a port of this machine, and fails instead of connecting a second time. `host` is
    /// what the client believes to ask.
    pub(crate) async fn connect(port: u16, host: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = Some(stream);
        let connector = tower::service_fn(move |_| {
            let stream = stream.take().map(TokioIo::new);
            async move { stream.ok_or_else(|| io::Error::other("the first connection has ended")) }
        });
        // The windows of most clients. hyper's own has 2 MB.
        let endpoint = Endpoint::try_from(format!("http://{host}:{port}"))
            .unwrap()
            .initial_stream_window_size(65_535)
            .initial_connection_window_size(65_535);
        Self(endpoint.connect_with_connector(connector).await.unwrap())
    }

    /// Connects to a port of this machine, again after each end. Returns the number of connections
    /// beside the client.
    pub(crate) fn again(port: u16, host: &str) -> (Self, Arc<AtomicUsize>) {
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let connector = tower::service_fn(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            TcpStream::connect(("127.0.0.1", port)).map_ok(TokioIo::new)
        });
        let endpoint = Endpoint::try_from(format!("http://{host}:{port}")).unwrap();
        (
            Self(endpoint.connect_with_connector_lazy(connector)),
            connections,
        )
    }

    /// Calls a method, and returns its stream.
    pub(crate) async fn start(
        &self,
        method: &str,
        message: &[u8],
    ) -> Result<tonic::Streaming<Vec<u8>>, Status> {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        let mut request = Request::new(message.to_vec());
        let (name, value) = ("x-acknowledge-experimental", "true".parse().unwrap());
        request.metadata_mut().insert(name, value);
        let path = method.parse().unwrap();
        Ok(grpc
            .server_streaming(request, path, RawCodec)
            .await?
            .into_inner())
    }

    /// Calls a method, and sends no message. The request ends when the sender is dropped.
    pub(crate) async fn hold(
        &self,
        method: &str,
    ) -> (tonic::Streaming<Vec<u8>>, oneshot::Sender<()>) {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        let path = method.parse().unwrap();
        let (end, ended) = oneshot::channel();
        let messages = stream::once(ended).filter_map(async |_| None);
        let called = grpc.streaming(Request::new(messages), path, RawCodec);
        (called.await.unwrap().into_inner(), end)
    }

    /// Calls a method, and returns all messages.
    pub(crate) async fn call(&self, method: &str, message: &[u8]) -> Result<Vec<Vec<u8>>, Status> {
        let mut stream = self.start(method, message).await?;
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await? {
            messages.push(message);
        }
        Ok(messages)
    }

    /// Returns the code of a call.
    pub(crate) async fn code(&self, method: &str, message: &[u8]) -> Code {
        let called = self.call(method, message).await;
        called.err().map_or(Code::Ok, |status| status.code())
    }
}
