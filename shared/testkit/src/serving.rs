use std::future::IntoFuture;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::response::Builder;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::registry::{CertificateFault, tls};

/// Server in a task of its own, until it is dropped.
pub(crate) struct Serving {
    /// URL without a path, such as `http://127.0.0.1:8080`.
    pub(crate) url: String,
    /// The CA of the certificate in PEM, if it speaks TLS.
    pub(crate) ca_pem: Option<String>,
    task: JoinHandle<io::Result<()>>,
}

/// Binds a free port of an address. Returns its host, as in URLs, too.
pub(crate) async fn bind(address: IpAddr) -> (TcpListener, String) {
    let listener = TcpListener::bind((address, 0))
        .await
        .expect("loopback has a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    (listener, address.to_string())
}

impl Serving {
    /// Starts a server, with a certificate for these names if there are some.
    pub(crate) async fn start(
        address: IpAddr,
        router: Router,
        tls: Option<(&[String], CertificateFault)>,
    ) -> Self {
        let (listener, host) = bind(address).await;
        let (ca_pem, task) = match tls {
            Some((names, fault)) => {
                let (listener, ca_pem) = tls::listener(listener, names, fault);
                (
                    Some(ca_pem),
                    tokio::spawn(axum::serve(listener, router).into_future()),
                )
            }
            None => (
                None,
                tokio::spawn(axum::serve(listener, router).into_future()),
            ),
        };
        let scheme = if ca_pem.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{host}");
        Self { url, ca_pem, task }
    }

    /// Returns address and port, as in URLs.
    pub(crate) fn host(&self) -> &str {
        self.url.split_once("://").expect("a URL has a scheme").1
    }

    pub(crate) fn ca_pem(&self) -> &str {
        self.ca_pem.as_deref().expect("the server speaks TLS")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Wait that lets the bytes before a cut leave this machine's buffers.
pub(crate) const BEFORE_CUT: Duration = Duration::from_millis(30);

/// Begins a response with this status.
pub(crate) fn status(code: u16) -> Builder {
    Response::builder().status(StatusCode::from_u16(code).expect("a script names a real status"))
}

/// Returns a response of this status without a body.
pub(crate) fn empty(code: u16) -> Response<Body> {
    finish(status(code), Body::empty())
}

/// Returns a response with this body.
pub(crate) fn finish(response: Builder, body: impl Into<Body>) -> Response<Body> {
    response.body(body.into()).expect("the headers are valid")
}

/// Returns the start of a body up to this position, and an error after a wait.
pub(crate) fn cut(bytes: &Bytes, at: usize, wait: Duration) -> Body {
    let start = bytes.slice(..at.min(bytes.len()));
    let error = async move {
        sleep(wait).await;
        Err(io::Error::other("cut by script"))
    };
    Body::from_stream(stream::iter([Ok(start)]).chain(stream::once(error)))
}
