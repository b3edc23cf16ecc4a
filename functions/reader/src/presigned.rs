use std::{error::Error, time::Duration};

use async_trait::async_trait;
use layout::Key;
use serve::{Locate, Location};
use store_s3::S3Store;

/// How long a URL holds. A download that has begun goes on after it, so this is the time to begin one; an instance has
/// the credentials that sign it for hours.
const EXPIRES: Duration = Duration::from_secs(15 * 60);

/// How long caches may repeat the redirect: as long as a pointer is fresh, so that it says which state is published,
/// and leaves whoever gets the oldest of them 14 minutes. The URL is no secret: it opens what anyone may read here.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Objects in a bucket that nobody else can read, for clients who are told where.
#[derive(Debug, Clone)]
pub struct Presigned(S3Store);

impl Presigned {
    /// Signs with the store's own credentials.
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
