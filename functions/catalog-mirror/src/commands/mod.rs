//! The command line. Each command has its arguments and its printing in one file, and takes nothing
//! from another command.

mod bundle;
mod carry;
mod compose;
mod demo;
mod diff;
mod export;
mod gc;
mod history;
mod images;
mod import;
mod keygen;
mod ls;
mod manifests;
mod plan;
mod poll;
mod promote;
mod release;
mod render;
mod rm;
mod rollback;
mod search;
mod serve;
mod sync;
mod upgrade;
mod validate;
mod verify;

use std::path::PathBuf;

use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use tracing::{Instrument, info_span};

use terminal::Exit;

use crate::{complete, manual};

/// Mirrors operator catalogs (OLM file-based catalogs) and serves them over HTTP.
///
/// A catalog image is pulled only when its digest has changed. It is published to a store as
/// compressed all.json, one shard for each package and one content hash. The mirror answers like
/// catalogd, with ETags.
#[derive(Debug, Parser)]
#[command(name = "catalog-mirror", version = VERSION, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Format of the log on standard error.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        env = "CATALOG_MIRROR_LOG_FORMAT",
        hide_env_values = true
    )]
    pub(crate) log_format: config::logs::LogFormat,

    /// Log more: -v for info, -vv for debug. RUST_LOG overrides it.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,

    /// Print results and errors only: no progress, no remarks, and no report of what was done.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// Text of `--version`: version, commit, compiler, target and profile, for bug reports. `build.rs`
/// sets the variables.
const VERSION: &str = concat!(env!("BUILD_VERSION"), "\nbuilt with ", env!("BUILD_TOOLS"));

const EXAMPLES: &str = "\
Examples:
  catalog-mirror demo
  catalog-mirror serve --catalog operatorhubio=quay.io/operatorhubio/catalog:latest
  catalog-mirror poll --config catalogs.yaml --store s3://my-bucket/catalogs
  catalog-mirror sync https://catalogs.example.com /var/lib/catalog-mirror
  catalog-mirror export --static /srv/www/mirror
  catalog-mirror plan installed.yaml --from redhat-4-20 --to redhat-4-21 --cluster 4.21
  catalog-mirror carry out imageset.yaml /media/disk

Exit codes:
  0   the command succeeded, whether or not it published something
  1   something failed, was refused or is damaged
  2   the command line is wrong
  10  with --detailed-exitcode: something was published; from diff: there are differences
  130 Ctrl-C has stopped the command (143: SIGTERM)";

#[derive(Debug, Subcommand)]
enum Command {
    /// Poll the configured catalogs at their intervals and serve them.
    Serve(serve::ServeArgs),
    /// Poll once, publish what has changed, and exit.
    Poll(poll::PollArgs),
    /// Print the canonical JSON lines of a catalog, without a store.
    Render(render::RenderArgs),
    /// Print the lines of a catalog that is composed of parts of others, such as an
    /// ImageSetConfiguration selects.
    Compose(compose::ComposeArgs),
    /// List the published catalogs, or the packages of one.
    #[command(visible_alias = "list")]
    Ls(ls::LsArgs),
    /// List the states of a catalog that were published, and what each changed.
    #[command(visible_alias = "log")]
    History(history::HistoryArgs),
    /// Bring catalogs and their images from an ImageSetConfiguration to a registry, by a folder
    /// that is carried or at once.
    Carry(carry::CarryArgs),
    /// Find packages by words in their names, keywords, APIs and descriptions.
    Search(search::SearchArgs),
    /// Check a catalog by the rules of `opm validate` and `opm serve`, and list all that it breaks.
    Validate(validate::ValidateArgs),
    /// Check every object of the published and the earlier states against its hash.
    Verify(verify::VerifyArgs),
    /// Remove objects that no published or kept state needs.
    Gc(gc::GcArgs),
    /// Publish an earlier state of a catalog again, until its source changes or a poll is forced.
    Rollback(rollback::RollbackArgs),
    /// Move a ring to the newest state of the catalog that it follows, or to another one, without
    /// waiting for its age.
    Promote(promote::PromoteArgs),
    /// Let new content through that is held back because it looks like an accident.
    Release(release::ReleaseArgs),
    /// Show the changes between two states of a catalog, or between two sources.
    Diff(diff::DiffArgs),
    /// Tell which operators must be updated before a cluster, by which steps, and which are left
    /// without a way.
    Plan(plan::PlanArgs),
    /// Show the steps from one version of a package to another, channel by channel.
    Upgrade(upgrade::UpgradeArgs),
    /// Draw the upgrade graph of a package.
    Graph(upgrade::GraphArgs),
    /// List the images that catalogs, packages or channels need.
    Images(images::ImagesArgs),
    /// Show what a bundle installs, or what changes between two.
    Bundle(bundle::BundleArgs),
    /// Print the manifests with which clusters use the mirror.
    Manifests(manifests::ManifestsArgs),
    /// Remove a catalog from the store. Its shards stay until `gc`.
    #[command(visible_alias = "remove")]
    Rm(rm::RmArgs),
    /// Bring a store up to date with another mirror.
    Sync(sync::SyncArgs),
    /// Write an archive with the objects that another store lacks.
    Export(export::ExportArgs),
    /// Publish the content of an archive to the store.
    Import(import::ImportArgs),
    /// Print which objects the store holds, so that an export can leave them out.
    Receipt(export::ReceiptArgs),
    /// Create a key pair for signing publications.
    Keygen(keygen::KeygenArgs),
    /// Publish, serve and update a small example catalog, without network or configuration.
    Demo(demo::DemoArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Name of the shell: bash, zsh, fish, elvish or powershell.
        shell: Shell,
    },
    /// Write the manual pages of all commands into a folder.
    #[command(hide = true)]
    Man {
        /// An existing folder.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

impl Cli {
    /// Returns true if the command runs until a signal ends it.
    pub(crate) const fn runs_for_long(&self) -> bool {
        match &self.command {
            Command::Serve(_) => true,
            Command::Sync(args) => args.watch.is_some(),
            Command::Export(args) => args.runs_for_long(),
            _ => false,
        }
    }

    /// Returns true if the command reads and writes small documents only.
    pub(crate) const fn moves_no_catalog(&self) -> bool {
        matches!(
            self.command,
            Command::Completions { .. }
                | Command::History(_)
                | Command::Keygen(_)
                | Command::Ls(_)
                | Command::Man { .. }
                | Command::Receipt(_)
                | Command::Release(_)
                | Command::Rm(_)
                | Command::Rollback(_)
        )
    }

    /// Returns the log filter for the command and the number of `-v`.
    ///
    /// Commands that run on log everything of interest. The others print their results, and the
    /// errors in them, so they leave out the log's `report` events, which say the same. With `-v`
    /// the log has them and the printed text has not (see `terminal::print_error`).
    pub(crate) const fn log_filter(&self) -> &'static str {
        // They turn a failed report into the error that `main` prints.
        let returns_error = matches!(&self.command, Command::Diff(_) | Command::Demo(_));
        match self.verbose {
            0 if self.runs_for_long() && self.quiet => "warn",
            0 if self.runs_for_long() => "info",
            0 => "warn,report=off",
            1 if returns_error => "info,report=off",
            1 => "info",
            _ => "debug",
        }
    }
}

/// Runs the command on a new runtime.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    server::block_on(dispatch(cli.command))?
}

