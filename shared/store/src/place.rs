use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use crate::{S3Location, S3LocationError};

/// Time for which a server uses a pointer from a folder without asking again. No reader notices it, and a burst of requests does
/// not ask the file system for each of them, which is a tenth of the cost of a 304.
const FOLDER_FRESHNESS: Duration = Duration::from_millis(1);

/// Time for which a server uses a pointer from S3 without asking again. Too short to be noticed as stale, and long enough
/// that a burst of readers costs one request.
const S3_FRESHNESS: Duration = Duration::from_secs(1);

/// The location of a store, as a command line or a configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A folder of the local file system.
    Folder(PathBuf),
    /// A bucket, or a prefix in one.
    S3(S3Location),
}

/// An invalid location of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorePlaceError {
    /// An empty text, such as an unset variable of a template.
    #[error("the store has no name: write a folder or s3://BUCKET[/PREFIX]")]
    Empty,
    /// A URL of S3 that names no bucket or a wrong prefix.
    #[error(transparent)]
    S3(#[from] S3LocationError),
}

impl FromStr for StorePlace {
    type Err = StorePlaceError;

    /// Reads `s3://BUCKET[/PREFIX]`, or the path of a folder.
    fn from_str(text: &str) -> Result<Self, StorePlaceError> {
        match text {
            "" => Err(StorePlaceError::Empty),
            _ if S3Location::is_meant(text) => Ok(Self::S3(text.parse()?)),
            _ => Ok(Self::Folder(text.into())),
        }
    }
}

impl StorePlace {
    /// Returns true if a plain `all.json` is stored too, because a bucket cannot decompress.
    pub fn wants_identity(&self) -> bool {
        matches!(self, Self::S3(_))
    }

    /// Returns the time for which a server uses a pointer without asking the store again.
    pub fn freshness(&self) -> Duration {
        match self {
            Self::Folder(_) => FOLDER_FRESHNESS,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_place_scheme_decides_kind() {
        let parse = |text: &str| text.parse::<StorePlace>();
        assert_eq!(parse("./s3"), Ok(StorePlace::Folder("./s3".into())));
        assert_eq!(parse("s3:/x"), Ok(StorePlace::Folder("s3:/x".into())));
        assert_eq!(parse("s3://bucket/a").unwrap().to_string(), "s3://bucket/a");
        assert!(matches!(
            parse("s3://"),
            Err(StorePlaceError::S3(S3LocationError::Bucket(_)))
        ));
        assert_eq!(parse(""), Err(StorePlaceError::Empty));
    }
}
