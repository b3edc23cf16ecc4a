//! The commands, one file for each: arguments, work and printing.

pub(crate) mod compose;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod images;
mod imageset;
pub(crate) mod import;
pub(crate) mod keygen;
pub(crate) mod ls;
pub(crate) mod manifests;
pub(crate) mod poll;
pub(crate) mod render;
pub(crate) mod rm;
pub(crate) mod rollback;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod sync;
pub(crate) mod validate;
pub(crate) mod verify;

use std::io;

use clap::CommandFactory;
use tracing::{Instrument, info_span};

use crate::{
    cli::{Cli, Command},
    exit::Exit,
};

/// Largest number of blocking threads: enough for two catalogs whose layers are scanned three at a time, and for writes
/// at the same time. With tokio's default of 512 a burst of writes starts a thread each, and each keeps its memory.
const BLOCKING_THREADS: usize = 24;

/// Runs the command on a new runtime.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    let exit = runtime.block_on(dispatch(cli.command));
    // Does not wait for blocking threads: one may still be reading an abandoned pull.
    runtime.shutdown_background();
    exit
}

/// Runs each command in a span with its name, so that every log line tells the command that wrote it.
async fn dispatch(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => serve::run(args).instrument(info_span!("serve")).await,
        Command::Poll(args) => poll::run(args).instrument(info_span!("poll")).await,
        Command::Render(args) => render::run(args).instrument(info_span!("render")).await,
        Command::Compose(args) => compose::run(args).instrument(info_span!("compose")).await,
        Command::Ls(args) => ls::run(args).instrument(info_span!("ls")).await,
        Command::Search(args) => search::run(args).instrument(info_span!("search")).await,
        Command::Validate(args) => validate::run(args).instrument(info_span!("validate")).await,
        Command::Verify(args) => verify::run(args).instrument(info_span!("verify")).await,
        Command::Gc(args) => gc::run(args).instrument(info_span!("gc")).await,
        Command::Rollback(args) => {
            let span = info_span!("rollback", catalog = %args.name);
            rollback::run(args).instrument(span).await
        }
        Command::Diff(args) => diff::run(args).instrument(info_span!("diff")).await,
        Command::Images(args) => images::run(args).instrument(info_span!("images")).await,
        Command::Manifests(args) => manifests::run(args).instrument(info_span!("manifests")).await,
        Command::Rm(args) => rm::run(args).instrument(info_span!("rm")).await,
        Command::Sync(args) => {
            let span = info_span!("sync", from = %args.from, to = %args.to);
            sync::run(args).instrument(span).await
        }
        Command::Export(args) => export::run(args).instrument(info_span!("export")).await,
        Command::Import(args) => import::run(args).instrument(info_span!("import")).await,
        Command::Receipt(args) => export::run_receipt(args).instrument(info_span!("receipt")).await,
        Command::Keygen(args) => keygen::run(&args),
        Command::Demo(args) => demo::run(args).instrument(info_span!("demo")).await,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "catalog-mirror", &mut io::stdout());
            Ok(Exit::Success)
        }
    }
}
