use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use layout::CatalogName;

use crate::Event;

/// Somebody who wants to be told of changes.
#[async_trait]
pub trait Receiver: Debug + Send + Sync {
    /// Its name: unique, not secret, and always the same, as what it was told is remembered under it.
    fn name(&self) -> &str;

    /// Whether it wants to be told of this catalog.
    fn wants(&self, catalog: &CatalogName) -> bool {
        let _ = catalog;
        true
    }

    /// Sends one event once and returns when the receiver has acknowledged it. The caller sends it again if need be
    /// and limits the time, so dropping the future must be harmless.
    ///
    /// # Errors
    /// [`SendError`] tells whether and when there is a point in sending it again.
    async fn send(&self, event: &Event) -> Result<(), SendError>;
}

/// Why an event was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It may be taken a little later: the network, too many requests, a server that is down. It is sent again at once
    /// a few times, then after the next poll.
    #[error("the receiver cannot be reached or cannot take it now")]
    Temporary {
        /// How long the receiver asked to wait.
        retry_after: Option<Duration>,
        /// What was wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody has to change something first: credentials, a URL, a secret. It is sent again after the next poll.
    #[error("the receiver refuses it")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It will never be taken. It is given up, and the receiver counts as told.
    #[error("the receiver will never take it")]
    Permanent(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SendError {
    /// A failure that may pass, of which nobody says when.
    pub fn temporary(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Temporary {
            retry_after: None,
            source: source.into(),
        }
    }
}
