//! Change events: after a publication one event for each receiver, at least once.

mod event;
mod notifier;
mod outbox;
mod webhook;

pub use event::{Event, EventData, HeldContent, Receiver, SendError};
pub use notifier::{Notifier, NotifierSettings, NotifyMetrics};
pub use webhook::{SecretLocation, Webhook, WebhookError};
