use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

/// Visits every route of a running mirror, checks every answer, and watches the process that serves.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Where the mirror listens, without TLS.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server: SocketAddr,
    /// The process that serves.
    #[arg(long, value_name = "PID")]
    pub(crate) process: u32,
    /// The folder that is its store.
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// For how long.
    #[arg(long, value_name = "N", default_value_t = 900)]
    pub(crate) seconds: u64,
    /// Requests a second, as far as the mirror is fast enough.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) rate: u32,
    /// Visitors at the same time; every third speaks HTTP/2.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) workers: u32,
    /// Also write what happened to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
