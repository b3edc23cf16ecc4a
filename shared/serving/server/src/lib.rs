#![doc = include_str!("../README.md")]

mod access;
mod connection;
mod connections;
mod error;
mod limits;
mod metrics;
mod process;
mod receive;
mod reload;
mod request;
mod server;
mod tls;
mod users;
mod watch;
mod watched;

pub use access::AccessLog;
pub use error::FileError;
pub use metrics::{ServerMetrics, metrics_route};
pub use process::{Stop, StopSignal, block_on, limit_arenas, stop_on_signals};
pub use receive::{ReceiveError, receive};
pub use request::Front;
pub use server::Server;
pub use watch::{ConnectionHandle, Outdated};
pub use work::ServerLimits;
