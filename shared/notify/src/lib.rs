#![doc = include_str!("../README.md")]

mod event;
mod metrics;
mod notifier;
mod outbox;
mod receiver;
mod settings;
mod webhook;

pub use event::{Event, EventData};
pub use metrics::NotifyMetrics;
pub use notifier::Notifier;
pub use receiver::{Receiver, SendError};
pub use settings::NotifierSettings;
pub use webhook::{SecretError, SecretLocation, Webhook, WebhookError};
