//! The token by which this process authenticates itself at the API server, and at the replica that leads.

use std::{fs, path::PathBuf, sync::Arc};

use anyhow::Context;

/// Token of this process. It never prints.
#[derive(Clone)]
pub(crate) enum OwnToken {
    /// A file that the kubelet renews.
    File(PathBuf),
    /// The token of a kubeconfig.
    Text(Arc<str>),
    /// A kubeconfig with another way to authenticate.
    Absent,
}

impl OwnToken {
    /// Returns the token that the client of the API server uses.
    pub(crate) fn of(config: &kube::Config) -> Self {
        use secrecy::ExposeSecret;

        let auth = &config.auth_info;
        match (&auth.token, &auth.token_file) {
            (Some(token), _) => Self::Text(token.expose_secret().into()),
            (None, Some(file)) => Self::File(file.into()),
            (None, None) => Self::Absent,
        }
    }

    /// Reads the token.
    ///
    /// # Errors
    /// If there is none, or its file cannot be read.
    pub(crate) fn read(&self) -> anyhow::Result<String> {
        match self {
            Self::File(path) => {
                let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok(text.trim().to_owned())
            }
            Self::Text(token) => Ok(token.to_string()),
            Self::Absent => anyhow::bail!("replicas authenticate themselves by a token, and there is none"),
        }
    }
}
