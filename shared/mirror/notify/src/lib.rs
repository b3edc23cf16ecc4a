#![doc = include_str!("../README.md")]

mod event;
mod notifier;
mod outbox;
mod webhook;

pub use event::{Event, EventData, Receiver, SendError};
pub use notifier::{Notifier, NotifierSettings, NotifyMetrics};
pub use webhook::{SecretLocation, Webhook, WebhookError};
