use std::{io, path::PathBuf};

use rustls::pki_types::pem;

/// Highest bcrypt cost that is accepted. 2^14 rounds take a second. With more, one request could
/// occupy a processor for minutes.
pub(crate) const COST_MAX: u32 = 14;

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
