use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use model::CatalogName;

use crate::Event;

/// Destination of change events, such as a webhook or an event bus.
#[async_trait]
pub trait Receiver: Debug + Send + Sync {
    /// Returns the name: unique, not secret and stable, because the cursor is stored under it.
    fn name(&self) -> &str;

    /// Returns true if it wants the events of a catalog. Default: all.
    fn wants(&self, _: &CatalogName) -> bool {
        true
    }

    /// Sends one event once and returns when the receiver has acknowledged it. The caller repeats and limits the time, so
    /// dropping the future must be harmless.
    ///
    /// # Errors
    /// [`SendError`], whose variant decides about further attempts.
    async fn send(&self, event: &Event) -> Result<(), SendError>;
}

/// The reason for which an event was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A failure of the network or a busy server. The event is sent again a few times now, then after the next poll.
    #[error("the receiver cannot be reached or cannot take it now")]
    Temporary {
        /// Wait that the receiver asked for.
        retry_after: Option<Duration>,
        /// The underlying error, which the chain prints after this one.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A failure that needs a change of credentials, URL or secret. The event is sent again after the next poll.
    #[error("the receiver refuses it")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The receiver will never take it. The event is dropped.
    #[error("the receiver will never take it")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SendError {
    /// Creates a failure that needs a change.
    pub(crate) fn refused(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Refused(source.into())
    }

    /// Creates a temporary failure without a wait.
    pub fn temporary(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Temporary {
            retry_after: None,
            source: source.into(),
        }
    }
}
