//! Arguments that several commands share.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use config::{ConfigLoader, NamedSource, host_and_port, platform, poll_interval};
use source::{PlainHttp, Source, SourceError, TargetPlatform};
use store::StorePlace;

const REGISTRIES: &str = "Registries";
const S3: &str = "S3";
const SIGNATURES: &str = "Signatures";

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Store: a folder or s3://BUCKET[/PREFIX]. Default: `store` of the configuration, else ./store.
    #[arg(long, env = "CATALOG_MIRROR_STORE", value_name = "DIR|S3")]
    pub(crate) store: Option<StorePlace>,
    /// Configuration file: catalogs.yaml, ClusterCatalog manifests, or both. May be repeated.
    #[arg(long, env = "CATALOG_MIRROR_CONFIG", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

/// Settings of the S3 client. The AWS environment variables and profile apply to everything that is not set here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct S3Args {
    /// URL of an S3-compatible server. Default: AWS_ENDPOINT_URL_S3, else AWS.
    #[arg(long, help_heading = S3, value_name = "URL")]
    pub(crate) s3_endpoint: Option<String>,
    /// Region of the bucket. Default: AWS_REGION, else the region of the profile.
    #[arg(long, help_heading = S3, value_name = "REGION")]
    pub(crate) s3_region: Option<String>,
    /// Put the bucket into the path instead of the host name. Most servers other than AWS need it.
    #[arg(long, help_heading = S3)]
    pub(crate) s3_path_style: bool,
    /// Write to a server that ignores conditional writes. There must be no other writer.
    #[arg(long, help_heading = S3)]
    pub(crate) single_writer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatalogArgs {
    /// Catalog to mirror, such as operatorhubio=quay.io/operatorhubio/catalog:latest. May be repeated.
    #[arg(long = "catalog", value_name = "NAME=SOURCE")]
    pub(crate) named_sources: Vec<NamedSource>,
    /// Time between two polls of catalogs that configure none, from 1s to 365d.
    #[arg(long, default_value = "10m", value_parser = poll_interval)]
    pub(crate) interval: Duration,
    /// Store an uncompressed all.json too, for static file servers that cannot decompress. Default: true on S3.
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
    /// File of header fields for the web server of an archive or of another mirror, one a line, such as
    /// `Authorization: Bearer ...`. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]=FILE", value_parser = header_file)]
    pub(crate) header_file: Vec<(String, PathBuf)>,
    /// PEM bundle of certificates to trust in addition to the system's. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "FILE")]
    pub(crate) ca_file: Vec<PathBuf>,
    /// Registry without TLS. May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]", value_parser = host_and_port)]
    pub(crate) plain_http: Vec<String>,
    /// Host on a private or loopback address to which redirects and token realms of other registries may lead.
    /// May be repeated.
    #[arg(long, help_heading = REGISTRIES, value_name = "HOST[:PORT]", value_parser = host_and_port)]
    pub(crate) internal_host: Vec<String>,
    /// Limit of an image or a catalog in place of its default, such as documents=900000. May be repeated. CONFIGURATION.md lists
    /// them.
    #[arg(long, help_heading = REGISTRIES, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<String>,
    /// Platform of the image to read from a multi-platform index. Default: linux/amd64.
    #[arg(long, help_heading = REGISTRIES, value_name = "OS/ARCH", value_parser = platform)]
    pub(crate) platform: Option<TargetPlatform>,
}

/// Keys of a mirror that publishes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeyArgs {
    /// Private key that signs publications. May be repeated: each key signs.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) signing_key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// Keys that verify what others have published.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TrustArgs {
    /// Public key. Publications must be signed by one of these keys. May be repeated.
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    pub(crate) verify_key: Vec<PathBuf>,
}

/// Report of a command that may publish something.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ReportArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 10 instead of 0 if something was published.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// Parses a host and the file of the header fields for it.
fn header_file(text: &str) -> Result<(String, PathBuf), String> {
    let (host, path) = text.split_once('=').ok_or("write HOST[:PORT]=FILE")?;
    let host = host_and_port(host).map_err(|error| error.to_string())?;
    Ok((host, PathBuf::from(path)))
}

impl RegistryArgs {
    /// Adds these settings to those of the files.
    pub(crate) fn apply(&self, loader: &mut ConfigLoader) {
        self.limit.iter().for_each(|limit| loader.limit(limit));
        let settings = loader.sources();
        settings.auth_files.extend(self.auth_file.iter().cloned());
        for (host, path) in &self.header_file {
            settings.header_files.insert(host, path.clone());
        }
        settings.http.ca_files.extend(self.ca_file.iter().cloned());
        if let PlainHttp::Hosts(hosts) = &mut settings.http.plain_http {
            hosts.extend(self.plain_http.iter().cloned());
        }
        settings.http.internal_hosts.extend(self.internal_host.iter().cloned());
        if let Some(platform) = &self.platform {
            settings.platform = platform.clone();
        }
    }
}

/// Returns true for a source. The name of a catalog contains none of these characters, and no folder is named like the last two.
pub(crate) fn is_source(text: &str) -> bool {
    text.contains([':', '/']) || matches!(text, "." | "..")
}

/// Parses a source. A folder needs no `dir:`, as for `opm render`.
pub(crate) fn source(text: &str) -> Result<Source, SourceError> {
    if Path::new(text).is_dir() {
        return Ok(Source::Dir(text.into()));
    }
    text.parse()
}
