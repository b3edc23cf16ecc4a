//! Errors in the documents of an image.

use std::path::PathBuf;

use crate::{Digest, DigestError, LimitExceeded};

/// The reason for which an image holds no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Not JSON, or JSON of the wrong shape.
    #[error("{what} {digest} cannot be parsed")]
    Json {
        /// `manifest`, `index`, `config` or `signature manifest`.
        what: &'static str,
        /// Digest of the document that has the problem.
        digest: String,
        /// The cause, with line and column.
        source: serde_json::Error,
    },
    /// A malformed digest in a manifest.
    #[error("manifest {manifest} names a malformed digest")]
    Digest {
        /// Digest of the manifest that has the problem.
        manifest: String,
        /// The underlying error, which the chain prints after this one.
        source: DigestError,
    },
    /// A document of another kind or version than an image manifest or an index, or one that
    /// describes a blob in an impossible way.
    #[error("manifest {digest} {problem}")]
    Manifest {
        /// Digest of the manifest or index that has the problem.
        digest: String,
        /// The problem in words. What it quotes is cleaned for logs.
        problem: String,
    },
    /// An index of several images without one for the platform.
    #[error("index {index} has no image for {wanted}; it has {found}")]
    Platform {
        /// Digest of the index that was searched.
        index: Digest,
        /// Configured platform that the index lacks, as `OS/ARCH`.
        wanted: String,
        /// The platforms in the index, separated by commas.
        found: String,
    },
    /// Indexes nested more than three levels deep.
    #[error("index {0} is nested too deeply")]
    Nested(Digest),
    /// No label with the FBC root.
    #[error(
        "the image has no label operators.operatorframework.io.index.configs.v1: it is not a file-based catalog"
    )]
    NoLabel,
    /// No label with a folder of a bundle. Holds the label and the kind of image.
    #[error("the image has no label {0}: it is {1}")]
    NotBundle(String, &'static str),
    /// Only the label of the old sqlite format.
    #[error(
        "the image is a sqlite catalog (label operators.operatorframework.io.index.database.v1), which is not supported: migrate it with `opm migrate`"
    )]
    Sqlite,
    /// A root that climbs out of the image. Holds the label and its value.
    #[error("the label {0} leads out of the image: `{1}`")]
    RootEscapes(String, String),
    /// No layer has an entry for the root.
    #[error("the image has no directory /{0}, which its label names")]
    NoRoot(String),
    /// A file or a link at the root.
    #[error("/{0}, which the label names, is not a directory")]
    RootNotDirectory(String),
    /// An image layout without the tag.
    #[error("the image layout has no image {wanted}; it has {found}")]
    NoTag {
        /// The requested tag, or words for its absence.
        wanted: String,
        /// The tags in the layout, separated by commas.
        found: String,
    },
    /// A folder that changed while it was read.
    #[error("{0} changed while it was read")]
    Changed(PathBuf),
    /// A document that exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl ImageError {
    pub(super) fn of_manifest(digest: &impl ToString, problem: String) -> Self {
        let digest = digest.to_string();
        Self::Manifest { digest, problem }
    }
}
