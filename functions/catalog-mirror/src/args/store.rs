//! The store of a command, and opening it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use config::Config;
#[cfg(feature = "s3")]
use store::s3::{S3Settings, S3Store, sdk_config};
use store::{FolderStore, Store, StorePlace};

use crate::args::{KeyArgs, files_and_keys};

pub(crate) const DEFAULT_STORE: &str = "./store";
const S3: &str = "S3";

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
