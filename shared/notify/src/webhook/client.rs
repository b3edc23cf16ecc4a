//! The HTTP client of all webhooks: TLS with rustls and ring, no redirects, no cookies.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// How long a connection may take: less than an attempt, so that the two can be told apart.
const CONNECT: Duration = Duration::from_secs(10);

/// To be made when it is first needed: loading the system's CA certificates takes longer than an unchanged poll, and
/// plain http needs none. Those of an own CA are found by `SSL_CERT_FILE` and `SSL_CERT_DIR`.
pub(crate) fn new(with_tls: bool) -> Client {
    let roots = if with_tls { roots() } else { RootCertStore::empty() };
    let builder = Client::builder()
        .tls_backend_preconfigured(tls(roots))
        .user_agent(concat!("catalog-mirror/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A redirect is a failure (Standard Webhooks 1.0.0, "Deliverability and reliability").
        .redirect(Policy::none())
        .referer(false);
    builder.build().expect("only constant settings are used")
}

/// A configuration of its own rather than a process-wide provider, so that no other crate's choice matters.
fn tls(roots: RootCertStore) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.expect("ring supports the default versions of TLS");
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// Some that cannot be loaded are no reason to fail: the receiver's may be among the others.
fn roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(error = %error, "cannot load some of the system's CA certificates");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}
