//! The command line.

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{
    compose::ComposeArgs,
    demo::DemoArgs,
    diff::DiffArgs,
    export::{ExportArgs, ReceiptArgs},
    gc::GcArgs,
    images::ImagesArgs,
    import::ImportArgs,
    keygen::KeygenArgs,
    ls::LsArgs,
    manifests::ManifestsArgs,
    poll::PollArgs,
    render::RenderArgs,
    rm::RmArgs,
    rollback::RollbackArgs,
    search::SearchArgs,
    serve::ServeArgs,
    sync::SyncArgs,
    validate::ValidateArgs,
    verify::VerifyArgs,
};

/// Mirrors operator catalogs (OLM file-based catalogs) and serves them over HTTP.
///
/// A catalog image is pulled only when its digest has changed. It is published to a store as compressed all.json, one
/// shard for each package and one content hash. The mirror answers like catalogd, with ETags.
#[derive(Debug, Parser)]
#[command(name = "catalog-mirror", version = VERSION, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Format of the log on standard error.
    #[arg(long, global = true, value_enum, default_value_t, env = "CATALOG_MIRROR_LOG_FORMAT")]
    pub(crate) log_format: config::logs::LogFormat,

    /// Log more: -v for info, -vv for debug. RUST_LOG overrides it.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
}

/// Text of `--version`: version, commit, compiler, target and profile, for bug reports. `build.rs` sets the variables.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("BUILD_COMMIT"),
    ")\nbuilt with ",
    env!("BUILD_RUSTC"),
    " for ",
    env!("BUILD_TARGET"),
    " (",
    env!("BUILD_PROFILE"),
    ")"
);

const EXAMPLES: &str = "\
Examples:
  catalog-mirror demo
  catalog-mirror serve --catalog operatorhubio=quay.io/operatorhubio/catalog:latest
  catalog-mirror poll --config catalogs.yaml --store /var/lib/catalog-mirror
  catalog-mirror poll --config catalogs.yaml --store s3://my-bucket/catalogs
  catalog-mirror sync https://catalogs.example.com /var/lib/catalog-mirror
  catalog-mirror verify --repair-from https://catalogs.example.com
  catalog-mirror gc --keep-days 7 --dry-run
  catalog-mirror render oci:./layout:v1 | jq -r .name
  catalog-mirror search kafka
  catalog-mirror validate ./configs
  catalog-mirror compose --explain imageset.yaml
  catalog-mirror diff --store /var/lib/catalog-mirror operatorhubio
  catalog-mirror images --package etcd --format skopeo-sync
  catalog-mirror manifests --url https://mirror.example

Exit codes:
  0   the command succeeded, whether or not it published something
  1   something failed, was refused or is damaged
  2   the command line is wrong
  10  with --detailed-exitcode: something was published; from diff: there are differences";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Poll the configured catalogs at their intervals and serve them.
    Serve(ServeArgs),
    /// Poll once, publish what has changed, and exit.
    Poll(PollArgs),
    /// Print the canonical JSON lines of a catalog, without a store.
    Render(RenderArgs),
    /// Print the lines of a catalog that is composed of parts of others, such as an ImageSetConfiguration selects.
    Compose(ComposeArgs),
    /// List the published catalogs, or the packages of one.
    Ls(LsArgs),
    /// Find packages by words in their names, keywords, APIs and descriptions.
    Search(SearchArgs),
    /// Check a catalog by the rules of `opm validate` and `opm serve`, and list all that it breaks.
    Validate(ValidateArgs),
    /// Check every object of the published and the earlier states against its hash.
    Verify(VerifyArgs),
    /// Remove objects that no published or kept state needs.
    Gc(GcArgs),
    /// Publish an earlier state of a catalog again, until its source changes or a poll is forced.
    Rollback(RollbackArgs),
    /// Show the changes between two states of a catalog, or between two sources.
    Diff(DiffArgs),
    /// List the images that catalogs, packages or channels need.
    Images(ImagesArgs),
    /// Print the manifests with which clusters use the mirror.
    Manifests(ManifestsArgs),
    /// Remove a catalog from the store. Its shards stay until `gc`.
    Rm(RmArgs),
    /// Bring a store up to date with another mirror.
    Sync(SyncArgs),
    /// Write an archive with the objects that another store lacks.
    Export(ExportArgs),
    /// Publish the content of an archive to the store.
    Import(ImportArgs),
    /// Print which objects the store holds, so that an export can leave them out.
    Receipt(ReceiptArgs),
    /// Create a key pair for signing publications.
    Keygen(KeygenArgs),
    /// Publish, serve and update a small example catalog, without network or configuration.
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Name of the shell: bash, zsh, fish, elvish or powershell.
        shell: Shell,
    },
}

impl Command {
    /// Returns true if the command runs until a signal ends it.
    pub(crate) const fn runs_for_long(&self) -> bool {
        match self {
            Self::Serve(_) => true,
            Self::Sync(sync) => sync.watch.is_some(),
            _ => false,
        }
    }
}

impl Cli {
    /// Returns the log filter for the command and the number of `-v`.
    ///
    /// Commands that run on log everything of interest. The others print their results, and the errors in them, so
    /// they leave out the log's `report` events, which say the same. With `-v` the log has them and the printed text
    /// has not (see `output::print_errors`).
    pub(crate) const fn log_filter(&self) -> &'static str {
        let runs_on = matches!(
            &self.command,
            Command::Serve(_) | Command::Sync(SyncArgs { watch: Some(_), .. })
        );
        // They turn a failed report into the error that `main` prints.
        let returns_error = matches!(&self.command, Command::Diff(_) | Command::Demo(_));
        match self.verbose {
            0 if runs_on => "info",
            0 => "warn,report=off",
            1 if returns_error => "info,report=off",
            1 => "info",
            _ => "debug",
        }
    }
}
