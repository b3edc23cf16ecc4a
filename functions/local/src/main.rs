//! `catalog-mirror`: mirrors operator catalogs and serves them, in one process.

mod cli;
mod commands;
mod exit;
#[cfg(feature = "grpc")]
mod grpc_listener;
mod image;
mod output;
mod published;
#[cfg(feature = "grpc")]
mod registry_api;
mod stores;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    config::logs::init(cli.log_format.into(), cli.log_filter());
    if cli.command.runs_for_long()
        && let Err(error) = server::limit_arenas()
    {
        tracing::debug!(%error, "cannot start again with fewer arenas");
    }
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {}", model::text::chain(error.as_ref()));
            exit::Exit::Failed.into()
        }
    }
}
