use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::SendError;

/// Counters of the events of all receivers.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    events: Family<Labels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    receiver: String,
    outcome: &'static str,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The receiver has acknowledged it.
    Delivered,
    /// It will be sent again after the next poll.
    Postponed,
    /// The receiver will never take it.
    GivenUp,
}

impl Metrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        registry.register(
            "notifications",
            "Events by receiver and by what became of them; a postponed one is sent again after the next poll",
            this.events.clone(),
        );
        this
    }

    /// All outcomes exist from the first event on, so that rates need no special cases.
    pub(crate) fn count(&self, receiver: &str, sent: Sent) {
        for outcome in [Sent::Delivered, Sent::Postponed, Sent::GivenUp] {
            let labels = Labels {
                receiver: receiver.to_owned(),
                outcome: outcome.as_str(),
            };
            self.events.get_or_create(&labels).inc_by(u64::from(outcome == sent));
        }
    }
}

impl Sent {
    pub(crate) const fn of(result: &Result<(), SendError>) -> Self {
        match result {
            Ok(()) => Self::Delivered,
            Err(SendError::Temporary { .. } | SendError::Refused(_)) => Self::Postponed,
            Err(SendError::Permanent(_)) => Self::GivenUp,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Postponed => "postponed",
            Self::GivenUp => "given_up",
        }
    }

    /// Whether the receiver counts as told.
    pub(crate) const fn is_settled(self) -> bool {
        matches!(self, Self::Delivered | Self::GivenUp)
    }
}
