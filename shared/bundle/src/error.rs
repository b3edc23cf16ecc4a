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
    /// A field with a value that Kubernetes refuses, or that this program cannot compare.
    #[error("{file}: {field} {problem}")]
    Field {
        /// Path in the bundle.
        file: String,
        /// Path in the document, cleaned for terminals.
        field: String,
        /// Sentence that follows the field, cleaned for terminals.
        problem: String,
    },
    /// More bytes than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) or [`BUNDLE_BYTES_MAX`](crate::BUNDLE_BYTES_MAX).
    #[error("{place} exceeds the limit of {limit} bytes")]
    Size {
        /// A file, or the files of the bundle.
        place: String,
        /// Largest number of bytes.
        limit: usize,
    },
    /// Files without a ClusterServiceVersion.
    #[error("it has no ClusterServiceVersion")]
    NoOperator,
    /// Two files with a ClusterServiceVersion, which OLM refuses.
    #[error("{0} and {1} are both a ClusterServiceVersion: a bundle has one")]
    TwoOperators(String, String),
    /// Two CustomResourceDefinitions of one name.
    #[error("{0} and {1} define the same CustomResourceDefinition")]
    TwoDefinitions(String, String),
    /// A line of a catalog that is not a bundle that OLM reads.
    #[error("the line of the bundle cannot be read")]
    Line(#[source] serde_json::Error),
}

/// Longest field or problem in an error, in characters.
const TEXT_CHARS: usize = 300;

impl BundleError {
    pub(crate) fn field(file: &str, field: &str, problem: &str) -> Self {
        Self::Field {
            file: file.to_owned(),
            field: model::text::line(field, TEXT_CHARS),
            problem: model::text::line(problem, TEXT_CHARS),
        }
    }
}
