use std::{env, path::PathBuf};

use aws_smithy_http_client::tls::{TlsContext, TrustStore};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject as _},
    },
};

use crate::s3::{OpenError, S3Settings};

/// Variable from which other AWS tools take CA certificates. The SDK for Rust does not read it.
const BUNDLE: &str = "AWS_CA_BUNDLE";

/// Returns the CA certificates of the system and those of the operator.
pub(crate) fn tls_context(settings: &S3Settings) -> Result<TlsContext, OpenError> {
    let bundle = env::var_os(BUNDLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut trusted = TrustStore::default();
    for path in settings.ca_files.iter().chain(&bundle) {
        trusted.add_pem_certificate(certificates(path)?);
    }
    let context = TlsContext::builder().with_trust_store(trusted).build();
    Ok(context.expect("a trust store is all it takes"))
}

/// Reads the certificates of a file and tries each of them. The SDK would panic at a bad one, at the first request only.
fn certificates(path: &PathBuf) -> Result<Vec<u8>, OpenError> {
    let broken = |source| OpenError::CaFile {
        path: path.clone(),
        source,
    };
    let bytes = std::fs::read(path).map_err(|error| broken(pem::Error::Io(error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let added = roots.add(certificate.map_err(broken)?);
        added.map_err(|source| OpenError::Certificate {
            path: path.clone(),
            source,
        })?;
    }
    if roots.is_empty() {
        Err(OpenError::NoCertificate(path.clone()))
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(content: &[u8]) -> Result<Vec<u8>, OpenError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, content).unwrap();
        certificates(&path)
    }

    #[test]
    fn certificates_of_a_bad_file_fail() {
        assert!(matches!(
            certificates(&"/nonexistent".into()),
            Err(OpenError::CaFile { .. })
        ));
        assert!(matches!(checked(b"no certificate\n"), Err(OpenError::NoCertificate(_))));
        let cut = b"-----BEGIN CERTIFICATE-----\nAAAA\n";
        assert!(matches!(checked(cut), Err(OpenError::CaFile { .. })));
        let hollow = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(checked(hollow), Err(OpenError::Certificate { .. })));
    }
}
