//! One file per command.

mod demo;
mod diff;
mod example;
mod export;
mod gc;
mod images;
mod import;
mod keygen;
mod ls;
mod manifests;
mod poll;
mod receipt;
mod render;
mod rm;
mod rollback;
mod serve;
mod sync;
mod verify;

use std::io;

use clap::CommandFactory;

use crate::{
    cli::{Cli, Command},
    exit::Exit,
};

/// Enough for two catalogs whose layers are scanned three at a time and for writes meanwhile. The default of 512 lets
/// a burst of writes start a thread each, and every one of them keeps memory.
const BLOCKING_THREADS: usize = 24;

/// Runs the command on a runtime of its own.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let exit = runtime.block_on(dispatch(cli.command));
    // Nobody waits for a pull that was abandoned.
    runtime.shutdown_background();
    exit
}

async fn dispatch(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Poll(args) => poll::run(args).await,
        Command::Render(args) => render::run(args).await,
        Command::Ls(args) => ls::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Gc(args) => gc::run(args).await,
        Command::Rollback(args) => rollback::run(args).await,
        Command::Diff(args) => diff::run(args).await,
        Command::Images(args) => images::run(args).await,
        Command::Manifests(args) => manifests::run(args).await,
        Command::Rm(args) => rm::run(args).await,
        Command::Sync(args) => sync::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Import(args) => import::run(args).await,
        Command::Receipt(args) => receipt::run(args).await,
        Command::Keygen(args) => keygen::run(&args),
        Command::Demo(args) => demo::run(args).await,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "catalog-mirror", &mut io::stdout());
            Ok(Exit::Fine)
        }
    }
}
