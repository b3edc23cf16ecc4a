//! From `--store` to a store.

use std::{ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::builder::{OsStringValueParser, TypedValueParser};
use config::Config;
use store::{FolderStore, Store};
use store_s3::{Place, PlaceError, S3Reader, S3Store, sdk_config};

use crate::cli::{S3Args, StoreArgs};

const DEFAULT_STORE: &str = "store";

/// A bucket is asked over the network and for money, so pointers read from it are trusted for a moment: short enough
/// that nobody takes it for staleness, long enough that a burst of readers costs one request.
const S3_FRESHNESS: Duration = Duration::from_secs(1);

/// Where the objects live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorePlace {
    /// A folder.
    Folder(PathBuf),
    /// A bucket, or a part of one.
    S3(Place),
}

impl StorePlace {
    pub(crate) fn parse(text: OsString) -> Result<Self, PlaceError> {
        match text.to_str().filter(|text| Place::is_meant(text)) {
            Some(text) => text.parse().map(Self::S3),
            None => Ok(Self::Folder(text.into())),
        }
    }

    /// For the command line: a folder's name need not be UTF-8.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }

    /// Whether what serves the store cannot decompress, so that a plain `all.json` has to lie there too.
    pub(crate) fn wants_identity(&self) -> bool {
        matches!(self, Self::S3(_))
    }

    /// How long a pointer is trusted that was read from the store.
    pub(crate) fn freshness(&self) -> Duration {
        match self {
            Self::Folder(_) => Duration::ZERO,
            Self::S3(_) => S3_FRESHNESS,
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::S3(place) => place.fmt(f),
        }
    }
}

/// For commands with two stores: the options for S3 are meant for whichever is a bucket.
impl StorePlace {
    /// Opens the store to read only.
    pub(crate) async fn open_to_read(&self, s3: &S3Args) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Folder(path) => Ok(Arc::new(
                FolderStore::open_read_only(path).context("cannot open the store")?,
            )),
            Self::S3(place) => Ok(Arc::new(S3Reader::new(s3.open(place.clone()).await?))),
        }
    }

    /// Opens the store, making a folder if need be, and making sure that a bucket can be written to safely.
    pub(crate) async fn open(&self, s3: &S3Args) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            Self::Folder(path) => Ok(Arc::new(FolderStore::open(path).context("cannot open the store")?)),
            Self::S3(place) => {
                let store = s3.open(place.clone()).await?;
                store.check_writes().await.context("cannot open the store")?;
                Ok(Arc::new(store))
            }
        }
    }
}

impl StoreArgs {
    /// What the command line or else the configuration names.
    pub(crate) fn place(&self, config: &Config) -> anyhow::Result<StorePlace> {
        match (&self.store, &config.store) {
            (Some(place), _) => Ok(place.clone()),
            (None, Some(text)) => StorePlace::parse(text.into()).context("the configuration's store"),
            (None, None) => Ok(StorePlace::Folder(DEFAULT_STORE.into())),
        }
    }

    /// Opens the store to read only.
    pub(crate) async fn open_to_read(&self, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
        let place = self.place(config)?;
        self.s3.suits([&place])?;
        place.open_to_read(&self.s3).await
    }

    /// Opens the store, making a folder if need be, and making sure that a bucket can be written to safely.
    pub(crate) async fn open(&self, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
        let place = self.place(config)?;
        self.s3.suits([&place])?;
        place.open(&self.s3).await
    }
}

impl S3Args {
    async fn open(&self, place: Place) -> anyhow::Result<S3Store> {
        let settings = store_s3::Settings {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            path_style: self.s3_path_style,
            single_writer: self.single_writer,
            ..store_s3::Settings::default()
        };
        let config = sdk_config(&settings).await.context("cannot open the store")?;
        Ok(S3Store::new(&config, place, &settings))
    }

    /// What would change nothing is a mistake.
    pub(crate) fn suits<'a>(&self, places: impl IntoIterator<Item = &'a StorePlace>) -> anyhow::Result<()> {
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

    #[test]
    fn a_store_is_a_bucket_only_where_it_says_so() {
        let parse = |text: &str| StorePlace::parse(text.into());
        assert_eq!(parse("./s3"), Ok(StorePlace::Folder("./s3".into())));
        assert_eq!(parse("s3:/x"), Ok(StorePlace::Folder("s3:/x".into())));
        assert_eq!(parse("s3://bucket/a").unwrap().to_string(), "s3://bucket/a");
        assert!(matches!(parse("s3://"), Err(PlaceError::Bucket(_))));
    }
}
