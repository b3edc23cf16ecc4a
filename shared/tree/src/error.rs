use std::{error::Error, io, path::PathBuf};

use http::StatusCode;
use reader::ReaderError;

/// The reason for which a tree is not brought up to date. It still serves the state before, or that of the run.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store cannot be read.
    #[error("cannot read the mirror")]
    Reader(#[from] ReaderError),
    /// The router answers a name with an error.
    #[error("{path} is answered with {status}")]
    Answer {
        /// Path of the request.
        path: String,
        /// Status of the answer.
        status: StatusCode,
    },
    /// A file cannot be read or written.
    #[error("cannot write {path}")]
    File {
        /// Path in the tree.
        path: String,
        /// Error of the file system, or of the body that was to be written.
        source: io::Error,
    },
    /// An object of the bucket cannot be read or written.
    #[error("cannot write {path} into the bucket")]
    Bucket {
        /// Path in the tree.
        path: String,
        /// Error of the server.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The target has something and no `static.json`.
    #[error("{0} holds files that are no static tree: name an empty or a new place")]
    Foreign(String),
    /// The target is the store, lies in it, or holds it.
    #[error("{0} is the store, lies in it, or holds it: name another place")]
    Store(String),
    /// The list of files is damaged, or of a newer program.
    #[error("static.json cannot be used: delete the tree and write it anew")]
    Index(#[source] serde_json::Error),
    /// Another program writes the tree.
    #[error("another run writes {0}")]
    Busy(PathBuf),
}

impl TreeError {
    pub(crate) fn file(path: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
