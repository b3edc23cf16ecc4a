use fbc::FbcError;

/// Input that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A document that is malformed or exceeds a limit.
    #[error("cannot read the installed operators")]
    Document(#[from] FbcError),
    /// Anything else that is wrong with the input, and where.
    #[error("{0}")]
    Refused(String),
}
