//! The catalogs of a command, and the registries and servers that they come from.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use config::{ConfigLoader, host_and_port, named_catalog, platform, poll_interval};
use publish::Catalog;
use source::{RegistriesConf, TargetPlatform};

use crate::args::{KeyArgs, StoreArgs};

const REGISTRIES: &str = "Registries";

/// Store and registries of a command that reads catalogs of either.
#[derive(Debug, Args)]
pub(crate) struct CatalogAccess {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CatalogArgs {
    /// Catalog to mirror, such as operatorhubio=quay.io/operatorhubio/catalog:latest. May be
    /// repeated.
    #[arg(long = "catalog", value_name = "NAME=SOURCE", value_parser = named_catalog)]
    pub(crate) named_catalogs: Vec<Catalog>,
    /// Time between two polls of catalogs that configure none, from 1s to 365d.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    pub(crate) interval: Duration,
    /// Store an uncompressed all.json too, for static file servers that cannot decompress. Default:
    /// true on S3.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) identity: Option<bool>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RegistryArgs {
    /// Credential file, as `podman login --authfile` writes it. May be repeated.
    /// Default: REGISTRY_AUTH_FILE, else the files of podman and docker.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) auth_file: Vec<PathBuf>,
    /// File of header fields for the web server of an archive or of another mirror, one a line,
    /// such as `Authorization: Bearer ...`. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]=FILE", value_parser = header_file)]
    pub(crate) header_file: Vec<(String, PathBuf)>,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// Registry without TLS. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]", value_parser = host_and_port)]
    pub(crate) plain_http: Vec<String>,
    /// Host on a private or loopback address to which redirects and token realms of other
    /// registries may lead. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]", value_parser = host_and_port)]
    pub(crate) internal_host: Vec<String>,
    /// File of mirrors and of blocked registries, as podman and skopeo read it. Default:
    /// CONTAINERS_REGISTRIES_CONF, else the files of this host.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) registries_conf: Option<PathBuf>,
    /// Limit of an image or a catalog in place of its default, such as documents=900000. May be
    /// repeated. CONFIGURATION.md lists them.
    #[arg(long, help_heading = REGISTRIES, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<String>,
    /// Platform of the image to read from a multi-platform index. Default: linux/amd64.
    #[arg(long, help_heading = REGISTRIES, value_name = "OS/ARCH", value_parser = platform)]
    pub(crate) platform: Option<TargetPlatform>,
}

/// Parses a host and the file of the header fields for it.
fn header_file(text: &str) -> Result<(String, PathBuf), String> {
    let (host, path) = text.split_once('=').ok_or("write HOST[:PORT]=FILE")?;
    Ok((host_and_port(host)?, PathBuf::from(path)))
}

impl RegistryArgs {
    /// Returns the files of the rules for registries.
    pub(crate) fn rules(&self) -> RegistriesConf {
        RegistriesConf::of_host(self.registries_conf.as_deref())
    }

    /// Adds these settings to those of the files.
    pub(crate) fn apply(&self, loader: &mut ConfigLoader) {
        self.limit.iter().for_each(|limit| loader.limit(limit));
        loader.registry_rules(&self.rules());
        let settings = &mut loader.config.images;
        settings.auth_files.extend(self.auth_file.iter().cloned());
        for (host, path) in &self.header_file {
            settings.header_files.insert(host, path.clone());
        }
        settings.http.ca_files.extend(self.ca_file.iter().cloned());
        settings
            .http
            .plain_http
            .extend(self.plain_http.iter().cloned());
        settings
            .http
            .internal_hosts
            .extend(self.internal_host.iter().cloned());
        if let Some(platform) = &self.platform {
            settings.platform = platform.clone();
        }
    }
}

/// Returns true for a source. The name of a catalog contains none of these characters, and no
/// folder is named like the last two.
pub(crate) fn is_source(text: &str) -> bool {
    text.contains([':', '/']) || matches!(text, "." | "..")
}