/// Runs each command in a span with its name, so that every log line tells the command that wrote
/// it. A command without an exit code of its own succeeds or returns an error.
async fn dispatch(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => serve::run(args).instrument(info_span!("serve")).await?,
        Command::Poll(args) => return poll::run(args).instrument(info_span!("poll")).await,
        Command::Render(args) => render::run(args).instrument(info_span!("render")).await?,
        Command::Compose(args) => compose::run(args).instrument(info_span!("compose")).await?,
        Command::Ls(args) => ls::run(args).instrument(info_span!("ls")).await?,
        Command::History(args) => history::run(args).instrument(info_span!("history")).await?,
        Command::Carry(args) => return carry::run(args).instrument(info_span!("carry")).await,
        Command::Search(args) => return search::run(args).instrument(info_span!("search")).await,
        Command::Validate(args) => {
            return validate::run(args).instrument(info_span!("validate")).await;
        }
        Command::Verify(args) => return verify::run(args).instrument(info_span!("verify")).await,
        Command::Gc(args) => return gc::run(args).instrument(info_span!("gc")).await,
        Command::Rollback(args) => {
            let span = info_span!("rollback", catalog = %args.name);
            return rollback::run(args).instrument(span).await;
        }
        Command::Promote(args) => {
            return promote::run(args).instrument(info_span!("promote")).await;
        }
        Command::Release(args) => {
            return release::run(args).instrument(info_span!("release")).await;
        }
        Command::Diff(args) => return diff::run(args).instrument(info_span!("diff")).await,
        Command::Plan(args) => return plan::run(args).instrument(info_span!("plan")).await,
        Command::Upgrade(args) => {
            return upgrade::run(args).instrument(info_span!("upgrade")).await;
        }
        Command::Graph(args) => {
            upgrade::run_graph(args)
                .instrument(info_span!("graph"))
                .await?;
        }
        Command::Images(args) => return images::run(args).instrument(info_span!("images")).await,
        Command::Bundle(args) => return bundle::run(args).instrument(info_span!("bundle")).await,
        Command::Manifests(args) => {
            manifests::run(args)
                .instrument(info_span!("manifests"))
                .await?;
        }
        Command::Rm(args) => return rm::run(args).instrument(info_span!("rm")).await,
        Command::Sync(args) => {
            let span = info_span!("sync", from = %args.from, to = %args.to);
            return sync::run(args).instrument(span).await;
        }
        Command::Export(args) => export::run(args).instrument(info_span!("export")).await?,
        Command::Import(args) => return import::run(args).instrument(info_span!("import")).await,
        Command::Receipt(args) => {
            export::run_receipt(args)
                .instrument(info_span!("receipt"))
                .await?;
        }
        Command::Keygen(args) => keygen::run(&args)?,
        Command::Demo(args) => demo::run(args).instrument(info_span!("demo")).await?,
        Command::Completions { shell } => complete::print_script(shell)?,
        Command::Man { folder } => manual::write_pages(Cli::command(), &folder)?,
    }
    Ok(Exit::Success)
}
