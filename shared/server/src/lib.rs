#![doc = include_str!("../README.md")]

mod body;
mod connection;
mod connections;
mod descriptors;
mod error;
mod limits;
mod metrics;
mod overload;
mod reload;
mod request;
mod server;
mod socket;
mod tls;
mod users;
mod watch;

pub use error::FileError;
pub use limits::ServerLimits;
pub use metrics::ServerMetrics;
pub use server::Server;
