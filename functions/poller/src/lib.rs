#![doc = include_str!("../README.md")]

mod answer;
mod aws;
mod bus;
mod candidate;
mod collect;
mod deadline;
mod environment;
mod event;
mod handler;
mod metrics;
mod poller;
mod queue;
mod round;
mod secrets;
mod services;
mod site;

pub use answer::{CatalogCheck, PollerAnswer};
pub use aws::Aws;
pub use deadline::Deadline;
pub use environment::{ConfigLocation, Environment, MetricsLevel};
pub use event::{ManualAction, ManualEvent, PollerEvent, QueueRecord, UnknownEvent};
pub use handler::{report_init_error, serve};
pub use poller::Poller;
pub use services::{CatalogMessage, ConfigDocument, Services};
