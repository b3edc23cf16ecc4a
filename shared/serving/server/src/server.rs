use std::net::SocketAddr;
use std::{io, path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use rustls::ServerConfig;
use tokio::{net::TcpListener, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;
use work::{AnswerMemory, ServerLimits};

use crate::access::AccessLog;
use crate::connection::{self, SharedParts};
use crate::connections::Connections;
use crate::limits::raise_limit;
use crate::metrics::{CloseReason, ServerMetrics};
use crate::reload::{CHECK_INTERVAL, ReloadedFiles};
use crate::request::Front;
use crate::users::Authenticator;
use crate::watch::ConnectionWatch;
use crate::{FileError, tls};

/// Wait after an accept that failed for lack of a resource, such as file descriptors, which other
/// connections free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes that the kernel buffers for a connection before the network takes them.
///
/// The kernel's default is megabytes. A client that reads a few kB a second would then seem to take
/// nothing for a minute. Bytes on their way through the network are not limited by this.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 << 10;

/// An HTTP server that is configured and not running yet.
///
/// Files are read when they are added, so that a mistake shows before the server runs.
pub struct Server {
    pub(crate) limits: Arc<ServerLimits>,
    pub(crate) tls: Option<ReloadedFiles<ServerConfig>>,
    pub(crate) authenticator: Option<Authenticator>,
    pub(crate) metrics: ServerMetrics,
    /// Answers of the HTTP API behind the server. `None` for gRPC.
    pub(crate) front: Option<Front>,
    /// True if the router gets the content of requests. Without this it is dropped.
    pub(crate) takes_content: bool,
    pub(crate) access_log: Option<AccessLog>,
}

impl Server {
    /// Returns a server without TLS and without authentication. It asks `front` about the paths of
    /// its API. Without a front it serves gRPC: HTTP/2 only, and the router gets each request with
    /// its content.
    pub fn new(limits: ServerLimits, metrics: ServerMetrics, front: Option<Front>) -> Self {
        Self {
            limits: Arc::new(limits),
            tls: None,
            authenticator: None,
            metrics,
            front,
            takes_content: false,
            access_log: None,
        }
    }

    /// Passes the content of every request but GET and HEAD to the router, which must limit its
    /// size and the time for it.
    pub const fn with_content(mut self) -> Self {
        self.takes_content = true;
        self
    }

    /// Writes a line for each request to a log.
    pub fn with_access_log(mut self, log: AccessLog) -> Self {
        self.access_log = Some(log);
        self
    }

    /// Adds TLS with a chain of certificates and its key, both PEM. A request without TLS is
    /// answered with 400.
    ///
    /// # Errors
    /// [`FileError`] for files that cannot be used.
    pub fn with_tls(mut self, certificate: PathBuf, key: PathBuf) -> Result<Self, FileError> {
        let metrics = self.metrics.clone();
        let files = vec![certificate, key];
        self.tls = Some(ReloadedFiles::new(
            "certificate",
            files,
            tls::parse,
            metrics,
        )?);
        Ok(self)
    }

    /// Adds authentication by a user list. Paths that are [`Front::is_open`] stay open.
    ///
    /// A line is `NAME:$2y$...`, a password as `htpasswd -B` writes it, or `NAME:sha256:HEX`, the
    /// hash of a token.
    ///
    /// # Errors
    /// [`FileError`] for a list that cannot be used.
    pub fn with_users(mut self, path: PathBuf) -> Result<Self, FileError> {
        self.authenticator = Some(Authenticator::new(path, self.metrics.clone())?);
        Ok(self)
    }

    /// Returns the URL under which this host reaches a server at an address.
    pub fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        if address.ip().is_unspecified() {
            format!("{scheme}://localhost:{}/", address.port())
        } else {
            format!("{scheme}://{address}/")
        }
    }

    /// Returns the memory for the answers of this server.
    fn memory(&self) -> AnswerMemory {
        let memory = AnswerMemory::new(self.limits.answer_bytes, self.limits.answer_wait, |wait| {
            Box::pin(sleep(wait))
        });
        self.metrics.answers.show(&memory);
        memory
    }

    /// Serves until `stop` is cancelled, then finishes running answers within
    /// [`ServerLimits::drain`].
    pub async fn run(self, listener: TcpListener, router: Router, stop: CancellationToken) {
        let fit = raise_limit(self.limits.connections);
        if fit < self.limits.connections {
            tracing::warn!(
                connections = fit,
                "the limit of open files (RLIMIT_NOFILE) allows fewer connections than configured"
            );
        }
        limit_unsent(&listener);
        let shared = Arc::new(SharedParts {
            http: connection::http_builder(&self.limits, self.front.is_none()),
            memory: self.memory(),
            server: self,
            router,
            stop,
            kill: CancellationToken::new(),
        });
        let reloading = tokio::spawn(reload(Arc::clone(&shared)));
        let connections = TaskTracker::new();
        accept(&listener, &shared, &connections, fit).await;
        // Closed before the drain: a new connection would wait in the backlog, and be reset at the
        // end.
        drop(listener);
        drain(&shared, &connections).await;
        reloading.abort();
    }
}

// Accepted connections inherit the option.
#[cfg(target_os = "linux")]
fn limit_unsent(listener: &TcpListener) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "cannot set TCP_NOTSENT_LOWAT");
    }
}

