//! TLS with rustls: the system's certificates and the operator's own.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use model::pem;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
#[cfg(fips)]
use rustls::crypto::aws_lc_rs as provider;
#[cfg(not(fips))]
use rustls::crypto::ring as provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError,
    RootCertStore, SignatureScheme,
};

use crate::settings::FetchSettingsError;

/// The operator's own certificates and the system's, which check those of servers.
#[derive(Debug)]
pub(crate) struct TrustedCertificates {
    own: CertificateStore,
    /// Own ones and the system's. Made when a server is not trusted by the own ones alone: loading
    /// the system's takes longer than an unchanged poll.
    all: LazyLock<CertificateStore, Box<dyn FnOnce() -> CertificateStore + Send>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Certificates of authorities, and of servers that present one of them themselves.
#[derive(Clone, Debug)]
struct CertificateStore {
    roots: RootCertStore,
    all: Vec<CertificateDer<'static>>,
}

impl TrustedCertificates {
    /// Reads the operator's own certificates.
    ///
    /// # Errors
    /// A file that cannot be read or has no certificate that can be used.
    pub(crate) fn read(ca_files: &[PathBuf]) -> Result<Arc<Self>, FetchSettingsError> {
        let own = CertificateStore::read(ca_files)?;
        let all = own.clone();
        Ok(Arc::new(Self {
            own,
            all: LazyLock::new(Box::new(move || all.with_system())),
            algorithms: provider::default_provider().signature_verification_algorithms,
        }))
    }

    /// Builds a configuration with a provider of its own. A process-wide provider would depend on
    /// which crate sets it first.
    pub(crate) fn config(self: Arc<Self>) -> Result<ClientConfig, FetchSettingsError> {
        let config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(self)
            .with_no_client_auth();
        Ok(config)
    }

    /// Returns all certificates in PEM.
    pub(crate) fn pem(&self) -> String {
        let all = self.all.all.iter();
        all.map(|certificate| pem::section("CERTIFICATE", certificate))
            .collect()
    }
}

impl CertificateStore {
    /// Reads certificates from files. One that cannot be used is logged and skipped, as other
    /// programs do.
    fn read(ca_files: &[PathBuf]) -> Result<Self, FetchSettingsError> {
        let mut read = Self {
            roots: RootCertStore::empty(),
            all: Vec::new(),
        };
        for path in ca_files {
            let bytes = fs::read(path).map_err(|source| FetchSettingsError::CaFile {
                path: path.to_owned(),
                source,
            })?;
            let before = read.all.len();
            for (text, number) in pem::certificates(&bytes).iter().zip(1_usize..) {
                let added = match CertificateDer::from_pem_slice(text.as_bytes()) {
                    Ok(certificate) => read.add(certificate).map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                };
                if let Err(error) = added {
                    tracing::warn!(file = %path.display(), number, error, "skipped a CA certificate that cannot be used");
                }
            }
            if read.all.len() == before {
                return Err(FetchSettingsError::NoCertificate(path.to_owned()));
            }
        }
        Ok(read)
    }

    /// Adds the system's certificates. One that cannot be loaded is logged and skipped: the server
    /// may be trusted by another one, and a private CA needs none of them.
    fn with_system(mut self) -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(error = %error, "cannot load a CA certificate of the system");
        }
        let mut added = 0;
        let mut ignored = 0;
        for certificate in found.certs {
            match self.add(certificate) {
                Ok(()) => added += 1,
                Err(_) => ignored += 1,
            }
        }
        tracing::debug!(added, ignored, "loaded the CA certificates of the system");
        self
    }

    fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), TlsError> {
        self.roots.add(certificate.clone())?;
        self.all.push(certificate);
        Ok(())
    }

    /// Checks that a server's certificate is one of these, or that one of these signed it, at a
    /// time when it is valid.
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<(), TlsError> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let verify_chain = |roots: &RootCertStore, intermediates: &[CertificateDer<'_>]| {
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms.all,
            )
        };
        if !self.all.contains(end_entity) {
            return verify_chain(&self.roots, intermediates);
        }
        // Without authorities its dates are checked and then found to lead nowhere.
        // `openssl req -x509` makes certificates that call themselves authorities, and a server
        // presents such a one as its own.
        match verify_chain(&RootCertStore::empty(), &[]) {
            Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => Ok(()),
            Err(TlsError::InvalidCertificate(CertificateError::Other(OtherError(other))))
                if matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
            {
                Ok(())
            }
            checked => checked,
        }
    }
}

impl ServerCertVerifier for TrustedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let check = |trusted: &CertificateStore| {
            trusted.check(end_entity, intermediates, now, self.algorithms)
        };
        if check(&self.own).is_err() {
            check(&self.all)?;
        }
        verify_server_name(&certificate, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use model::pem::BEGIN_CERTIFICATE;

    use super::*;

    #[tokio::test]
    async fn broken_certificate_is_skipped_and_logged_but_a_file_of_such_alone_is_refused() {
        let server = testkit::Registry::builder().tls().start().await;
        let good = server.ca_pem();
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |pem: &str| {
            fs::write(file.path(), pem).unwrap();
            CertificateStore::read(&[file.path().to_owned()])
        };
        let end = "-----END CERTIFICATE-----";
        for broken in [
            format!("{BEGIN_CERTIFICATE}\nAAAA\n{end}\n"),
            format!("{BEGIN_CERTIFICATE}\n***\n{end}\n"),
            format!("{BEGIN_CERTIFICATE}\n{end}\n"),
            good.replace(end, ""),
        ] {
            for pem in [format!("{broken}{good}"), format!("{good}{broken}")] {
                assert_eq!(read(&pem).unwrap().all.len(), 1, "{pem}");
            }
            let error = read(&broken).err().unwrap().to_string();
            assert!(
                error.contains("holds no usable certificate"),
                "{broken}: {error}"
            );
        }
        // In one test: another thread that logs the same line without a subscriber would turn it
        // off for both.
        let log = tempfile::NamedTempFile::new().unwrap();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(log.reopen().map(Arc::new).unwrap());
        let hollow = format!("{BEGIN_CERTIFICATE}\nAAAA\n{end}\n");
        let all = format!("{good}{hollow}{good}{hollow}");
        let logged = tracing::subscriber::with_default(lines.finish(), || read(&all));
        assert_eq!(logged.unwrap().all.len(), 2);
        let log = fs::read_to_string(log.path()).unwrap();
        for number in [2, 4] {
            let fields = format!("file={} number={number} ", file.path().display());
            assert!(log.contains(&fields), "{log}");
        }
        assert_eq!(log.matches("number=").count(), 2, "{log}");
    }
}
