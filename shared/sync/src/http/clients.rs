//! The HTTP clients: rustls with ring, and TLS only once it is needed.

use std::{path::PathBuf, sync::Arc, sync::OnceLock};

use reqwest::{Client, Url, redirect::Policy};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::HttpSettings;

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A CA bundle that cannot be read.
    #[error("cannot read the CA bundle {path}", path = .path.display())]
    CaFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A CA bundle without a certificate.
    #[error("the CA bundle {path} holds no usable certificate", path = .0.display())]
    NoCertificate(PathBuf),
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The HTTP client could not be built.
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

/// Loading the system's CA certificates takes longer than a sync that finds nothing new, and plain http needs none.
pub(super) struct Clients {
    settings: HttpSettings,
    own_roots: RootCertStore,
    plain: Client,
    tls: OnceLock<Client>,
}

impl Clients {
    /// Finds every mistake in the settings, so that nothing is left to go wrong later.
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, ClientError> {
        let mut own_roots = RootCertStore::empty();
        for path in &settings.ca_files {
            add(&mut own_roots, path)?;
        }
        Ok(Self {
            plain: client(settings, RootCertStore::empty())?,
            settings: settings.clone(),
            own_roots,
            tls: OnceLock::new(),
        })
    }

    /// The client for a URL.
    pub(super) fn to(&self, url: &Url) -> &Client {
        if url.scheme() == "http" {
            &self.plain
        } else {
            self.tls.get_or_init(|| {
                let roots = with_system_roots(self.own_roots.clone());
                client(&self.settings, roots).expect("the same settings have made a client before")
            })
        }
    }
}

/// A configuration of its own rather than a process-wide provider, so that no other crate's choice matters.
fn client(settings: &HttpSettings, roots: RootCertStore) -> Result<Client, ClientError> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("catalog-mirror/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.read_timeout)
        // Redirects are followed here, hop by hop, to judge where they lead and what they may carry.
        .redirect(Policy::none())
        .referer(false)
        .build()
        .map_err(ClientError::Client)
}

/// A machine without roots is no reason to fail: an own CA needs none.
fn with_system_roots(mut roots: RootCertStore) -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(error = %error, "cannot load some of the system's CA certificates");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

fn add(roots: &mut RootCertStore, path: &PathBuf) -> Result<(), ClientError> {
    let broken = |source| ClientError::CaFile {
        path: path.clone(),
        source,
    };
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path).map_err(broken)? {
        roots.add(certificate.map_err(broken)?)?;
    }
    if roots.len() > before {
        Ok(())
    } else {
        Err(ClientError::NoCertificate(path.clone()))
    }
}