// Other systems have no such option.
#[cfg(not(target_os = "linux"))]
fn limit_unsent(_: &TcpListener) {}

async fn accept(
    listener: &TcpListener,
    shared: &Arc<SharedParts>,
    connections: &TaskTracker,
    fit: usize,
) {
    let places = Connections::new(fit, shared.server.metrics.open.clone());
    let mut full = false;
    while let Some(accepted) = shared.stop.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        // Accepted and closed, not left in the backlog: a client in the backlog waits until it
        // times out.
        let Some(room) = places.find_room() else {
            if !std::mem::replace(&mut full, true) {
                tracing::warn!(connections = fit, "too many connections, closing new ones");
            }
            shared.server.metrics.count_closed(CloseReason::Full);
            continue;
        };
        full = false;
        let shared = Arc::clone(shared);
        let places = Arc::clone(&places);
        let span = tracing::debug_span!("connection", %peer);
        let serving = async move {
            let limits = Arc::clone(&shared.server.limits);
            let watch = ConnectionWatch::new(limits, shared.memory.client());
            let Some(_place) = places.take(room, Arc::clone(&watch)).await else {
                return shared.server.metrics.count_closed(CloseReason::Full);
            };
            connection::serve(shared, watch, stream, peer).await;
        };
        connections.spawn(serving.instrument(span));
    }
}

async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    // The client was gone before its connection was accepted. The next one may be waiting.
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        tracing::error!(%error, "cannot accept connection");
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn drain(shared: &SharedParts, connections: &TaskTracker) {
    connections.close();
    let drain = shared.server.limits.drain;
    if tokio::time::timeout(drain, connections.wait())
        .await
        .is_err()
    {
        let cut_off = connections.len();
        tracing::warn!(
            drain_s = drain.as_secs(),
            connections = cut_off,
            "cut off answers that did not finish in time"
        );
        shared.kill.cancel();
        connections.wait().await;
    }
}

/// Checks the files for changes, for ever.
#[expect(clippy::disallowed_methods, reason = "the files are the own ones")]
async fn reload(shared: Arc<SharedParts>) {
    loop {
        sleep(CHECK_INTERVAL).await;
        let shared = Arc::clone(&shared);
        let checked = tokio::task::spawn_blocking(move || {
            shared.server.tls.iter().for_each(ReloadedFiles::check);
            shared
                .server
                .authenticator
                .iter()
                .for_each(|users| users.users.check());
        });
        if let Err(error) = checked.await {
            tracing::error!(%error, "cannot check files for changes");
        }
    }
}
