//! `catalog-mirror-controller`: serves the ClusterCatalogs of a cluster, in place of catalogd.

mod access;
mod authorities;
mod catalog;
mod conditions;
mod election;
mod flags;
mod health;
mod lease;
mod metrics;
mod named;
mod newest;
mod poll;
mod reconcile;
mod review;
mod run;
mod schedule;
mod secrets;
mod served;
mod spec;
#[cfg(test)]
mod tests;
mod webhook;
mod wiring;
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;

/// Allocator of static programs, in place of that of musl. The command line program has the
/// measurements.
#[cfg(all(target_env = "musl", not(test)))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let flags: flags::Flags = config::parse_arguments(config::Guidance::default());
    config::logs::init(config::logs::LogFormat::Text, flags.log_filter());
    if let Err(error) = server::limit_arenas(true) {
        tracing::debug!(%error, "cannot start again with fewer arenas");
    }
    match run::run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = config::failure(error.as_ref());
            // What cannot be written there can be told nowhere.
            writeln!(io::stderr(), "error: {failure}").ok();
            ExitCode::FAILURE
        }
    }
}
