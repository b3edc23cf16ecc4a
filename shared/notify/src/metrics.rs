use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::SendError;

/// Counters of events by receiver and outcome.
#[derive(Debug, Clone, Default)]
pub struct NotifyMetrics {
    events: Family<[(&'static str, String); 2], Counter>,
}

impl NotifyMetrics {
    /// Adds the counters to a registry.
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Events by receiver and outcome; a postponed event is sent again after the next poll";
        Self {
            events: publish::metric(registry, "notifications", help),
        }
    }

    /// Counts an event by the result of all attempts to send it. Creates all outcomes of the receiver at once, so that rates need
    /// no special cases.
    pub(crate) fn count(&self, receiver: &str, sent: &Result<(), SendError>) {
        let is_dropped = matches!(sent, Err(SendError::Permanent(_)));
        let outcomes = [
            ("delivered", sent.is_ok()),
            ("postponed", sent.is_err() && !is_dropped),
            ("given_up", is_dropped),
        ];
        for (outcome, is_it) in outcomes {
            let labels = [("receiver", receiver.to_owned()), ("outcome", outcome.to_owned())];
            self.events.get_or_create(&labels).inc_by(u64::from(is_it));
        }
    }
}
