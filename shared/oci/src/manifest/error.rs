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
        manifest: Digest,
        /// The underlying error, which the chain prints after this one.
        source: DigestError,
    },
    /// A manifest of Docker schema 1.
    #[error(
        "manifest {0} is a Docker schema 1 manifest, which is not supported: push the image again with a current tool"
    )]
    Schema1(Digest),
    /// A manifest of a version that is not known.
    #[error("manifest {digest} has the schema version {version}, which is not supported: only 2 is")]
    SchemaVersion {
        /// Digest of the manifest that has the problem.
        digest: Digest,
        /// Version that the manifest states.
        version: u64,
    },
    /// A document that readers could take for an index or for an image manifest.
    #[error("manifest {0} is an image manifest and an index at once: readers could disagree about its content")]
    Ambiguous(Digest),
    /// A manifest or index that describes a blob, or the chosen manifest, in an impossible way.
    #[error("manifest {holder} names {digest} with {problem}")]
    Descriptor {
        /// Digest of the manifest or index that has the problem.
        holder: Digest,
        /// Digest that it names.
        digest: Digest,
        /// The wrong field with its value, cleaned for logs.
        problem: String,
    },
    /// An artifact, such as a helm chart or a signature.
    #[error("manifest {digest} is not a container image but an artifact ({kind})")]
    Artifact {
        /// Digest of the manifest that has the problem.
        digest: Digest,
        /// Artifact type or config media type, cleaned for logs.
        kind: String,
    },
    /// A document that is neither an index nor an image manifest.
    #[error("manifest {0} is neither an image manifest nor an index")]
    Unknown(Digest),
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
    #[error("the image has no label operators.operatorframework.io.index.configs.v1: it is not a file-based catalog")]
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
    /// A layer of a type that holds no files.
    #[error("layer {layer} has the media type {media_type}, which is not supported")]
    LayerType {
        /// Digest of the layer's stored, compressed bytes.
        layer: Digest,
        /// Media type of the layer, cleaned for logs.
        media_type: String,
    },
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
