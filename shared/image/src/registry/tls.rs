//! TLS: rustls with ring, the system's roots and the operator's own.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::settings::SettingsError;

/// A configuration of its own rather than a process-wide provider, so that no other crate's choice matters.
pub(crate) fn config(roots: RootCertStore) -> Result<ClientConfig, SettingsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The operator's own CA certificates.
pub(crate) fn roots(ca_files: &[PathBuf]) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    for path in ca_files {
        add(&mut roots, path)?;
    }
    Ok(roots)
}

/// A machine without roots is no reason to fail: an own CA needs none.
pub(crate) fn with_system_roots(mut roots: RootCertStore) -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(error = %error, "cannot load some of the system's CA certificates");
    }
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, "system CA certificates loaded");
    roots
}

fn add(roots: &mut RootCertStore, path: &PathBuf) -> Result<(), SettingsError> {
    let broken = |source| SettingsError::CaFile {
        path: path.clone(),
        source,
    };
    let mut found = false;
    for certificate in CertificateDer::pem_file_iter(path).map_err(broken)? {
        roots.add(certificate.map_err(broken)?)?;
        found = true;
    }
    if found {
        Ok(())
    } else {
        Err(SettingsError::NoCertificate(path.clone()))
    }
}
