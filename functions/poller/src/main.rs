//! The function: reads its environment and waits for events.

use std::{env, process::ExitCode};

use poller::Environment;

/// Enough for two catalogs whose layers are scanned three at a time and for writes meanwhile: every thread that a burst
/// starts keeps memory.
const BLOCKING_THREADS: usize = 24;

fn main() -> ExitCode {
    telemetry::init(telemetry::Format::Json, "info");
    match Environment::read(|name| env::var(name).ok()) {
        Ok(environment) => run(environment),
        Err(problems) => poller::refuse(&problems),
    }
}

fn run(environment: Environment) -> ExitCode {
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
            tracing::error!(error, "the runtime ended");
            ExitCode::FAILURE
        }
    }
}
