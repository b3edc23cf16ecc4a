#![doc = include_str!("../README.md")]

mod arenas;
mod body;
mod connection;
mod connections;
mod descriptors;
mod error;
mod front;
mod limits;
mod metrics;
mod metrics_page;
mod overload;
mod reload;
mod request;
mod server;
mod signals;
mod socket;
mod tls;
mod users;
mod watch;

pub use arenas::limit_arenas;
pub use error::FileError;
pub use front::Front;
pub use limits::ServerLimits;
pub use metrics::ServerMetrics;
pub use metrics_page::MetricsPage;
pub use server::Server;
pub use signals::stop_on_signals;
