use std::{error::Error, time::Duration};

use async_trait::async_trait;
use http_api::{Locate, Location};
use model::Key;
use store::s3::S3Store;

/// Lifetime of a URL: the time to begin a download, since one that has begun goes on after it. The credentials that sign it live
/// for hours.
const EXPIRES: Duration = Duration::from_secs(15 * 60);

/// Time for which caches may repeat a redirect: as long as a pointer is fresh, because the redirect depends on the published state.
/// The oldest one still leaves 14 minutes. The URL is not a secret: all users of the mirror may read the object.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Finds presigned URLs of objects in a private bucket.
#[derive(Debug, Clone)]
pub struct Presigned(S3Store);

impl Presigned {
    /// Takes the store whose credentials sign the URLs.
    pub const fn new(store: S3Store) -> Self {
        Self(store)
    }
}

#[async_trait]
impl Locate for Presigned {
    async fn locate(&self, key: &Key) -> Result<Location, Box<dyn Error + Send + Sync>> {
        Ok(Location {
            url: self.0.presign(key, EXPIRES).await?,
            max_age: MAX_AGE,
        })
    }
}
