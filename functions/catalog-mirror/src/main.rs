//! `catalog-mirror`: mirrors operator catalogs and serves them, in one process.

mod args;
mod catalog;
mod commands;
mod complete;
mod compositions;
#[cfg(feature = "grpc")]
mod grpc_listener;
mod manual;
mod polls;
mod progress;
mod reports;
mod table;
mod tips;
mod wiring;

use clap::CommandFactory;
use terminal::Exit;

/// Allocator of static programs, which are those of the container image, in place of that of musl.
/// Measured on 132 MB of JSON lines, as the CPU time of a cold publication, its peak of memory, the
/// CPU time of a whole catalog without a coding, and the memory after a load of requests: musl 3.7
/// s, 55 MB, 145 ms, 59 MB; jemalloc 3.2 s, 78 MB, 64 ms, 58 MB; mimalloc 3.4 s, 210 MB, 62 ms, 605
/// MB.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Exit {
    complete::answer(commands::Cli::command);
    let cli: commands::Cli = config::parse_arguments(tips::GUIDANCE);
    config::logs::init(cli.log_format, cli.log_filter());
    if cli.quiet {
        terminal::limit_output(terminal::Output::None);
    }
    // To start again takes 5 ms, as long as a small command needs in all.
    if !cli.moves_no_catalog()
        && let Err(error) = server::limit_arenas(cli.runs_for_long())
    {
        tracing::debug!(%error, "cannot start again with fewer arenas");
    }
    match commands::run(cli) {
        Ok(exit) => exit,
        Err(error) => {
            terminal::print_failure("error", &config::failure(error.as_ref()));
            Exit::Failed
        }
    }
}
