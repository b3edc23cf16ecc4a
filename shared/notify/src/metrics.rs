use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::SendError;

/// Counters of events by receiver and outcome.
#[derive(Debug, Clone, Default)]
pub struct NotifyMetrics {
    events: Family<EventLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    receiver: String,
    outcome: &'static str,
}

/// The outcome of all attempts to send an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The receiver has acknowledged the event.
    Delivered,
    /// The event will be sent again after the next poll.
    Postponed,
    /// The receiver will never take the event.
    GivenUp,
}

impl NotifyMetrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        registry.register(
            "notifications",
            "Events by receiver and outcome; a postponed event is sent again after the next poll",
            this.events.clone(),
        );
        this
    }

    /// Counts an event. Creates all outcomes of the receiver at once, so that rates need no special cases.
    pub(crate) fn count(&self, receiver: &str, delivery: Delivery) {
        for outcome in [Delivery::Delivered, Delivery::Postponed, Delivery::GivenUp] {
            let labels = EventLabels {
                receiver: receiver.to_owned(),
                outcome: outcome.as_str(),
            };
            self.events
                .get_or_create(&labels)
                .inc_by(u64::from(outcome == delivery));
        }
    }
}

impl Delivery {
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

    /// Returns true if the receiver's cursor moves past the event.
    pub(crate) const fn is_settled(self) -> bool {
        matches!(self, Self::Delivered | Self::GivenUp)
    }
}
