#![doc = include_str!("../README.md")]

mod event;
mod metrics;
mod notifier;
mod outbox;
mod receiver;
mod webhook;

pub use event::{Event, EventData};
pub use metrics::NotifyMetrics;
pub use notifier::{Notifier, NotifierSettings};
pub use receiver::{Receiver, SendError};
pub use webhook::{SecretLocation, Webhook, WebhookError};
