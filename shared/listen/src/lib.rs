#![doc = include_str!("../README.md")]

mod answer;
mod connection;
mod descriptors;
mod io;
mod limits;
mod metrics;
mod readers;
mod refusal;
mod request;
mod reread;
mod server;
mod tls;
mod watch;

pub use limits::Limits;
pub use metrics::Metrics;
pub use readers::ReadersError;
pub use reread::FileError;
pub use server::Server;
pub use tls::TlsError;
