#![doc = include_str!("../README.md")]

mod answer;
mod aws;
mod bus;
mod clock;
mod collect;
mod configuration;
mod environment;
mod event;
mod handler;
mod metrics;
mod outside;
mod poller;
mod queue;
mod refusal;
mod round;
mod secrets;
mod signing;
mod waiting;
mod webhooks;

pub use answer::{Answer, Check};
pub use aws::Aws;
pub use bus::fit;
pub use clock::Deadline;
pub use environment::{CatalogsPlace, Environment, Level};
pub use event::{Action, Event, Manual, Record, UnknownEvent};
pub use handler::serve;
pub use outside::{Document, Message, Outside};
pub use poller::Poller;
pub use refusal::refuse;
