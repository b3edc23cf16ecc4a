use std::time::Duration;

use image::Fault;
use keep::SettleError;
use render::RenderError;
use store::{ReadError, StoreError};

use crate::{RollbackError, Suspicion};

/// Why a turn did not succeed. What was published before stays served.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The signatures of the image cannot be fetched, which is as good as none.
    #[error("cannot fetch the signatures of the image")]
    Signatures(#[source] image::Error),
    /// The image is not signed as the policy asks.
    #[error("the image was not published: its signatures are not what the policy of the catalog asks for")]
    Rejected(#[from] policy::Rejection),
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
    /// An object under the same content hash turned out to be damaged.
    #[error("{0} is damaged and has to be written again")]
    Damaged(String),
    /// A garbage collection removed what the publication relied on.
    #[error("{0} was removed as nothing named it yet, and has to be written again")]
    Swept(String),
    /// Other writers kept winning.
    #[error("gave up after {attempts} attempts: other writers keep publishing this catalog")]
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
    /// The turn did not end in the time that it was given.
    #[error("the poll did not end within {} s, which was all the time there was", .0.as_secs())]
    OutOfTime(Duration),
    /// Readers that verify would not take it.
    #[error(
        "what is published is signed, and there is no key to sign what follows: give the signing key, \
         or force the poll to publish it unsigned"
    )]
    NoKey,
    /// An earlier content cannot be published again.
    #[error("cannot roll back")]
    Rollback(#[from] RollbackError),
    /// A worker thread died.
    #[error("a worker thread failed")]
    Worker(#[from] tokio::task::JoinError),
}

impl PollError {
    /// Whether a registry refused the credentials, or wanted some where there were none.
    pub fn is_refused_login(&self) -> bool {
        let (Self::Image(image::Error::Registry(error)) | Self::Signatures(image::Error::Registry(error))) = self
        else {
            return false;
        };
        matches!(error.fault, Fault::Unauthorized { .. } | Fault::Forbidden { .. })
    }

    /// Whether something published cannot be read back.
    pub(crate) const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Render(RenderError::Damaged { .. } | RenderError::Published { .. }) | Self::Damaged(_)
        )
    }

    /// Whether trying again at once may help.
    pub(crate) const fn is_race(&self) -> bool {
        match self {
            Self::Store(error) | Self::Read(ReadError::Store(error)) => error.is_conflict(),
            Self::Damaged(_) | Self::Swept(_) => true,
            _ => false,
        }
    }
}

impl From<SettleError> for PollError {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::Read(error) => error.into(),
            SettleError::Store(error) => error.into(),
            SettleError::Swept(key) => Self::Swept(key),
        }
    }
}
