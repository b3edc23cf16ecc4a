use render::RenderError;
use store::{ReadError, StoreError};

use crate::Suspicion;

/// Why a turn did not succeed. What was published before stays served.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The source cannot be resolved or pulled.
    #[error("cannot pull the catalog")]
    Image(#[from] image::Error),
    /// The FBC is not valid, or rendering it failed.
    #[error("cannot render the catalog")]
    Render(#[from] RenderError),
    /// The store cannot be read.
    #[error("cannot read what is published")]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("cannot publish the catalog")]
    Store(#[from] StoreError),
    /// The result looks like an accident.
    #[error("the new content was not published")]
    Suspicious(#[from] Suspicion),
    /// Objects under the same content hash turned out to be damaged and were removed.
    #[error("{0} was damaged and has been removed, to be written again")]
    Damaged(String),
    /// Other writers kept winning.
    #[error("gave up after {attempts} attempts: other writers keep publishing this catalog")]
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
    /// A worker thread died.
    #[error("a worker thread failed")]
    Worker(#[from] tokio::task::JoinError),
}

impl PollError {
    /// Whether something published cannot be read back.
    pub(crate) const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Render(RenderError::Damaged { .. } | RenderError::Published { .. })
        )
    }

    /// Whether trying again at once may help.
    pub(crate) const fn is_race(&self) -> bool {
        match self {
            Self::Store(error) | Self::Read(ReadError::Store(error)) => error.is_conflict(),
            Self::Damaged(_) => true,
            _ => false,
        }
    }
}
