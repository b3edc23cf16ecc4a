//! The reader function: reads its environment and waits for requests.

use std::{env, process::ExitCode};

use model::text::Chain;
use reader_function::ReaderEnvironment;

/// Number of threads for decompressing and hashing. A function answers one request at a time, so
/// two are enough.
const BLOCKING_THREADS: usize = 2;

fn main() -> ExitCode {
    // The level that the function's logging configuration sets (AWS Lambda Developer Guide,
    // "Configuring advanced logging controls").
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").unwrap_or_else(|_| "info".to_owned());
    config::logs::init(config::logs::LogFormat::Json, &level);
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %Chain(error.as_ref()), "cannot start the reader");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let environment = ReaderEnvironment::read(|name| env::var(name).ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    runtime.block_on(environment.serve())
}
