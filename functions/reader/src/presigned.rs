use std::{error::Error, time::Duration};

use async_trait::async_trait;
use http_api::Locate;
use model::Key;
use store::s3::S3Store;

/// Lifetime of a URL: the time to begin a download, since one that has begun goes on after it. The credentials that sign it live
/// for hours. Caches repeat a redirect for a minute, so the oldest one leaves 14. The URL is not a secret: all users of the mirror
/// may read the object.
const EXPIRES: Duration = Duration::from_secs(15 * 60);

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
    async fn locate(&self, key: &Key) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(self.0.presign(key, EXPIRES).await?)
    }
}
