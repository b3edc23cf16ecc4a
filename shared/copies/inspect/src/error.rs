use std::io;

use publish::PollError;
use reader::ReaderError;
use render::RenderError;
use store::ReadError;
use sync::SyncError;
use tokio::task::JoinError;
use upgrade::Exceeded;
use upgrade::bundle::BundleError;
use upgrade::plan::PlanError;
use work::OverBudget;

/// The reason for which a question about a catalog has no answer.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// Something that does not exist, or that cannot be asked. Holds the reason for people.
    #[error("{0}")]
    Refused(String),
    /// One thing of several that cannot be read. Holds its name for people.
    #[error("{0}")]
    Part(String, #[source] Box<InspectError>),
    /// A text that names no source.
    #[error(transparent)]
    Text(#[from] source::SourceError),
    /// A source or a registry failed.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The content of a source is not valid, or exceeds a limit.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A composition or a poll failed.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// A catalog of a store or a mirror cannot be read.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// A document or an object of a store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A published state cannot be read.
    #[error(transparent)]
    State(#[from] ReaderError),
    /// A bundle cannot be read or compared.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A choice of packages and channels does not fit a catalog.
    #[error(transparent)]
    Selection(#[from] olm::SelectionError),
    /// An answer takes too much work or is too large.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// Work panicked, or the runtime ended.
    #[error(transparent)]
    Work(#[from] JoinError),
    /// A temporary folder cannot be created.
    #[error("cannot create a temporary folder")]
    Folder(#[source] io::Error),
}

impl From<OverBudget> for InspectError {
    fn from(over: OverBudget) -> Self {
        Self::Exceeded(over.into())
    }
}

impl InspectError {
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// Names the thing that cannot be read.
    pub(crate) fn part(self, name: String) -> Self {
        Self::Part(name, Box::new(self))
    }
}
