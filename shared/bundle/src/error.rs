use fbc::FbcError;

/// Longest text of a problem, in characters.
const PROBLEM_CHARS: usize = 400;

/// The reason for which a bundle cannot be read. The caller names the bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file, by its path in the bundle, that is no YAML or JSON within the limits.
    #[error("{0}")]
    Malformed(String, #[source] FbcError),
    /// Content that Kubernetes or OLM refuses, or that this program cannot compare. Holds file, field and problem, cleaned for
    /// terminals.
    #[error("{0}")]
    Refused(String),
}

impl BundleError {
    /// Returns the error of a content that is refused.
    pub(crate) fn refused(problem: &str) -> Self {
        Self::Refused(model::text::line(problem, PROBLEM_CHARS))
    }
}
