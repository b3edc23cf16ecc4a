/// Error of a Package that cannot be recorded, of a graph that cannot be read, or of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A line does not fit its schema.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line in the Shard, from 1.
        line: u64,
        /// Fault of the line.
        reason: String,
    },
    /// The graph is not what this program writes.
    #[error("the graph is damaged: {0}")]
    Damaged(&'static str),
    /// Another version of the program wrote the graph.
    #[error("the graph has version {found}, and this program reads {expected}: publish the catalog again with `poll --force`, or copy it again with `sync`", expected = crate::GRAPH_VERSION)]
    Version {
        /// Version in the graph.
        found: u64,
    },
    /// The graph is larger than the limit.
    #[error("the graph has {bytes} bytes, and the limit is {limit}")]
    TooLarge {
        /// Size of the graph in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The catalog has no answer. The text is that of opm, which sends it with the code `Unknown`.
    #[error("{0}")]
    NotFound(String),
    /// The request is not valid. The text is that of opm.
    #[error("{0}")]
    InvalidArgument(String),
    /// A line that the record names cannot be turned into the answer.
    #[error("bundle {bundle:?}: {reason}")]
    Bundle {
        /// Name of the bundle, or the schema of another Meta.
        bundle: String,
        /// Fault of its line.
        reason: String,
    },
    /// The manifests of a package do not fit into the memory for them.
    #[error(
        "the manifests of package {package:?} take more than {limit} bytes compressed, which is the limit of this API"
    )]
    ContentsTooLarge {
        /// Name of the package.
        package: String,
        /// Maximum memory in bytes.
        limit: usize,
    },
    /// The compressor has no memory.
    #[error("there is not enough memory at the moment; try again later")]
    Memory,
}

impl From<prost::DecodeError> for RegistryError {
    fn from(_: prost::DecodeError) -> Self {
        Self::Damaged("a record is not a message")
    }
}
