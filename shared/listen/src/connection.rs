//! One connection, from the first byte to the last.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Answer,
    io::Watched,
    limits::Limits,
    metrics::{Metrics, Reason},
    request::Front,
    reread::Reread,
    watch::{Verdict, Watch},
};

/// What all connections have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) front: Front,
    pub(crate) limits: Arc<Limits>,
    pub(crate) http: auto::Builder<TokioExecutor>,
    pub(crate) tls: Option<Arc<Reread<Arc<ServerConfig>>>>,
    pub(crate) metrics: Metrics,
    /// To finish what is under way.
    pub(crate) stop: CancellationToken,
    /// To end at once.
    pub(crate) kill: CancellationToken,
}

/// How both versions are spoken.
pub(crate) fn http(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // The buffer for a head is the limit of it: hyper answers 431 when it is full. Waits are the watch's business.
    let head = usize::try_from(limits.head).unwrap_or(usize::MAX);
    http.http1()
        .max_buf_size(head.max(8 << 10))
        .header_read_timeout(None::<Duration>);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head)
        .max_pending_accept_reset_streams(limits.resets)
        // What is sent in vain because of the client's own mistakes, as many as hyper thinks right.
        .max_local_error_reset_streams(1024_usize)
        // Not even a peer that is gone without a word keeps a connection longer than one that does not read.
        .keep_alive_interval(limits.stalled)
        .keep_alive_timeout(limits.stalled)
        .max_send_buf_size(64 << 10);
    http
}

/// Serves a connection until it ends by itself, is over, or the server is.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Small answers must not wait for the acknowledgement of the ones before them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let watch = Watch::new(Arc::clone(&shared.limits));
    let stream = Watched::new(stream, Arc::clone(&watch));
    let Some(tls) = &shared.tls else {
        return drive(&shared, &watch, stream).await;
    };
    let handshake = TlsAcceptor::from(Arc::clone(&*tls.now())).accept(stream);
    let handshake = timeout(shared.limits.handshake, handshake);
    match shared.stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => drive(&shared, &watch, stream).await,
        Some(_) => shared.metrics.closed(Reason::Handshake),
        None => {}
    }
}

async fn drive<S>(shared: &Arc<Shared>, watch: &Arc<Watch>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    watch.connected();
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, ticket, version) = (Arc::clone(shared), watch.ask(), request.version());
        async move {
            let response = shared.front.answer(request).await;
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, ticket, version)))
        }
    });
    let mut connection = pin!(shared.http.serve_connection(TokioIo::new(stream), service));
    let mut looks = interval(shared.limits.between_looks());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(error, "a connection ended");
                }
                return;
            }
            _ = looks.tick() => match watch.judge() {
                Verdict::Fine => {}
                Verdict::Enough if ending => {}
                Verdict::Enough => {
                    shared.metrics.closed(Reason::Idle);
                    ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                // It was counted when it was told.
                Verdict::Over(Reason::Idle) if ending => return,
                Verdict::Over(reason) => return shared.metrics.closed(reason),
            },
            () = shared.stop.cancelled(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
            () = shared.kill.cancelled() => return shared.metrics.closed(Reason::Drained),
        }
    }
}
