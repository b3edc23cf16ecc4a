mod consume;
mod copies;
mod keeping;
mod keys;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use config::{Pair, Registries};
use image::Source;
use layout::CatalogName;

use crate::{stores::StorePlace, version};

pub(crate) use self::copies::{Export, FromPlace, Import, Receipt, SyncArgs};
pub(crate) use self::keeping::{Gc, Verify};
pub(crate) use self::keys::{KeyArgs, Keygen, TrustArgs};
pub(crate) use consume::{Diff, Images, ImagesFormat, ManifestKind, Manifests};

/// Mirrors operator catalogs (OLM file-based catalogs) and serves them over HTTP.
///
/// A catalog image is pulled only when its digest has changed, and published to a store as compressed `all.json`, one
/// shard per package and one content hash. Everything is served with ETags, and catalogd's API works unchanged.
#[derive(Debug, Parser)]
#[command(name = "catalog-mirror", version = version::LONG, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How log lines on standard error look.
    #[arg(long, global = true, value_enum, default_value_t, env = "CATALOG_MIRROR_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Log more; twice for everything. RUST_LOG overrides it.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    verbose: u8,
}

const REGISTRIES: &str = "Registries";
const S3: &str = "S3";

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
  catalog-mirror diff --store /var/lib/catalog-mirror operatorhubio
  catalog-mirror images --package etcd --format skopeo-sync
  catalog-mirror manifests --url https://mirror.example

Exit codes:
  0   all is well; after a poll, sync or import: nothing has changed for readers
  1   something failed, was refused or is damaged
  2   the command line is wrong
  10  a poll, sync or import published something, or what was compared differs";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Poll the configured catalogs at their intervals and serve them.
    Serve(Serve),
    /// Poll once, publish what has changed, and exit: 0 unchanged, 10 changed, 1 failed.
    Poll(Poll),
    /// Print a catalog's canonical JSON lines, without any store.
    Render(Render),
    /// List what the store publishes.
    Ls(Ls),
    /// Hash everything again that the published catalogs and their earlier publications name.
    Verify(Verify),
    /// Remove what no published or kept state names, old states included.
    Gc(Gc),
    /// Publish an earlier content of a catalog again; it stays until its source moves or a poll is forced.
    Rollback(Rollback),
    /// Tell what changed between two states of a catalog, or between two sources.
    Diff(Diff),
    /// List every image that the chosen catalogs, packages or channels need.
    Images(Images),
    /// Print the manifests by which clusters consume the mirror.
    Manifests(Manifests),
    /// Take a catalog out of the store; its shards stay until `gc`.
    Rm(Rm),
    /// Bring a store up to date with a mirror: 0 unchanged, 10 changed, 1 failed.
    Sync(SyncArgs),
    /// Write an archive with what another store lacks, to be carried there.
    Export(Export),
    /// Take an archive into the store: 0 nothing new, 10 changed, 1 refused or failed.
    Import(Import),
    /// Print what the store holds, so that an export for it can leave that out.
    Receipt(Receipt),
    /// Make a key to sign what is published: the private one, and the public one for those who verify.
    Keygen(Keygen),
    /// Publish, serve and update a small example catalog, without network or configuration.
    Demo(Demo),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) catalogs: CatalogArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Serve what the store has and poll nothing; a read-only folder will do.
    #[arg(long)]
    pub(crate) no_poll: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Poll {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) catalogs: CatalogArgs,
    /// Pull although the digest is known, and publish although many packages are gone.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Poll only these catalogs of the configuration.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct Render {
    /// An image reference, `oci:DIR[:TAG]`, `dir:PATH`, or just a folder.
    #[arg(value_name = "SOURCE", value_parser = source)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// List the packages of this catalog instead of the catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<CatalogName>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true))]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The configuration, for its store and for the receivers that are told at once. Those of a mirror that is polled
    /// elsewhere are told by its next poll. May be repeated.
    #[arg(long, env = "CATALOG_MIRROR_CONFIG", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Go back to the publication before the current one.
    #[arg(long, group = "target")]
    pub(crate) previous: bool,
    /// Publish it although the source is verified and this was not, or under another policy.
    #[arg(long)]
    pub(crate) unverified: bool,
    /// The catalog.
    #[arg(value_name = "NAME")]
    pub(crate) name: CatalogName,
    /// The content to publish again; its first digits will do.
    #[arg(value_name = "CONTENT_HASH", group = "target")]
    pub(crate) content_hash: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The catalogs to remove.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// When the example catalog is updated.
    #[arg(long, default_value = "20s", value_parser = humantime::parse_duration)]
    pub(crate) update_after: Duration,
    /// Stop after the update instead of serving on.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Where the objects live: a folder, or s3://BUCKET[/PREFIX]. Default: the configuration's `store`, else ./store.
    #[arg(long, env = "CATALOG_MIRROR_STORE", value_name = "DIR|S3", value_parser = StorePlace::parser())]
    pub(crate) store: Option<StorePlace>,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

