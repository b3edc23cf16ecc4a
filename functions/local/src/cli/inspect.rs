//! Arguments of the commands that read a store.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use config::poll_interval;
use model::CatalogName;
use olm::SEARCH_LIMIT_MAX;
use source::Source;
use sync::Address;

use super::{RegistryArgs, StoreArgs};

#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalog whose packages are listed, instead of the catalogs.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<CatalogName>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A package is found if it has all words: in its name, the names, keywords and kinds of APIs of its newest bundle, its \
provider or its descriptions. Case and accents do not count, the start of a word is enough, and one typo is forgiven.

Exit codes: 0 done, even if nothing was found, 1 a catalog cannot be searched.")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Search another mirror, its CDN or its bucket instead of the store.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) url: Option<Address>,
    /// PEM bundle of certificates to trust in addition to the system's, for --url. May be repeated.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// File of header fields to send to --url, one a line, such as `Authorization: Bearer ...`.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) header_file: Option<PathBuf>,
    /// Catalog to search. May be repeated. Default: all.
    #[arg(long, value_name = "NAME")]
    pub(crate) catalog: Vec<CatalogName>,
    /// Only the package of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Only packages of this category, such as Database.
    #[arg(long, value_name = "TEXT")]
    pub(crate) category: Option<String>,
    /// Only packages of this provider.
    #[arg(long, value_name = "TEXT")]
    pub(crate) provider: Option<String>,
    /// Only packages of this capability level, such as "Deep Insights".
    #[arg(long, value_name = "TEXT")]
    pub(crate) capability: Option<String>,
    /// Only packages for this CPU, such as arm64.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Maximum number of packages of each catalog.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = search_limit)]
    pub(crate) limit: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Words to find. Without any, all packages are listed.
    #[arg(value_name = "QUERY")]
    pub(crate) query: Vec<String>,
}

/// Parses a number of packages.
fn search_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=SEARCH_LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("write a number from 1 to {SEARCH_LIMIT_MAX}"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
A state is `previous` (default of OLD), `current` (default of NEW), a serial, or the first digits of a content hash (at \
least 7). Sources are written as for `render` and need no store.

Exit codes: 0 no differences, 10 differences, 1 failed.")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Print the JSON document of `GET /catalogs/{c}/changes` instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Catalog of the store, or the older of two sources, such as dir:before or quay.io/a/b:v1.
    #[arg(value_name = "NAME|SOURCE")]
    pub(crate) what: String,
    /// Older state of the catalog, or the newer source.
    #[arg(value_name = "OLD|SOURCE")]
    pub(crate) old: Option<String>,
    /// Newer state of the catalog. Default: the current one.
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --package and --channel the images of all bundles are listed. oc-mirror v2 takes only heads unless its \
configuration says `full: true`; --heads-only does the same here.

Exit codes: 0 done, 1 failed, or --check found an image missing or got no answer.")]
pub(crate) struct ImagesArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Package whose bundles are listed. May be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Channel whose bundles are listed. May be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// List only the heads of the channels.
    #[arg(long)]
    pub(crate) heads_only: bool,
    /// Format of the list.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ImagesFormat,
    /// Ask the registries with HEAD requests if each image exists.
    #[arg(long)]
    pub(crate) check: bool,
    /// Catalogs to read. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagesFormat {
    /// One reference a line, sorted.
    #[default]
    List,
    /// Every image with the packages and bundles that need it.
    Json,
    /// A file for `skopeo sync --src yaml`.
    SkopeoSync,
    /// An ImageSetConfiguration for oc-mirror v2.
    Imageset,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The rules are those of operator-registry v1.73.0. A catalog is valid if `opm validate` accepts it. opm stops at its first \
error; here all are found. Two rules are those of `opm serve` alone, with the severity `serve-error`. Icons give only \
warnings. Documents of other schemas, such as olm.bundle.v2, pass and are counted.

At most 1,000 findings are printed, with the number of all. The code of a rule, such as channel-cycle, never changes.

  catalog-mirror validate ./configs
  catalog-mirror validate quay.io/operatorhubio/catalog:latest --json | jq -r '.findings[].rule'
  catalog-mirror validate --store /var/lib/catalog-mirror operatorhubio

Exit codes: 0 no errors, 1 errors or the catalog cannot be read, 2 the command line is wrong.")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Source as for `render`, such as dir:configs or quay.io/a/b:v1, or the name of a catalog of the store. A source has a
    /// colon or a slash in it.
    #[arg(value_name = "SOURCE|NAME", value_parser = ValidatedCatalog::parse)]
    pub(crate) what: ValidatedCatalog,
}

/// A catalog to validate.
#[derive(Debug, Clone)]
pub(crate) enum ValidatedCatalog {
    /// Files of a source.
    Source(Source),
    /// Published state of a catalog in the store.
    Published(CatalogName),
}

impl ValidatedCatalog {
    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        match super::is_source(text) {
            true => Ok(Self::Source(super::source(text)?)),
            false => Ok(Self::Published(text.parse()?)),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Names are the same as those of oc-mirror v2: cc- or cs-, the repository, the tag, with dashes for dots. They do not \
change with --pin, so that subscriptions and GitOps keep pointing at them.

Exit codes: 0 done, 1 failed.")]
pub(crate) struct ManifestsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// URL of the mirror for clusters, such as `https://mirror.example:8443`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// Kind of the manifests: OLM v1 reads ClusterCatalog, OLM v0 reads CatalogSource.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: ManifestKind,
    /// Port of `serve --grpc`, for --kind catalogsource-address.
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    pub(crate) grpc_port: u16,
    /// Name the current image by its digest: clusters do not change until the manifest does.
    #[arg(long)]
    pub(crate) pin: bool,
    /// Time between two polls by clusters, from 1s to 365d. Rounded up to minutes.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    pub(crate) interval: Duration,
    /// Namespace of CatalogSources. Outside OpenShift it is `olm`.
    #[arg(long, default_value = "openshift-marketplace")]
    pub(crate) namespace: String,
    /// Catalogs to print manifests for. Default: all of the store.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    /// Both kinds, for clusters with OLM v0 and v1.
    #[default]
    All,
    /// Only ClusterCatalogs of olm.operatorframework.io/v1.
    Clustercatalog,
    /// Only CatalogSources of operators.coreos.com/v1alpha1.
    Catalogsource,
    /// CatalogSources that ask `serve --grpc` instead of a pod of their own, with a Service for each if --url names a Service.
    CatalogsourceAddress,
}
