//! Failures between a source and its files.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use fetch::{CredentialsError, FetchError, FetchSettingsError, HeaderFileError, SentSecrets};
use model::text::chain;
use oci::{Digest, DigestError, LayerError, LimitExceeded, LinkError, UnpackError};

use crate::registry::{RegistryFailure, RegistryFault};
use crate::tree::TreeFault;
use crate::web::WebFailure;

/// Error of resolving or reading a source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// CA files, a proxy or TLS settings that cannot be used.
    #[error(transparent)]
    Settings(#[from] FetchSettingsError),
    /// Credentials are configured and cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A file of header fields is configured and cannot be used.
    #[error(transparent)]
    HeaderFile(#[from] HeaderFileError),
    /// A registry refused, failed or cannot be reached.
    #[error(transparent)]
    Registry(#[from] Box<RegistryFailure>),
    /// A server of files refused, failed or cannot be reached.
    #[error(transparent)]
    Web(#[from] Box<WebFailure>),
    /// An archive or a git repository cannot be asked, or holds no catalog that can be read.
    #[error("{place}")]
    Tree {
        /// The archive or repository, without secrets.
        place: String,
        /// The underlying error, which the chain prints after this one.
        source: TreeFault,
    },
    /// The image holds no catalog that can be read.
    #[error(transparent)]
    Image(#[from] ImageError),
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
    /// A file on this machine cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    Io {
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// A file on this machine cannot be written.
    #[error("cannot write {path}", path = .path.display())]
    Write {
        /// Path of the file on this machine.
        path: PathBuf,
        /// The underlying error, which the chain prints after this one.
        source: io::Error,
    },
    /// Bytes do not have the digest that they were requested by.
    #[error("{what} has digest {actual}, expected {expected}")]
    Digest {
        /// Kind of the blob: `manifest`, `config`, `layer` or `signature`.
        what: &'static str,
        /// The digest by which the bytes were requested.
        expected: Digest,
        /// The digest of the bytes that were received.
        actual: Digest,
    },
    /// Bytes are more or fewer than the manifest declares.
    #[error("{what} {digest} has {actual} bytes, its manifest declares {declared}")]
    Size {
        /// Kind of the blob: `config`, `layer` or `signature`.
        what: &'static str,
        /// Digest of the blob, as its manifest declares it.
        digest: Digest,
        /// Number of bytes that the manifest declares.
        declared: u64,
        /// Received number of bytes, or the part of it that was read.
        actual: u64,
    },
    /// An image that exceeds one of its limits.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A resolve or a pull took longer than its limit.
    #[error("it took longer than {} s in all", .0.as_secs())]
    Timeout(Duration),
    /// The sink refused a file. Holds the sink's own error.
    #[error(transparent)]
    Sink(io::Error),
    /// The error would repeat a secret that was sent to the registry or server.
    #[error("the source cannot be read; the reason is withheld because it repeats a secret that was sent")]
    Withheld,
    /// Another part of the same pull failed first. That part reports the cause.
    #[error("the pull was given up")]
    Abandoned,
    /// A blocking task panicked or was cancelled.
    #[error("a reading thread failed")]
    Task(#[source] tokio::task::JoinError),
}

impl From<UnpackError> for Error {
    fn from(error: UnpackError) -> Self {
        match error {
            UnpackError::Layer { layer, source } => Self::Layer { layer, source },
            UnpackError::Link { path, source } => Self::Link { path, source },
            UnpackError::Limit(limit) => Self::Limit(limit),
            UnpackError::Sink(error) => Self::Sink(error),
            UnpackError::Abandoned => Self::Abandoned,
        }
    }
}

impl Error {
    /// Returns true if the registry took longer than [`SourceSettings::registry_wait`](crate::SourceSettings::registry_wait).
    pub fn is_slow_registry(&self) -> bool {
        match self {
            Self::Registry(failure) => {
                matches!(failure.fault, RegistryFault::Fetch(FetchError::WaitedTooLong(_)))
            }
            _ => false,
        }
    }

    /// Replaces an error that repeats one of `secrets`. A server can put the password that it was sent into any text of
    /// an image or archive: media types, platforms, labels, paths. [`RegistryFailure`] and [`WebFailure`] are clean already.
    pub(crate) fn without(self, secrets: &SentSecrets) -> Self {
        match self {
            Self::Image(_) | Self::Tree { .. } | Self::Layer { .. } | Self::Link { .. } | Self::Limit(_)
                if secrets.are_in(&chain(&self)) =>
            {
                Self::Withheld
            }
            other => other,
        }
    }
}

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
    /// A negative size in a manifest.
    #[error("manifest {0} declares a negative size")]
    NegativeSize(Digest),
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
    /// An index that describes the chosen manifest in an impossible way.
    #[error("index {index} names the manifest {digest} with {problem}")]
    Descriptor {
        /// Digest of the index that has the problem.
        index: Digest,
        /// Digest of the manifest that it names.
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
    /// Only the label of the old sqlite format.
    #[error(
        "the image is a sqlite catalog (label operators.operatorframework.io.index.database.v1), which is not supported: migrate it with `opm migrate`"
    )]
    Sqlite,
    /// An FBC root that climbs out of the image.
    #[error("the label operators.operatorframework.io.index.configs.v1 leads out of the image: `{0}`")]
    RootEscapes(String),
    /// No layer has an entry for the FBC root.
    #[error("the image has no directory /{0}, which its label names as the catalog")]
    NoRoot(String),
    /// A file or a link at the FBC root.
    #[error("/{0}, which the label names as the catalog, is not a directory")]
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
}
