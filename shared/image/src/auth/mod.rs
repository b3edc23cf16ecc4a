//! Credentials, from where podman, skopeo and docker keep them.

mod document;
mod helper;
mod logins;
mod places;

use std::fmt;
use std::path::PathBuf;

use crate::auth::document::{AuthDocument, Found};
pub use crate::auth::logins::Logins;

/// Credentials for one repository and where they came from.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) secret: Secret,
    /// For error messages: a file, or a helper named in it.
    pub(crate) origin: String,
}

/// What a registry or its token service is given.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Password { user: String, password: String },
    IdentityToken(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(<redacted>)",
            Self::IdentityToken(_) => "IdentityToken(<redacted>)",
        })
    }
}

/// Credentials are configured but cannot be had. None of these prints what a file or a helper said,
/// because that may be the secret itself.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read the credentials file {path}", path = .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The document is not what `podman login` writes.
    #[error("the credentials in {origin} are not valid: {why}")]
    Format {
        /// The file, or what the document in memory is called.
        origin: String,
        /// What is wrong, without quoting it.
        why: String,
    },
    /// A helper cannot be run.
    #[error("cannot run the credential helper {helper}")]
    Run {
        /// Its program name.
        helper: String,
        /// Why.
        source: std::io::Error,
    },
    /// A helper failed.
    #[error("the credential helper {helper} failed: {why}")]
    Helper {
        /// Its program name.
        helper: String,
        /// How.
        why: String,
    },
}

/// The credentials for a repository: from the documents in memory, then from `files`, which must all be readable; from
/// the usual places only if there are neither.
pub(crate) async fn find(
    held: &Logins,
    files: &[PathBuf],
    registry: &str,
    repository: &str,
) -> Result<Option<Login>, CredentialsError> {
    let held = held.documents();
    for document in held.iter() {
        if let Some(login) = ask(document, registry, repository).await? {
            return Ok(Some(login));
        }
    }
    if files.is_empty() && !held.is_empty() {
        return Ok(None);
    }
    for place in places::places(files, |name| std::env::var_os(name)) {
        let Some(document) = AuthDocument::open(&place)? else {
            continue;
        };
        if let Some(login) = ask(&document, registry, repository).await? {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

async fn ask(document: &AuthDocument, registry: &str, repository: &str) -> Result<Option<Login>, CredentialsError> {
    let origin = document.origin();
    Ok(match document.find(registry, repository)? {
        Some(Found::Secret(secret)) => Some(Login {
            secret,
            origin: origin.to_owned(),
        }),
        Some(Found::Helper { helper, server }) => helper::get(&helper, &server).await?.map(|secret| Login {
            secret,
            origin: format!("{helper} (named in {origin})"),
        }),
        None => None,
    })
}
