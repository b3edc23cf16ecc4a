#![doc = include_str!("../README.md")]

mod delay;
mod events;
mod gc;
mod history;
mod rollback;
mod verify;

pub use delay::{CatalogDelay, ROLLED_BACK, RingDelay};
pub use events::{
    Event, EventData, HeldContent, Notifier, NotifierSettings, NotifyMetrics, Receiver,
    SecretLocation, SendError, Webhook, WebhookError,
};
pub use gc::{
    GcError, GcMetrics, GcOptions, GcReport, GcStep, NextStep, Retention, UnreadableState,
    collect_regularly, gc,
};
pub use history::{HistoryState, Waiting, history};
pub use rollback::{RollbackOptions, rollback};
pub use verify::{
    Finding, IntegrityCheck, ObjectProblem, Verification, check_body, check_entry, verify,
};
