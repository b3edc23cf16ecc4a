#![doc = include_str!("../README.md")]

mod event;
mod notifier;
mod outbox;
mod receiver;
mod webhook;

pub use event::{Event, EventData};
pub use notifier::{Notifier, NotifierSettings, NotifyMetrics};
pub use receiver::{Receiver, SendError};
pub use webhook::{SecretLocation, Webhook, WebhookError};
