use std::{io, path::PathBuf, sync::Arc};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

use crate::users::COST_MAX;

/// Parses a chain of certificates and its key, in this order, both PEM. HTTP/2 is offered before HTTP/1.1.
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
    // Its own provider instead of the one of the process, so that the choice of another crate does not matter.
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(FileError::KeyPair)?;
    // RFC 7301; RFC 9113, section 3.2.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// A certificate, key or user list that cannot be used. No message quotes the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is missing or its permissions forbid reading.
    #[error("cannot read {path}", path = .path.display())]
    Read {
        /// Path of the file that cannot be used.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// The certificate file is not PEM or is empty.
    #[error("the certificate file contains no chain of certificates in PEM")]
    Certificate(#[source] pem::Error),
    /// The key file is not PEM or is empty.
    #[error("the key file contains no private key in PEM")]
    Key(#[source] pem::Error),
    /// Certificate and key belong to different pairs, or are of an unsupported kind.
    #[error("the certificate and the key do not belong together")]
    KeyPair(#[source] rustls::Error),
    /// The user list is not text.
    #[error("the user list is not UTF-8")]
    UserEncoding,
    /// A line of the user list has an unknown form.
    #[error("line {0} of the user list is neither NAME:$2y$... (htpasswd -B) nor NAME:sha256:HEX")]
    UserLine(usize),
    /// A password that takes too long to verify.
    #[error("line {0} of the user list has a bcrypt hash of a cost above {COST_MAX}")]
    UserCost(usize),
    /// A user list without users, which would deny every request.
    #[error("the user list names no users")]
    NoUsers,
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
    fn tls_offers_both_http_versions() {
        let config = parse(&pair()).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
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
