//! Stores of the command line: parsing `--store` and opening what it names.

use std::sync::Arc;

use anyhow::Context;
use config::Config;
use store::{FolderStore, S3Location, Store, StorePlace};

use crate::{
    args::{KeyArgs, S3Args, StoreArgs},
    wiring,
};

const DEFAULT_STORE: &str = "store";

/// The use of a store, which decides how it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only reads. A read-only file system will do.
    Read,
    /// Changes a store that exists. A missing folder is an error: most likely a volume is not mounted, and maintenance
    /// of an empty store would succeed and hide that.
    Write,
    /// Writes, and creates a missing folder.
    Create,
}

impl StoreArgs {
    /// Returns the location on the command line, else in the configuration, else the default.
    pub(crate) fn place(&self, config: &Config) -> anyhow::Result<StorePlace> {
        let place = self.location(config)?;
        self.s3.check_used([&place])?;
        Ok(place)
    }

    /// Returns the location for a command that needs nothing else of the configuration. The options for S3 apply to
    /// `other` too.
    pub(crate) fn place_alone(&self, other: Option<&StorePlace>) -> anyhow::Result<StorePlace> {
        // The files are not even read if the command line names the store: a mistake elsewhere in them is no reason
        // not to look at a store.
        let config = match self.store {
            Some(_) => Config::default(),
            None => wiring::files_and_keys(&self.config, &KeyArgs::default())?,
        };
        let place = self.location(&config)?;
        self.s3.check_used([&place].into_iter().chain(other))?;
        Ok(place)
    }

    /// Opens the store for a command that needs nothing else of the configuration.
    pub(crate) async fn open_alone(&self, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        self.s3.open(&self.place_alone(None)?, access).await
    }

    fn location(&self, config: &Config) -> anyhow::Result<StorePlace> {
        match (&self.store, &config.store) {
            (Some(place), _) => Ok(place.clone()),
            (None, Some(text)) => text.parse().context("store of the configuration"),
            (None, None) => Ok(StorePlace::Folder(DEFAULT_STORE.into())),
        }
    }
}

impl S3Args {
    /// Opens the store. These settings apply if it is a bucket.
    pub(crate) async fn open(&self, place: &StorePlace, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        match (place, access) {
            (StorePlace::Folder(path), Access::Read) => {
                let store = FolderStore::open_read_only(path).context("cannot open the store")?;
                Ok(Arc::new(store))
            }
            (StorePlace::Folder(path), Access::Write | Access::Create) => {
                anyhow::ensure!(
                    access == Access::Create || path.is_dir(),
                    "the store {} does not exist",
                    path.display()
                );
                Ok(Arc::new(FolderStore::open(path).context("cannot open the store")?))
            }
            (StorePlace::S3(place), _) => self.open_bucket(place, access).await,
        }
    }

    #[cfg(feature = "s3")]
    async fn open_bucket(&self, place: &S3Location, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        use store::s3::{S3Reader, S3Settings, S3Store, sdk_config};

        let settings = S3Settings {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            path_style: self.s3_path_style,
            single_writer: self.single_writer,
            ..S3Settings::default()
        };
        let config = sdk_config(&settings).await.context("cannot open the store")?;
        let store = S3Store::new(&config, place.clone(), &settings);
        if access == Access::Read {
            return Ok(Arc::new(S3Reader::new(store)));
        }
        // A server that ignores conditions would lose publications silently.
        store.check_writes().await.context("cannot open the store")?;
        Ok(Arc::new(store))
    }

    #[cfg(not(feature = "s3"))]
    async fn open_bucket(&self, place: &S3Location, _: Access) -> anyhow::Result<Arc<dyn Store>> {
        anyhow::bail!("this program was built without S3 and cannot open {place}: build it with `--features s3`")
    }

    /// Refuses options for S3 if no store is a bucket. They would have no effect, so one of the two is a mistake.
    pub(crate) fn check_used<'a>(&self, places: impl IntoIterator<Item = &'a StorePlace>) -> anyhow::Result<()> {
        let bucket = places.into_iter().any(|place| matches!(place, StorePlace::S3(_)));
        anyhow::ensure!(
            bucket || *self == Self::default(),
            "the store is a folder, and the options for S3 need a store such as s3://BUCKET/PREFIX"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn open_for_writing_does_not_create_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::Folder(folder.path().join("missing"));
        for access in [Access::Read, Access::Write] {
            assert!(S3Args::default().open(&place, access).await.is_err(), "{access:?}");
            assert!(!folder.path().join("missing").exists(), "{access:?}");
        }
        assert!(S3Args::default().open(&place, Access::Create).await.is_ok());
        assert!(S3Args::default().open(&place, Access::Write).await.is_ok());
    }
}
