//! Stores of the command line: parsing `--store` and opening what it names.

use std::{ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::builder::{OsStringValueParser, TypedValueParser};
use config::Config;
use store::{FolderStore, S3Location, S3LocationError, Store};

use crate::{
    cli::{KeyArgs, S3Args, StoreArgs},
    wiring,
};

const DEFAULT_STORE: &str = "store";

/// Time for which `serve` uses a pointer from a folder without asking again. No reader notices it, and a burst of requests does
/// not ask the file system for each of them, which is a tenth of the cost of a 304.
const FOLDER_FRESHNESS: Duration = Duration::from_millis(1);

/// Time for which `serve` uses a pointer from S3 without asking again. Too short to be noticed as stale, and long enough
/// that a burst of readers costs one request.
const S3_FRESHNESS: Duration = Duration::from_secs(1);

/// The location of a store, as `--store` or the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorePlace {
    /// A folder of the local file system.
    Folder(PathBuf),
    /// A bucket, or a prefix in one.
    S3(S3Location),
}

/// An invalid location of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StorePlaceError {
    /// An empty text, such as an unset variable of a template.
    #[error("the store has no name: write a folder or s3://BUCKET[/PREFIX]")]
    Empty,
    /// A URL of S3 that names no bucket or a wrong prefix.
    #[error(transparent)]
    S3(#[from] S3LocationError),
}

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

impl StorePlace {
    pub(crate) fn parse(text: OsString) -> Result<Self, StorePlaceError> {
        match text.to_str() {
            Some("") => Err(StorePlaceError::Empty),
            Some(text) if S3Location::is_meant(text) => Ok(Self::S3(text.parse()?)),
            _ => Ok(Self::Folder(text.into())),
        }
    }

    /// Returns the parser for clap. The name of a folder need not be UTF-8.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }

    /// Returns true if a plain `all.json` is stored too, because a bucket cannot decompress.
    pub(crate) fn wants_identity(&self) -> bool {
        matches!(self, Self::S3(_))
    }

    /// Returns the time for which a pointer from the store is used without asking again.
    pub(crate) fn freshness(&self) -> Duration {
        match self {
            Self::Folder(_) => FOLDER_FRESHNESS,
            Self::S3(_) => S3_FRESHNESS,
        }
    }

    /// Opens the store. `s3` applies if it is a bucket.
    pub(crate) async fn open(&self, access: Access, s3: &S3Args) -> anyhow::Result<Arc<dyn Store>> {
        match (self, access) {
            (Self::Folder(path), Access::Read) => {
                let store = FolderStore::open_read_only(path).context("cannot open the store")?;
                Ok(Arc::new(store))
            }
            (Self::Folder(path), Access::Write | Access::Create) => {
                anyhow::ensure!(
                    access == Access::Create || path.is_dir(),
                    "the store {} does not exist",
                    path.display()
                );
                Ok(Arc::new(FolderStore::open(path).context("cannot open the store")?))
            }
            (Self::S3(place), _) => s3.open(place, access).await,
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
        self.place_alone(None)?.open(access, &self.s3).await
    }

    fn location(&self, config: &Config) -> anyhow::Result<StorePlace> {
        match (&self.store, &config.store) {
            (Some(place), _) => Ok(place.clone()),
            (None, Some(text)) => StorePlace::parse(text.into()).context("store of the configuration"),
            (None, None) => Ok(StorePlace::Folder(DEFAULT_STORE.into())),
        }
    }
}

impl S3Args {
    #[cfg(feature = "s3")]
    async fn open(&self, place: &S3Location, access: Access) -> anyhow::Result<Arc<dyn Store>> {
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
    async fn open(&self, place: &S3Location, _: Access) -> anyhow::Result<Arc<dyn Store>> {
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

    #[test]
    fn store_place_scheme_decides_kind() {
        let parse = |text: &str| StorePlace::parse(text.into());
        assert_eq!(parse("./s3"), Ok(StorePlace::Folder("./s3".into())));
        assert_eq!(parse("s3:/x"), Ok(StorePlace::Folder("s3:/x".into())));
        assert_eq!(parse("s3://bucket/a").unwrap().to_string(), "s3://bucket/a");
        assert!(matches!(
            parse("s3://"),
            Err(StorePlaceError::S3(S3LocationError::Bucket(_)))
        ));
        assert_eq!(parse(""), Err(StorePlaceError::Empty));
    }

    #[tokio::test]
    async fn open_for_writing_does_not_create_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::Folder(folder.path().join("missing"));
        for access in [Access::Read, Access::Write] {
            assert!(place.open(access, &S3Args::default()).await.is_err(), "{access:?}");
            assert!(!folder.path().join("missing").exists(), "{access:?}");
        }
        assert!(place.open(Access::Create, &S3Args::default()).await.is_ok());
        assert!(place.open(Access::Write, &S3Args::default()).await.is_ok());
    }
}
