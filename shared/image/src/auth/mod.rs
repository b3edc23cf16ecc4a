//! Credentials, from where podman, skopeo and docker keep them.

mod file;
mod helper;
mod places;

use std::fmt;
use std::path::PathBuf;

use crate::auth::file::{AuthFile, Found};

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
    /// The file is not what `podman login` writes.
    #[error("the credentials file {path} is not valid: {why}", path = .path.display())]
    Format {
        /// Which.
        path: PathBuf,
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

/// The credentials for a repository: from `files`, which must all be readable, or from the usual places.
pub(crate) async fn find(
    files: &[PathBuf],
    registry: &str,
    repository: &str,
) -> Result<Option<Login>, CredentialsError> {
    for place in places::places(files, |name| std::env::var_os(name)) {
        let Some(file) = AuthFile::open(&place)? else { continue };
        let path = place.path.display();
        match file.find(registry, repository)? {
            Some(Found::Secret(secret)) => {
                return Ok(Some(Login {
                    secret,
                    origin: path.to_string(),
                }));
            }
            Some(Found::Helper { helper, server }) => {
                if let Some(secret) = helper::get(&helper, &server).await? {
                    return Ok(Some(Login {
                        secret,
                        origin: format!("{helper} (named in {path})"),
                    }));
                }
            }
            None => {}
        }
    }
    Ok(None)
}
