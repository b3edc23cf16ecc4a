use std::{io, path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    connection::{self, Shared},
    descriptors,
    limits::Limits,
    metrics::{File, Metrics, Reason},
    readers::Guard,
    refusal::Refusal,
    request::Front,
    reread::{EVERY, FileError, Reread},
    tls,
};

/// A wait after an accept that failed for want of something that others may give back, such as file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes that the kernel takes for a connection before the network does. It would take megabytes, and somebody who reads
/// a few kB a second would seem to take nothing for a minute; what is on its way is not limited by this.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 << 10;

/// A server that is not running yet: everything that can be wrong with it is found out before.
#[derive(Debug)]
pub struct Server {
    limits: Arc<Limits>,
    tls: Option<Arc<Reread<Arc<ServerConfig>>>>,
    guard: Option<Arc<Guard>>,
    metrics: Metrics,
}

impl Server {
    /// A server that speaks HTTP to everybody.
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        Self {
            limits: Arc::new(limits),
            tls: None,
            guard: None,
            metrics,
        }
    }

    /// Speaks TLS only, with the chain and the key in these files, PEM both.
    ///
    /// # Errors
    /// [`FileError`] for files that cannot be used.
    pub fn with_tls(mut self, certificate: PathBuf, key: PathBuf) -> Result<Self, FileError> {
        let metrics = self.metrics.clone();
        let files = Reread::new(File::Certificate, vec![certificate, key], tls::parse, metrics)?;
        self.tls = Some(Arc::new(files));
        Ok(self)
    }

    /// Answers only to those whom this file names, but for `/healthz` and `/readyz`. A line is `NAME:$2y$...`, as
    /// `htpasswd -B` writes it, or `NAME:sha256:HEX`, the hash of a token.
    ///
    /// # Errors
    /// [`FileError`] for a file that cannot be used.
    pub fn with_readers(mut self, path: PathBuf) -> Result<Self, FileError> {
        self.guard = Some(Arc::new(Guard::new(path, self.metrics.clone())?));
        Ok(self)
    }

    /// Serves until `stop`, then finishes the answers under way.
    pub async fn run(self, listener: TcpListener, router: Router, stop: CancellationToken) {
        let fit = descriptors::room_for(self.limits.connections);
        if fit < self.limits.connections {
            tracing::warn!(
                connections = fit,
                "the limit of open files (RLIMIT_NOFILE) allows fewer connections"
            );
        }
        hold_little(&listener);
        let rereading = tokio::spawn(reread(self.tls.clone(), self.guard.clone()));
        let shared = Arc::new(Shared {
            front: Front {
                router,
                limits: Arc::clone(&self.limits),
                guard: self.guard,
            },
            http: connection::http(&self.limits),
            tls: self.tls,
            metrics: self.metrics,
            stop,
            kill: CancellationToken::new(),
            limits: self.limits,
        });
        let connections = TaskTracker::new();
        accept(&listener, &shared, &connections, fit).await;
        drop(listener);
        drain(&shared, &connections).await;
        rereading.abort();
    }
}

/// Connections inherit it.
#[cfg(target_os = "linux")]
fn hold_little(listener: &TcpListener) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(UNSENT) {
        tracing::debug!(%error, "cannot set TCP_NOTSENT_LOWAT");
    }
}

/// Elsewhere the kernel decides.
#[cfg(not(target_os = "linux"))]
fn hold_little(_: &TcpListener) {}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker, fit: usize) {
    let (places, refusal) = (Arc::new(Semaphore::new(fit)), Refusal::new());
    let mut full = false;
    while let Some(accepted) = shared.stop.run_until_cancelled(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                wait_for_better(&error).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            if !std::mem::replace(&mut full, true) {
                tracing::warn!(connections = fit, "too many connections; new ones are refused");
            }
            refuse(shared, &refusal, stream);
            continue;
        };
        full = false;
        let (shared, open) = (Arc::clone(shared), Open::new(&shared.metrics));
        connections.spawn(async move {
            connection::serve(shared, stream).await;
            drop((open, place));
        });
    }
}

/// A connection that has gone before it was accepted is no reason to wait.
async fn wait_for_better(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(%error, "cannot accept a connection");
        sleep(PAUSE).await;
    }
}

/// With TLS nobody is told: the handshake would cost more than an answer.
fn refuse(shared: &Shared, refusal: &Refusal, stream: TcpStream) {
    shared.metrics.closed(Reason::Full);
    if shared.tls.is_none() {
        refusal.tell(stream);
    }
}

async fn drain(shared: &Shared, connections: &TaskTracker) {
    connections.close();
    let drain = shared.limits.drain;
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        let cut = connections.len();
        tracing::warn!(
            drain_s = drain.as_secs(),
            connections = cut,
            "answers under way were cut off"
        );
        shared.kill.cancel();
        connections.wait().await;
    }
}

/// Reads again what may have changed, for ever.
async fn reread(tls: Option<Arc<Reread<Arc<ServerConfig>>>>, guard: Option<Arc<Guard>>) {
    if tls.is_none() && guard.is_none() {
        return;
    }
    loop {
        sleep(EVERY).await;
        let (tls, guard) = (tls.clone(), guard.clone());
        let looked = tokio::task::spawn_blocking(move || {
            if let Some(files) = tls {
                files.look();
            }
            if let Some(guard) = guard {
                guard.list.look();
            }
        });
        if let Err(error) = looked.await {
            tracing::error!(%error, "cannot look at the files");
        }
    }
}

/// Counts a connection for as long as it is there.
struct Open(Metrics);

impl Open {
    fn new(metrics: &Metrics) -> Self {
        metrics.open.inc();
        Self(metrics.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
