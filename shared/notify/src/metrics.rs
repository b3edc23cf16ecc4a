use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::receiver::Delivery;

/// Counters of events by receiver and outcome.
#[derive(Debug, Clone, Default)]
pub struct NotifyMetrics {
    events: Family<[(&'static str, String); 2], Counter>,
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
            let labels = [
                ("receiver", receiver.to_owned()),
                ("outcome", outcome.as_str().to_owned()),
            ];
            let counter = self.events.get_or_create(&labels);
            counter.inc_by(u64::from(outcome == delivery));
        }
    }
}
