use fbc::FbcError;

/// Input that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A document that is malformed or exceeds a limit.
    #[error("cannot read the installed operators")]
    Document(#[from] FbcError),
    /// A line of a list with another number of words.
    #[error("line {0} is not `package version [channel]`")]
    Line(usize),
    /// Object of OLM with another type for a text.
    #[error("{kind} {name}: {field} is no text")]
    Field {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// Path of the field, with dots.
        field: String,
    },
    /// Input without an operator.
    #[error("it has no Subscription, no ClusterServiceVersion and no ClusterExtension, and lists no packages")]
    Empty,
    /// Text that is not a minor version.
    #[error("{0:?} is not a version of OpenShift such as 4.21")]
    OpenShift(String),
    /// Text that is neither a version nor a bundle of the package.
    #[error("package {package} has no version and no bundle {text:?}{similar}")]
    UnknownVersion {
        /// Name of the package.
        package: String,
        /// Text as it was asked.
        text: String,
        /// Suggestion of another one, or empty.
        similar: String,
    },
}