/// Credentials, and what is not said here, come from the environment and the profile, as for every AWS tool.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct S3Args {
    /// The URL of an S3-compatible server. Default: AWS_ENDPOINT_URL_S3, else AWS.
    #[arg(long, help_heading = S3, value_name = "URL")]
    pub(crate) s3_endpoint: Option<String>,
    /// The bucket's region. Default: AWS_REGION, else the profile's.
    #[arg(long, help_heading = S3, value_name = "REGION")]
    pub(crate) s3_region: Option<String>,
    /// Name the bucket in the path rather than in the host, as most servers but AWS want it.
    #[arg(long, help_heading = S3)]
    pub(crate) s3_path_style: bool,
    /// Write to a server that ignores the conditions of writes; there must be no other writer.
    #[arg(long, help_heading = S3)]
    pub(crate) single_writer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatalogArgs {
    /// The configuration: catalogs.yaml and ClusterCatalog manifests, mixed as one likes. May be repeated.
    #[arg(long, env = "CATALOG_MIRROR_CONFIG", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// A catalog to mirror, such as operatorhubio=quay.io/operatorhubio/catalog:latest. May be repeated.
    #[arg(long = "catalog", value_name = "NAME=SOURCE")]
    pub(crate) pairs: Vec<Pair>,
    /// How often catalogs are polled whose configuration does not say.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) interval: Duration,
    /// Store a plain all.json too, for static file servers that cannot decompress. Default: only on S3.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) identity: Option<bool>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RegistryArgs {
    /// A file with credentials, as `podman login --authfile` writes it. May be repeated.
    /// Default: REGISTRY_AUTH_FILE, else where podman and docker keep theirs.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) auth_file: Vec<PathBuf>,
    /// A bundle of certificates to trust besides the system's. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// A registry that is spoken to without TLS. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]")]
    pub(crate) plain_http: Vec<String>,
    /// A host on a private or loopback address that redirects and token realms of a registry elsewhere may lead to.
    /// May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]")]
    pub(crate) internal_host: Vec<String>,
    /// Which image of a multi-platform index to read; catalogs hold the same FBC for all.
    #[arg(long, help_heading = REGISTRIES, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Where to listen.
    #[arg(long, env = "CATALOG_MIRROR_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Speak TLS with this chain of certificates, PEM; it is read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Answer only to those whom this file names, one a line: NAME:$2y$... (htpasswd -B) or NAME:sha256:HEX.
    #[arg(long, value_name = "FILE")]
    pub(crate) readers: Option<PathBuf>,
    /// Memory for hot shards, indexes and catalogs, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub(crate) cache_size: u64,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl From<LogFormat> for telemetry::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

impl From<&ListenArgs> for config::Server {
    fn from(args: &ListenArgs) -> Self {
        Self {
            tls_cert: args.tls_cert.clone(),
            tls_key: args.tls_key.clone(),
            readers: args.readers.clone(),
            ..Self::default()
        }
    }
}

impl From<RegistryArgs> for Registries {
    fn from(args: RegistryArgs) -> Self {
        Self {
            auth_files: args.auth_file,
            ca_files: args.ca_file,
            plain_http: args.plain_http,
            internal_hosts: args.internal_host,
            platform: args.platform,
        }
    }
}

impl Cli {
    /// A server tells what it does; other commands print results and only warn.
    pub(crate) const fn log_filter(&self) -> &'static str {
        match (&self.command, self.verbose) {
            (Command::Serve(_) | Command::Sync(SyncArgs { watch: Some(_), .. }), 0) | (_, 1) => "info",
            (_, 0) => "warn",
            _ => "debug",
        }
    }
}

/// For `render`, a folder needs no prefix: that is what users of `opm render` write.
pub(crate) fn source(text: &str) -> Result<Source, image::SourceError> {
    if std::path::Path::new(text).is_dir() {
        return Ok(Source::Dir(text.into()));
    }
    text.parse()
}
