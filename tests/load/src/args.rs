use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

/// Sends requests to every route of a running mirror, checks every answer, and monitors the process
/// that serves.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Address of the mirror, which must listen without TLS.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server: SocketAddr,
    /// Id of the process that serves.
    #[arg(long, value_name = "PID")]
    pub(crate) process: u32,
    /// Folder of the mirror's store.
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// Duration of the run, in seconds.
    #[arg(long, value_name = "N", default_value_t = 900)]
    pub(crate) seconds: u64,
    /// Requests per second, if the mirror is fast enough.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) rate: u32,
    /// Number of concurrent clients. Every third one speaks HTTP/2.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) workers: u32,
    /// Also write the report to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
