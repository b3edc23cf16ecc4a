use std::sync::Arc;

use rustls::ServerConfig;
#[cfg(fips)]
use rustls::crypto::aws_lc_rs as provider;
#[cfg(not(fips))]
use rustls::crypto::ring as provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

use crate::error::FileError;

/// Parses a chain of certificates and its key, in this order, both PEM. HTTP/2 is offered before
/// HTTP/1.1.
pub(crate) fn parse(texts: &[Vec<u8>]) -> Result<ServerConfig, FileError> {
    let [chain, key] = texts else {
        unreachable!("a certificate and a key are two files");
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(FileError::Certificate)?;
    if chain.is_empty() {
        return Err(FileError::Certificate(pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(FileError::Key)?;
    // Its own provider instead of the one of the process, so that the choice of another crate does
    // not matter.
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(FileError::KeyPair)?;
    // RFC 7301; RFC 9113, section 3.2.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn pair() -> [Vec<u8>; 2] {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        [cert.pem().into(), signing_key.serialize_pem().into()]
    }

    #[test]
    fn tls_offers_both_http_versions() {
        let config = parse(&pair()).unwrap();
        assert_eq!(
            config.alpn_protocols,
            [b"h2".to_vec(), b"http/1.1".to_vec()]
        );
    }

    #[test]
    fn tls_error_tells_which_file_is_wrong() {
        let ([chain, key], [_, other]) = (pair(), pair());
        let error = |texts: [&[u8]; 2]| parse(&texts.map(<[u8]>::to_vec)).unwrap_err();
        assert!(matches!(error([b"", &key]), FileError::Certificate(_)));
        assert!(matches!(error([&key, &key]), FileError::Certificate(_)));
        assert!(matches!(error([&chain, b"no key"]), FileError::Key(_)));
        assert!(matches!(error([&chain, &other]), FileError::KeyPair(_)));
        let cut = &chain[..chain.len() / 2];
        assert!(matches!(error([cut, &key]), FileError::Certificate(_)));
    }
}
