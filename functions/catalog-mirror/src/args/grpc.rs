//! The registry API of OLM v0 beside the HTTP API.

use std::net::SocketAddr;

use clap::Args;
use model::CatalogName;

#[derive(Debug, Args)]
pub(crate) struct GrpcArgs {
    /// Address to answer the registry API of OLM v0 (gRPC) on, such as 0.0.0.0:50051. The first
    /// label of the host that a client asks is the catalog.
    #[arg(long, env = "CATALOG_MIRROR_GRPC", hide_env_values = true, value_name = "ADDRESS", value_parser = config::listen_address)]
    pub(crate) grpc: Option<SocketAddr>,
    /// Catalog for clients of --grpc whose host names none. Default: the only one.
    #[arg(long, value_name = "NAME", requires = "grpc")]
    pub(crate) grpc_catalog: Option<CatalogName>,
}
