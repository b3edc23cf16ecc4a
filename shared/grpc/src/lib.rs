#![doc = include_str!("../README.md")]

mod call;
mod contents;
mod framing;
mod health;
mod lines;
mod memory;
mod methods;
mod metrics;
mod published;
mod reflection;
mod routes;
mod status;

pub use metrics::GrpcMetrics;
pub use published::{Published, PublishedError, PublishedState, ShardChunks};
pub use routes::RegistryApi;
