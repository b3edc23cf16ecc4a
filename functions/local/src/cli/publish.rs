//! Arguments of the commands that pull and publish catalogs.

use std::{net::SocketAddr, time::Duration};

use clap::{ArgGroup, Args};
use model::CatalogName;
use source::Source;

use super::{CatalogArgs, KeyArgs, RegistryArgs, ReportArgs, ServerArgs, StoreArgs};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) catalogs: CatalogArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Serve the store and poll nothing. The store may be read-only.
    #[arg(long)]
    pub(crate) no_poll: bool,
    /// Address to answer the registry API of OLM v0 (gRPC) on, such as 0.0.0.0:50051. The first label of the host that a
    /// client asks is the catalog.
    #[arg(long, env = "CATALOG_MIRROR_GRPC", value_name = "ADDRESS")]
    pub(crate) grpc: Option<SocketAddr>,
    /// Catalog for clients of --grpc whose host names none. Default: the only one.
    #[arg(long, value_name = "NAME", requires = "grpc")]
    pub(crate) grpc_catalog: Option<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct PollArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) catalogs: CatalogArgs,
    /// Pull even if the digest is known or has failed for good, and publish even if many packages are gone.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Catalogs of the configuration to poll. Default: all.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<CatalogName>,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// Image reference, `https://HOST/PATH.tar.gz[#PATH]`, `git:https://HOST/PATH[#REF[:PATH]]`, `oci:DIR[:TAG]`, `dir:PATH` or a folder.
    #[arg(value_name = "SOURCE", value_parser = source)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true))]
#[command(after_help = "\
With --config the receivers in `notify` get their events at once. Receivers of a mirror that is polled elsewhere get them by \
its next poll.")]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    /// Publish the state before the current one.
    #[arg(long, group = "target")]
    pub(crate) previous: bool,
    /// Publish a state that was not verified, or under another policy, although the source is verified now.
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Name of the catalog.
    #[arg(value_name = "NAME")]
    pub(crate) name: CatalogName,
    /// Content hash of the state to publish, or its first digits.
    #[arg(value_name = "CONTENT_HASH", group = "target")]
    pub(crate) content_hash: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Time until the example catalog is updated.
    #[arg(long, default_value = "20s", value_parser = config::duration)]
    pub(crate) update_after: Duration,
    /// Exit after the update instead of serving on.
    #[arg(long)]
    pub(crate) once: bool,
}

/// Returns true for a source. The name of a catalog contains none of these characters, and no folder is named like the last two.
pub(crate) fn is_source(text: &str) -> bool {
    text.contains([':', '/']) || matches!(text, "." | "..")
}

/// Parses a source. A folder needs no `dir:`, as for `opm render`.
pub(crate) fn source(text: &str) -> Result<Source, source::SourceError> {
    if std::path::Path::new(text).is_dir() {
        return Ok(Source::Dir(text.into()));
    }
    text.parse()
}
