//! One connection, from the TLS handshake to its end.

use std::net::SocketAddr;
use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::{io::InspectReader, sync::CancellationToken};
use work::{AnswerMemory, ServerLimits};

use crate::access::AccessRecord;
use crate::metrics::CloseReason;
use crate::request::Answer;
use crate::server::Server;
use crate::watch::{ConnectionHandle, ConnectionWatch, Verdict};
use crate::watched::{WatchedBody, WatchedSocket};

/// Bytes that HTTP/2 buffers for one stream: two frames, so that one is there while the other is
/// being sent.
const HTTP2_SEND_BUFFER: usize = 32 << 10;

/// Maximum size of a request's head, in bytes: twice what other servers accept. A larger one is
/// answered with 431.
const HEAD_MAX: u32 = 32 << 10;

/// HTTP/2 streams that a client may reset before they were handled. One more closes the connection.
/// Browsers reset a few streams, a rapid reset attack (CVE-2023-44487) resets all.
const RESETS: usize = 20;

/// Streams that the server may reset because of a client's mistakes. hyper's own default.
const LOCAL_RESETS: usize = 1024;

/// Bytes of requests that a connection may send ahead: the smallest window that HTTP/2 has at the
/// beginning. Requests are small or wait for their turn, and hyper's own window has a megabyte.
const REQUEST_WINDOW: u32 = (64 << 10) - 1;

/// Parts of a running server that all connections share.
pub(crate) struct SharedParts {
    pub(crate) server: Server,
    pub(crate) router: Router,
    pub(crate) http: auto::Builder<TokioExecutor>,
    pub(crate) memory: AnswerMemory,
    /// Cancelled when running answers should finish.
    pub(crate) stop: CancellationToken,
    /// Cancelled when connections must end at once.
    pub(crate) kill: CancellationToken,
}

/// Returns the settings of both HTTP versions. gRPC has HTTP/2 only.
pub(crate) fn http_builder(limits: &ServerLimits, grpc: bool) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    if grpc {
        http = http.http2_only();
    }
    http.http1()
        // hyper answers 431 when the buffer for a head is full.
        .max_buf_size(HEAD_MAX as usize)
        // A client that has sent its request may close its side, as `nc -N` does, and still gets
        // the whole answer.
        .half_close(true)
        // The watch limits this time, for both versions.
        .header_read_timeout(None::<Duration>);
    http.http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(REQUEST_WINDOW)
        .initial_connection_window_size(REQUEST_WINDOW)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEAD_MAX)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(LOCAL_RESETS)
        // A peer that vanished keeps its connection no longer than one that does not read.
        .keep_alive_interval(limits.stalled)
        .keep_alive_timeout(limits.stalled)
        .max_send_buf_size(HTTP2_SEND_BUFFER);
    http
}

/// Serves a connection until the client closes it, a limit is exceeded or the server stops.
pub(crate) async fn serve(
    shared: Arc<SharedParts>,
    watch: Arc<ConnectionWatch>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // A small answer must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let Server {
        tls,
        limits,
        metrics,
        ..
    } = &shared.server;
    let Some(tls) = tls else {
        let stream = WatchedSocket::new(stream, Arc::clone(&watch));
        return drive(&shared, &watch, stream, peer).await;
    };
    let tls = tls.current();
    let socket_watch = Arc::clone(&watch);
    let handshake = async move {
        if is_plain_http(&stream).await? {
            refuse_plain_http(stream).await?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        let stream = WatchedSocket::new(stream, socket_watch);
        TlsAcceptor::from(tls).accept(stream).await
    };
    let handshake = timeout(limits.handshake, handshake);
    match shared.stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => drive(&shared, &watch, stream, peer).await,
        Some(_) => metrics.count_closed(CloseReason::Handshake),
        None => {}
    }
}

/// Returns true if a client begins with a request instead of a TLS handshake: with a letter, where a
/// handshake has 22 (RFC 8446, section 5.1).
async fn is_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    Ok(length == first.len() && first[0].is_ascii_alphabetic())
}

/// Text of the answer to a request without TLS.
const PLAIN_HTTP: &str = "this port answers with TLS only: ask for an https:// URL\n";

/// Most bytes of a request without TLS that are read.
const PLAIN_REQUEST_MAX: usize = 64 << 10;

/// Answers a request without TLS, and ends the connection.
async fn refuse_plain_http(mut stream: TcpStream) -> io::Result<()> {
    let length = PLAIN_HTTP.len();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{PLAIN_HTTP}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // A close with bytes that were not read is a reset, which may overtake the answer.
    let mut rest = [0; 4096];
    let mut read = 0;
    while read < PLAIN_REQUEST_MAX {
        match stream.read(&mut rest).await? {
            0 => break,
            length => read += length,
        }
    }
    Ok(())
}

async fn drive<S>(
    shared: &Arc<SharedParts>,
    watch: &Arc<ConnectionWatch>,
    stream: S,
    peer: SocketAddr,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Server { metrics, .. } = &shared.server;
    watch.connected();
    let service = service_fn(|mut request: Request<Incoming>| {
        if shared.server.front.is_none() {
            let connection = ConnectionHandle(Arc::clone(watch));
            request.extensions_mut().insert(connection);
        }
        request.extensions_mut().insert(watch.memory.clone());
        let shared = Arc::clone(shared);
        let ticket = watch.begin_request();
        let version = request.version();
        let log = shared.server.access_log.as_ref();
        let mut record = log.map(|log| AccessRecord::begin(log, peer, &request));
        async move {
            let Answer { response, user } = shared.answer(request, peer).await;
            if let Some(record) = &mut record {
                record.status = Some(response.status());
                record.user = user;
            }
            Ok::<_, Infallible>(
                response.map(|body| WatchedBody::new(body, ticket, version, record)),
            )
        }
    });
    // Above TLS, so that a handshake does not count.
    let heard = Arc::clone(watch);
    let stream = InspectReader::new(stream, move |bytes| heard.heard(bytes.len()));
    let mut connection = pin!(shared.http.serve_connection(TokioIo::new(stream), service));
    let mut ending = false;
    loop {
        // The stop of the server is no reason to count.
        let reason = tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "connection ended with an error");
                }
                return;
            }
            () = sleep(watch.check_interval()) => match watch.verdict() {
                Verdict::Healthy => continue,
                Verdict::CloseGracefully(_) if ending => continue,
                Verdict::CloseGracefully(reason) => Some(reason),
                // Counted already at the graceful shutdown.
                Verdict::Close(CloseReason::Idle) if ending => return,
                Verdict::Close(reason) => return metrics.count_closed(reason),
            },
            () = watch.replaced.cancelled(), if !ending => Some(CloseReason::Replaced),
            () = shared.stop.cancelled(), if !ending => None,
            () = shared.kill.cancelled() => return metrics.count_closed(CloseReason::Drained),
        };
        if let Some(reason) = reason {
            metrics.count_closed(reason);
        }
        ending = true;
        connection.as_mut().graceful_shutdown();
    }
}
