#![doc = include_str!("../README.md")]

mod aws;
mod bus;
mod deadline;
mod environment;
mod event;
mod handler;
mod message;
mod metrics;
mod poller;
mod queue;
mod round;
mod secrets;
mod site;

pub use aws::{Aws, ConfigDocument, Services};
pub use deadline::Deadline;
pub use environment::{ConfigLocation, Environment, MetricsLevel};
pub use event::{ManualAction, ManualEvent, PollerAnswer, PollerEvent, QueueRecord, UnknownEvent};
pub use handler::serve;
pub use message::CatalogMessage;
pub use poller::Poller;
