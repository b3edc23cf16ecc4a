#![doc = include_str!("../README.md")]

mod body;
mod connection;
mod connections;
mod front;
mod limits;
mod metrics;
mod process;
mod reload;
mod request;
mod server;
mod socket;
mod tls;
mod users;
mod watch;

pub use front::Front;
pub use limits::ServerLimits;
pub use metrics::{ServerMetrics, metrics_route};
pub use process::{block_on, limit_arenas, stop_on_signals};
pub use server::Server;
pub use tls::FileError;
