//! Arguments that several commands share, and opening the store that they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use config::{
    Config, ConfigLoader, ConfigProblems, host_and_port, named_catalog, platform, poll_interval,
};
use publish::Catalog;
use source::TargetPlatform;
#[cfg(feature = "s3")]
use store::s3::{S3Settings, S3Store, sdk_config};
use store::{FolderStore, Store, StorePlace};

pub(crate) const DEFAULT_STORE: &str = "./store";
const REGISTRIES: &str = "Registries";
const S3: &str = "S3";
const SIGNATURES: &str = "Signatures";

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Store: a folder or s3://BUCKET[/PREFIX]. Default: `store` of the configuration, else
    /// ./store.
    #[arg(
        long,
        env = "CATALOG_MIRROR_STORE",
        hide_env_values = true,
        value_name = "DIR|S3"
    )]
    pub(crate) store: Option<StorePlace>,
    /// Configuration file: catalogs.yaml, ClusterCatalog manifests, or both. May be repeated.
    #[arg(
        long,
        env = "CATALOG_MIRROR_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) config: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

/// Store and registries of a command that reads catalogs of either.
#[derive(Debug, Args)]
pub(crate) struct CatalogAccess {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) registries: RegistryArgs,
}

/// Settings of the S3 client. The AWS environment variables and profile apply to everything that is
/// not set here.
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
    /// Limit of an image or a catalog in place of its default, such as documents=900000. May be
    /// repeated. CONFIGURATION.md lists them.
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
#[derive(Debug, Clone, Copy, Default, Args)]
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
    Ok((host_and_port(host)?, PathBuf::from(path)))
}

impl RegistryArgs {
    /// Adds these settings to those of the files.
    pub(crate) fn apply(&self, loader: &mut ConfigLoader) {
        self.limit.iter().for_each(|limit| loader.limit(limit));
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

/// The use of a store, which decides how it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only reads a store that exists. A read-only file system will do.
    Read,
    /// Only reads, also a folder that another process makes a store later.
    Follow,
    /// Changes a store that exists. A missing or empty folder is an error: most likely a volume is
    /// not mounted, and maintenance of an empty store would succeed and hide that.
    Write,
    /// Writes, and creates a missing folder.
    Create,
}

/// Refuses a folder that is not a store. One that has lost `catalogs.json` still has the documents
/// of its catalogs.
fn check_store(path: &Path) -> anyhow::Result<()> {
    // Another error than a missing file is told by opening the store.
    let is_store =
        ["catalogs.json", "catalogs"].map(|name| path.join(name).try_exists().unwrap_or(true));
    if is_store.contains(&true) {
        return Ok(());
    }
    let hint = if path == Path::new(DEFAULT_STORE) {
        "; this is the default, and --store or `store` of the configuration names another"
    } else {
        ""
    };
    let path = path.display();
    anyhow::bail!("{path} is not a store: it has no catalogs.json{hint}")
}

/// Returns the configuration of files and keys, for commands that poll nothing.
pub(crate) fn files_and_keys(files: &[PathBuf], keys: &KeyArgs) -> Result<Config, ConfigProblems> {
    // These commands poll nothing, so the interval for catalogs without their own does not matter.
    loader(Duration::ZERO, files, keys).finish()
}

pub(crate) fn loader(interval: Duration, files: &[PathBuf], keys: &KeyArgs) -> ConfigLoader {
    let mut loader = ConfigLoader::new(interval);
    // Only this program links OpenPGP; the Lambda functions leave its crates out.
    #[cfg(feature = "openpgp")]
    loader.openpgp(trust::openpgp::read_keyring);
    files.iter().for_each(|file| loader.file(file));
    for file in &keys.signing_key {
        loader.signing_key("--signing-key", &file.display().to_string());
    }
    for file in &keys.trust.verify_key {
        loader.verify_key("--verify-key", &file.display().to_string());
    }
    loader
}

impl StoreArgs {
    /// Returns the location on the command line, else in the configuration, else the default. The
    /// options for S3 apply to `other` too.
    pub(crate) fn place(
        &self,
        config: &Config,
        other: Option<&StorePlace>,
    ) -> anyhow::Result<StorePlace> {
        let place = match (&self.store, &config.store) {
            (Some(place), _) => place.clone(),
            (None, Some(text)) => text.parse().context("store of the configuration")?,
            (None, None) => StorePlace::Folder(DEFAULT_STORE.into()),
        };
        self.s3.check_used([&place].into_iter().chain(other))?;
        Ok(place)
    }

    /// Returns the location for a command that needs nothing else of the configuration.
    pub(crate) fn place_alone(&self, other: Option<&StorePlace>) -> anyhow::Result<StorePlace> {
        // The files are not even read if the command line names the store: a mistake elsewhere in
        // them is no reason not to look at a store.
        let config = match self.store {
            Some(_) => Config::default(),
            None => files_and_keys(&self.config, &KeyArgs::default())?,
        };
        self.place(&config, other)
    }

    /// Opens the store for a command that needs nothing else of the configuration.
    pub(crate) async fn open_alone(&self, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        self.s3.open(&self.place_alone(None)?, access).await
    }
}

#[cfg(not(feature = "s3"))]
pub(crate) fn without_s3(place: &store::S3Location) -> String {
    format!(
        "this program was built without S3 and cannot open {place}: build it with `--features s3`"
    )
}

impl S3Args {
    /// Opens the store. These settings apply if it is a bucket.
    pub(crate) async fn open(
        &self,
        place: &StorePlace,
        access: Access,
    ) -> anyhow::Result<Arc<dyn Store>> {
        match place {
            StorePlace::Folder(path) => {
                if matches!(access, Access::Read | Access::Write) {
                    check_store(path)?;
                }
                let store = match access {
                    Access::Read | Access::Follow => FolderStore::open_read_only(path),
                    Access::Write | Access::Create => FolderStore::open(path),
                };
                Ok(Arc::new(store?))
            }
            #[cfg(feature = "s3")]
            StorePlace::S3(place) => {
                let settings = self.settings();
                let config = sdk_config(&settings)
                    .await
                    .context("cannot open the store")?;
                let store = S3Store::new(&config, place.clone(), &settings);
                if matches!(access, Access::Write | Access::Create) {
                    // A server that ignores conditions would lose publications silently.
                    store
                        .check_writes()
                        .await
                        .context("cannot open the store")?;
                }
                Ok(Arc::new(store))
            }
            #[cfg(not(feature = "s3"))]
            StorePlace::S3(place) => anyhow::bail!(without_s3(place)),
        }
    }

    #[cfg(feature = "s3")]
    pub(crate) fn settings(&self) -> S3Settings {
        S3Settings {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            path_style: self.s3_path_style,
            proxy_of: Some(source::proxy_of_environment),
            ..S3Settings::default()
        }
    }

    /// Refuses options for S3 if no store is a bucket. They would have no effect, so one of the two
    /// is a mistake.
    pub(crate) fn check_used<'a>(
        &self,
        places: impl IntoIterator<Item = &'a StorePlace>,
    ) -> anyhow::Result<()> {
        let bucket = places
            .into_iter()
            .any(|place| matches!(place, StorePlace::S3(_)));
        anyhow::ensure!(
            bucket || *self == Self::default(),
            "the store is a folder, and the options for S3 need a store such as s3://BUCKET/PREFIX"
        );
        Ok(())
    }
}
