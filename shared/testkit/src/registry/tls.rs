//! A TLS listener with a CA of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Fault of the registry's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateFault {
    /// The certificate is valid. The default.
    #[default]
    None,
    /// The certificate was valid until 2001.
    Expired,
    /// No CA has signed the certificate.
    SelfSigned,
    /// The certificate calls itself a CA and is to be trusted itself, as `openssl req -x509` makes
    /// it.
    OwnAuthority,
    /// As [`Self::OwnAuthority`], and valid until 2001.
    ExpiredAuthority,
}

pub(crate) struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

/// Wraps `tcp` and returns the certificate of the CA in PEM.
pub(crate) fn listener(
    tcp: TcpListener,
    names: &[String],
    fault: CertificateFault,
) -> (Tls, String) {
    let ca_key = KeyPair::generate().expect("a key can be made");
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).expect("a CA can sign itself").pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().expect("a key can be made");
    let mut params = CertificateParams::new(names).expect("the names are names");
    let is_authority = matches!(
        fault,
        CertificateFault::OwnAuthority | CertificateFault::ExpiredAuthority
    );
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    if matches!(
        fault,
        CertificateFault::Expired | CertificateFault::ExpiredAuthority
    ) {
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    }
    let signed = if is_authority || fault == CertificateFault::SelfSigned {
        params.self_signed(&key)
    } else {
        params.signed_by(&key, &issuer)
    };
    let certificate = signed.expect("a key can sign");
    let ca_pem = if is_authority {
        certificate.pem()
    } else {
        ca_pem
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a made key is a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the key fits the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    (Tls { tcp, acceptor }, ca_pem)
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.tcp.accept().await else {
                continue;
            };
            // A failed handshake ends that connection only.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
