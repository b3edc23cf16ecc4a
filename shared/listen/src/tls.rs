use std::sync::Arc;

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
};

use crate::reread::FileError;

/// A certificate and a key that cannot be used together.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate file is not PEM, or holds none.
    #[error("the certificate file holds no chain of certificates in PEM")]
    Certificate(#[source] pem::Error),
    /// The key file is not PEM, or holds none.
    #[error("the key file holds no private key in PEM")]
    Key(#[source] pem::Error),
    /// They do not belong together, or are of a kind that is not spoken here.
    #[error("the certificate and the key do not fit")]
    Pair(#[source] rustls::Error),
}

/// Reads a chain and its key. HTTP/2 is offered first (RFC 7301; RFC 9113, section 3.2).
pub(crate) fn parse(texts: &[Vec<u8>]) -> Result<Arc<ServerConfig>, FileError> {
    let [chain, key] = texts else {
        unreachable!("a certificate and a key are two files");
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.and_then(|chain| match chain.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(chain),
    });
    let chain = chain.map_err(TlsError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
    // A provider of its own rather than a process-wide one, so that no other crate's choice matters.
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn pair() -> [Vec<u8>; 2] {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        [cert.pem().into(), signing_key.serialize_pem().into()]
    }

    #[test]
    fn a_pair_speaks_both_versions() {
        let config = parse(&pair()).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }

    #[test]
    fn everything_else_is_told_apart() {
        let ([chain, key], [_, other]) = (pair(), pair());
        let fault = |texts: [&[u8]; 2]| match parse(&texts.map(<[u8]>::to_vec)) {
            Err(FileError::Tls(error)) => error,
            other => panic!("{:?}", other.is_ok()),
        };
        assert!(matches!(fault([b"", &key]), TlsError::Certificate(_)));
        assert!(matches!(fault([&key, &key]), TlsError::Certificate(_)));
        assert!(matches!(fault([&chain, b"no key"]), TlsError::Key(_)));
        assert!(matches!(fault([&chain, &other]), TlsError::Pair(_)));
        let cut = &chain[..chain.len() / 2];
        assert!(matches!(fault([cut, &key]), TlsError::Certificate(_)));
    }
}
