use fbc::FbcError;

use crate::Exceeded;

/// Longest place in an error, in characters.
const PLACE_CHARS: usize = 400;

/// Input that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A document that is malformed or exceeds a limit.
    #[error("cannot read the installed operators")]
    Document(#[from] FbcError),
    /// An answer that takes too much work or is too large, and its place.
    #[error("{place}")]
    Exceeded {
        /// Package and channel, cleaned for terminals.
        place: String,
        /// Bound that is exceeded.
        #[source]
        bound: Exceeded,
    },
    /// Anything else that is wrong with the input, and where.
    #[error("{0}")]
    Refused(String),
}

impl PlanError {
    /// Returns the error of an answer at this place.
    pub(crate) fn exceeded(bound: impl Into<Exceeded>, place: &str) -> Self {
        Self::Exceeded {
            place: model::text::line(place, PLACE_CHARS),
            bound: bound.into(),
        }
    }
}
