use fbc::FbcError;

/// The reason for which a bundle cannot be read. The caller names the bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file that is no YAML or JSON within the limits.
    #[error("{file}")]
    Malformed {
        /// Path in the bundle.
        file: String,
        /// The underlying error, which the chain prints after this one.
        source: FbcError,
    },
    /// A field that Kubernetes refuses, or that this program cannot compare. Holds file, field and problem, cleaned for terminals.
    #[error("{0}")]
    Field(String),
    /// A file or a folder with more bytes than its limit.
    #[error("{0} exceeds the limit of {1} bytes")]
    Size(String, usize),
    /// No file with a ClusterServiceVersion.
    #[error("it has no ClusterServiceVersion")]
    NoOperator,
    /// Two files with an object of which a bundle has one.
    #[error("{0} and {1} are both the {2}: a bundle has one")]
    Twice(String, String, String),
    /// A line of a catalog that is no bundle.
    #[error("the line of the bundle cannot be read")]
    Line(#[source] serde_json::Error),
}
