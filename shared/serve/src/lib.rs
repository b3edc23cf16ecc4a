#![doc = include_str!("../README.md")]

mod answers;
mod app;
mod cache;
mod changes;
mod coding;
mod denial;
mod error;
mod fields;
mod index;
mod lines;
mod listing;
mod metrics;
mod openapi;
mod partial;
mod problem;
mod proof;
mod published;
mod registry;
mod respond;
mod route;
mod router;
mod settings;
mod source;
mod stream;
mod verify;

pub use denial::{Denial, answers_all, deny};
pub use metrics::Metrics;
pub use router::router;
pub use settings::{BaseUrl, Large, Locate, Location, Settings};
