use std::net::IpAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::registry::{CertificateFault, tls};

/// Server in a task of its own, until it is dropped.
pub(crate) struct Serving {
    /// Address and port, as in URLs.
    pub(crate) host: String,
    /// The CA of the certificate in PEM, if it speaks TLS.
    pub(crate) ca_pem: Option<String>,
    task: JoinHandle<()>,
}

/// Binds a free port of an address. Returns its host, as in URLs, too.
pub(crate) async fn bind(address: IpAddr) -> (TcpListener, String) {
    let listener = TcpListener::bind((address, 0)).await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    (listener, address.to_string())
}

impl Serving {
    /// Starts a server, with a certificate for these names if there are some.
    pub(crate) async fn start(address: IpAddr, router: Router, tls: Option<(&[String], CertificateFault)>) -> Self {
        let (listener, host) = bind(address).await;
        let (ca_pem, task) = match tls {
            Some((names, fault)) => {
                let (listener, ca_pem) = tls::listener(listener, names, fault);
                let serving = async { axum::serve(listener, router).await.unwrap_or_default() };
                (Some(ca_pem), tokio::spawn(serving))
            }
            None => {
                let serving = async { axum::serve(listener, router).await.unwrap_or_default() };
                (None, tokio::spawn(serving))
            }
        };
        Self { host, ca_pem, task }
    }

    /// Returns the URL of the server without a path.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
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
