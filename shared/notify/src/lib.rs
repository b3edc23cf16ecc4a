#![doc = include_str!("../README.md")]

mod event;
mod marks;
mod metrics;
mod notifier;
mod outbox;
mod receiver;
mod settings;
mod waits;
mod webhook;

pub use event::{Data, Event};
pub use metrics::Metrics;
pub use notifier::Notifier;
pub use receiver::{Receiver, SendError};
pub use settings::Settings;
pub use webhook::{SecretError, SecretPlace, Webhook, WebhookError};
