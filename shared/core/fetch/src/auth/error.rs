use std::path::PathBuf;

/// A failure to read configured credentials. No message quotes a file or a helper, because that may
/// be the secret.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A credential file that cannot be read.
    #[error("cannot read the credentials file {path}", path = .path.display())]
    Read {
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: std::io::Error,
    },
    /// A document of another format than `podman login` writes.
    #[error("the credentials in {origin} are not valid: {why}")]
    Format {
        /// The file, or the name of a document in memory.
        origin: String,
        /// The position of the problem, without a quote.
        why: String,
    },
    /// A credential helper that cannot be started.
    #[error("cannot run the credential helper {helper}")]
    Run {
        /// Name of the program, `docker-credential-` and its short name.
        helper: String,
        /// The underlying error, which the chain prints after this one.
        source: std::io::Error,
    },
    /// A credential helper that failed, timed out or answered nonsense.
    #[error("the credential helper {helper} failed: {why}")]
    Helper {
        /// Name of the program, `docker-credential-` and its short name.
        helper: String,
        /// The cause in words, without any output of the helper.
        why: String,
    },
}
