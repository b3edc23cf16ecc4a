//! Credentials, from the files and helpers of podman, skopeo and docker.

mod document;
mod helper;
mod paths;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::auth::document::AuthDocument;

/// User in whose place a token is sent, as docker does it.
const TOKEN_USER: &str = "<token>";

/// Credentials for one repository and their origin.
// Without `Debug`, so that nothing prints them.
#[derive(Clone)]
pub struct Login {
    /// Name of the user, for basic authentication.
    pub user: String,
    /// Password of the user, or a token that stands for a login.
    pub password: String,
    /// Origin for error messages: a file, or a helper named in it.
    pub origin: String,
}

impl Login {
    /// Returns the token that stands for a login, if there is one in place of a password.
    pub fn identity_token(&self) -> Option<&str> {
        (self.user == TOKEN_USER).then_some(&self.password)
    }
}

/// A failure to read configured credentials. No message quotes a file or a helper, because that may be the secret.
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

/// Finds the credentials for a repository: in the documents in memory, then in `files`, which must all be readable. The
/// default files are read only if there are neither.
///
/// # Errors
/// Configured credentials that cannot be read.
pub async fn find_login(
    held: &Logins,
    files: &[PathBuf],
    registry: &str,
    repository: &str,
) -> Result<Option<Login>, CredentialsError> {
    let held = held.documents();
    for document in held.iter() {
        if let Some(login) = document.find(registry, repository).await? {
            return Ok(Some(login));
        }
    }
    if files.is_empty() && !held.is_empty() {
        return Ok(None);
    }
    let files = paths::credential_files(files, |name| std::env::var_os(name));
    for path in files.paths {
        if let Some(document) = AuthDocument::open(path, files.are_required)?
            && let Some(login) = document.find(registry, repository).await?
        {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

type AuthDocuments = Arc<[AuthDocument]>;

/// Documents in the format of `podman login`, in memory, for machines that get them from a vault. Clones share the
/// documents, and a change takes effect with the next pull.
#[derive(Clone, Debug, Default)]
pub struct Logins(Arc<RwLock<AuthDocuments>>);

impl Logins {
    /// Replaces all documents. Each has a name for errors.
    ///
    /// # Errors
    /// The first malformed document, without a quote. The former documents then stay.
    pub fn set<'a>(&self, documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), CredentialsError> {
        let parse = |(name, text): (&str, &str)| AuthDocument::parse(name.to_owned(), text.as_bytes());
        let documents = documents.into_iter().map(parse).collect::<Result<_, _>>()?;
        *self.0.write() = documents;
        Ok(())
    }

    pub(crate) fn documents(&self) -> AuthDocuments {
        Arc::clone(&self.0.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_with_broken_document_keeps_former_ones_and_prints_no_secret() {
        let logins = Logins::default();
        let good = r#"{"auths": {"quay.io": {"username": "u", "password": "hunter2"}}}"#;
        logins.set([("vault", good)]).unwrap();
        let shown = format!("{logins:?}");
        assert!(shown.contains("vault") && !shown.contains("hunter2"), "{shown}");
        let broken = ("other", r#"{"auths": "hunter2"}"#);
        let error = logins.set([("vault", good), broken]).unwrap_err().to_string();
        assert!(error.contains("other") && !error.contains("hunter2"), "{error}");
        assert_eq!(logins.documents().len(), 1);
    }
}
