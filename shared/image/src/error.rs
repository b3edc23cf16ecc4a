//! What can go wrong between a reference and its files.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::auth::CredentialsError;
use crate::digest::{Digest, DigestError};
use crate::overlay::LinkError;
use crate::registry::RegistryError;
use crate::settings::SettingsError;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Credentials are configured but cannot be had.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A registry refused, failed or cannot be reached.
    #[error(transparent)]
    Registry(#[from] Box<RegistryError>),
    /// The image is not one a catalog can be read from.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A layer cannot be read.
    #[error("layer {layer}")]
    Layer {
        /// Its digest.
        layer: Digest,
        /// What is wrong with it.
        source: LayerError,
    },
    /// A link under the FBC root that leads to no file.
    #[error("link {path}")]
    Link {
        /// Relative to the FBC root.
        path: String,
        /// Why it leads nowhere.
        source: LinkError,
    },
    /// A file on this machine cannot be read.
    #[error("cannot read {path}", path = .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Bytes are not what their digest promises.
    #[error("{what} has digest {actual}, expected {expected}")]
    Digest {
        /// Manifest, config or layer.
        what: &'static str,
        /// What was asked for.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// Bytes are not as many as the manifest declares.
    #[error("{what} {digest} has {actual} bytes, its manifest declares {declared}")]
    Size {
        /// Config or layer.
        what: &'static str,
        /// Which.
        digest: Digest,
        /// What the manifest says.
        declared: u64,
        /// What came, at least.
        actual: u64,
    },
    /// More of something than allowed.
    #[error("{0}")]
    Limit(Limit),
    /// A resolve or a pull as a whole took too long.
    #[error("it took longer than {} s in all", .0.as_secs())]
    Timeout(Duration),
    /// The sink refused a file: its own error, as it gave it.
    #[error(transparent)]
    Sink(io::Error),
    /// Another part of the same pull failed first, and says why.
    #[error("the pull was given up")]
    Abandoned,
    /// A blocking task ended in a panic.
    #[error("a reading thread failed")]
    Task(#[source] tokio::task::JoinError),
}

/// A bound that was exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Its name in `Limits`, written as in `catalogs.yaml`.
    pub name: &'static str,
    /// Its value.
    pub limit: u64,
    /// Where it was exceeded.
    pub place: String,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} exceeds the limit {} of {}", self.place, self.name, self.limit)
    }
}

/// A stream that is over its limit ends with it.
impl std::error::Error for Limit {}

/// Why an image holds no catalog that can be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Not JSON, or not of the right shape.
    #[error("{what} {digest} cannot be parsed")]
    Json {
        /// Manifest or config.
        what: &'static str,
        /// Which.
        digest: String,
        /// Where.
        source: serde_json::Error,
    },
    /// A digest in a manifest is malformed.
    #[error("manifest {manifest} names a malformed digest")]
    Digest {
        /// Which manifest.
        manifest: Digest,
        /// What is wrong.
        source: DigestError,
    },
    /// A size in a manifest is negative.
    #[error("manifest {0} declares a negative size")]
    NegativeSize(Digest),
    /// Docker schema 1.
    #[error(
        "manifest {0} is a Docker schema 1 manifest, which is not supported: push the image again with a current tool"
    )]
    Schema1(Digest),
    /// An artifact, such as a helm chart or a signature.
    #[error("manifest {digest} is not a container image but an artifact ({kind})")]
    Artifact {
        /// Which manifest.
        digest: Digest,
        /// Its type.
        kind: String,
    },
    /// A document that is an index and an image at once, or neither.
    #[error("manifest {0} is neither an image manifest nor an index")]
    Unknown(Digest),
    /// No entry of an index fits.
    #[error("index {index} has no image for {wanted}; it has {found}")]
    Platform {
        /// Which index.
        index: Digest,
        /// What was asked for.
        wanted: String,
        /// The platforms there are.
        found: String,
    },
    /// Indexes in indexes in indexes.
    #[error("index {0} is nested too deeply")]
    Nested(Digest),
    /// The label that names the FBC root is missing.
    #[error("the image has no label operators.operatorframework.io.index.configs.v1: it is not a file-based catalog")]
    NoLabel,
    /// Only the label of the old sqlite format is there.
    #[error(
        "the image is a sqlite catalog (label operators.operatorframework.io.index.database.v1), which is not supported: migrate it with `opm migrate`"
    )]
    Sqlite,
    /// The FBC root climbs out of the image.
    #[error("the label operators.operatorframework.io.index.configs.v1 leads out of the image: `{0}`")]
    RootEscapes(String),
    /// Nothing at the FBC root.
    #[error("the image has no directory /{0}, which its label names as the catalog")]
    NoRoot(String),
    /// A file or a link at the FBC root.
    #[error("/{0}, which the label names as the catalog, is not a directory")]
    RootNotDirectory(String),
    /// A layer of a type that holds no files.
    #[error("layer {layer} has the media type {media_type}, which is not supported")]
    LayerType {
        /// Which layer.
        layer: Digest,
        /// Its media type.
        media_type: String,
    },
    /// A layout with no such tag.
    #[error("the image layout has no image {wanted}; it has {found}")]
    NoTag {
        /// What was asked for.
        wanted: String,
        /// The tags there are.
        found: String,
    },
    /// A folder changed while it was read.
    #[error("{0} changed while it was read")]
    Changed(PathBuf),
}

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The compression is broken or ends early.
    #[error("cannot be unpacked")]
    Format(#[source] io::Error),
    /// The tar archive is broken, or readers could take it for different things.
    #[error("is no sound tar archive: {what} (entry {entry})")]
    Tar {
        /// The number of the entry, the first being 1.
        entry: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A compression that is not supported.
    #[error("is compressed with {0}, which is not supported: use gzip or zstd")]
    Compression(&'static str),
    /// A path under the root that is not UTF-8.
    #[error("holds a path that is not UTF-8: {0}")]
    NotUtf8(String),
    /// A path under the root that no log could show.
    #[error("holds a path with control characters: {0}")]
    Unprintable(String),
    /// A file with holes under the root, in one of the many ways to store one.
    #[error("holds {0} as a sparse file, which is not supported: rebuild the image without")]
    Sparse(String),
    /// A device, fifo or the like under the root.
    #[error("holds {path}, which is neither file, directory nor link but {kind}")]
    Kind {
        /// Which entry.
        path: String,
        /// Its tar type.
        kind: String,
    },
    /// Two entries of one layer contradict each other. Streaming cannot take back what was fed.
    #[error("holds {0} twice: rebuild the image, each path once per layer")]
    Duplicate(String),
    /// A whiteout that names nothing.
    #[error("holds the malformed whiteout {0}")]
    Whiteout(String),
    /// A file's content breaks off.
    #[error("cannot be read to the end of {path}")]
    Content {
        /// Which file.
        path: String,
        /// Why.
        source: io::Error,
    },
}
