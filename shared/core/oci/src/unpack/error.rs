//! Errors between the layers of an image and the files of its catalog.

use std::io;

use super::overlay::MAX_DEPTH;
use crate::{Digest, LimitExceeded, LinkError};

/// A failure between the layers of an image and its files.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A layer that is broken, hostile or of an unsupported format.
    #[error("layer {layer}")]
    Layer {
        /// Digest of the layer's stored, compressed bytes.
        layer: Digest,
        /// The underlying error, which the chain prints after this one.
        source: LayerError,
    },
    /// A link below the FBC root leads to no file.
    #[error("link {path}")]
    Link {
        /// Path of the link, relative to the FBC root.
        path: String,
        /// The underlying error, which the chain prints after this one.
        source: LinkError,
    },
    /// An image that exceeds one of its limits.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The sink refused a file. Holds the sink's own error.
    #[error(transparent)]
    Sink(io::Error),
    /// Another part of the same pull failed first. That part reports the cause.
    #[error("the pull was given up")]
    Abandoned,
}

/// The reason for which a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The compression is broken or ends early.
    #[error("cannot be unpacked")]
    Format(#[source] io::Error),
    /// The tar archive is broken, or readers could understand it in different ways.
    #[error("is no sound tar archive: {what} (entry {entry})")]
    Tar {
        /// Number of the entry, from 1.
        entry: u64,
        /// The problem with the archive, in words.
        what: &'static str,
    },
    /// A compression other than gzip and zstd, such as xz.
    #[error("is compressed with {0}, which is not supported: use gzip or zstd")]
    Compression(&'static str),
    /// A path below the root that is not UTF-8.
    #[error("holds a path that is not UTF-8: {0}")]
    NotUtf8(String),
    /// A path below the root with control characters, which no log could show.
    #[error("holds a path with control characters: {0}")]
    Unprintable(String),
    /// A path below the root with more than 64 folders.
    #[error("holds a path of more than {MAX_DEPTH} folders: {0}")]
    Deep(String),
    /// A sparse file below the root. There are many formats of sparse files.
    #[error("holds {0} as a sparse file, which is not supported: rebuild the image without")]
    Sparse(String),
    /// A device, FIFO or other special file below the root.
    #[error("holds {path}, which is neither file, directory nor link but {kind}")]
    Kind {
        /// Path of the entry below the FBC root.
        path: String,
        /// Type of the entry in words, such as "a fifo".
        kind: String,
    },
    /// Two entries of one layer contradict each other. The sink already has the first one.
    #[error("holds {0} twice: rebuild the image, each path once per layer")]
    Duplicate(String),
    /// A whiteout that hides no name, or `.` or `..`.
    #[error("holds the malformed whiteout {0}")]
    Whiteout(String),
    /// The content of a file ends early.
    #[error("cannot be read to the end of {path}")]
    Content {
        /// Path of the file below the FBC root.
        path: String,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
}
