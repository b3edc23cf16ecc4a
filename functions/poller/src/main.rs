//! Entry point of the function: reads its environment, then answers events.

use std::{env, process::ExitCode};

use poller::Environment;

/// Maximum number of threads for blocking work. Two catalogs, each with three layers that are
/// scanned at a time, and their writes need no more. Every thread that a burst starts keeps memory.
const BLOCKING_THREADS: usize = 24;

fn main() -> ExitCode {
    config::logs::init(config::logs::LogFormat::Json, "info");
    let environment = Environment::read(|name| env::var(name).ok());
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let served = runtime
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(poller::serve(environment)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error, "the Lambda runtime failed");
            ExitCode::FAILURE
        }
    }
}
