use std::{io, path::PathBuf};

/// Error of copying images, and of naming manifests.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// What was asked for cannot be done. Holds the reason for people; no caller handles one reason in another way.
    #[error("{0}")]
    Refused(String),
    /// The program skopeo cannot be started.
    #[error("cannot run skopeo")]
    Run(#[source] io::Error),
    /// A file or folder cannot be read or written.
    #[error("cannot use {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// A registry failed.
    #[error(transparent)]
    Source(#[from] source::Error),
}

impl CarryError {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// Returns the error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |error| Self::File(path, error)
    }
}
