//! TLS with rustls and ring: the system's roots and the operator's own.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::settings::FetchSettingsError;

/// Builds a configuration with a provider of its own. A process-wide provider would depend on which crate sets it first.
pub(crate) fn config(roots: RootCertStore) -> Result<ClientConfig, FetchSettingsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Reads the operator's own CA certificates.
pub(crate) fn roots(ca_files: &[PathBuf]) -> Result<RootCertStore, FetchSettingsError> {
    let mut roots = RootCertStore::empty();
    for path in ca_files {
        add_bundle(&mut roots, path)?;
    }
    Ok(roots)
}

/// Adds the system's CA certificates. A certificate that cannot be loaded is logged and skipped: the server may be
/// trusted by another one, and a private CA needs none of them.
pub(crate) fn with_system_roots(mut roots: RootCertStore) -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(error = %error, "cannot load a CA certificate of the system");
    }
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, "loaded the CA certificates of the system");
    roots
}

/// Returns the operator's own and the system's CA certificates as one bundle.
pub(crate) fn bundle(ca_files: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut bundle = Vec::new();
    for path in ca_files {
        bundle.extend(fs::read(path)?);
        bundle.push(b'\n');
    }
    for certificate in rustls_native_certs::load_native_certs().certs {
        bundle.extend_from_slice(b"\n-----BEGIN CERTIFICATE-----\n");
        // Lines of the length that RFC 7468 asks for.
        for line in STANDARD.encode(&certificate).as_bytes().chunks(64) {
            bundle.extend_from_slice(line);
            bundle.push(b'\n');
        }
        bundle.extend_from_slice(b"-----END CERTIFICATE-----\n");
    }
    Ok(bundle)
}

fn add_bundle(roots: &mut RootCertStore, path: &PathBuf) -> Result<(), FetchSettingsError> {
    let broken = |source| FetchSettingsError::CaFile {
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
        Err(FetchSettingsError::NoCertificate(path.clone()))
    }
}
