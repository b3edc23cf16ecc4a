use std::{io, path::PathBuf};

use reader::ReaderError;

/// The reason for which a tree is not brought up to date. It still serves the state before, or that of the run.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store cannot be read.
    #[error("cannot read the mirror")]
    Reader(#[from] ReaderError),
    /// A file or an object of a bucket cannot be read or written.
    #[error("cannot write {path}")]
    Write {
        /// Path in the tree.
        path: String,
        /// Error of the place, or of what was to be written.
        source: io::Error,
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
    pub(crate) fn at(path: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}
