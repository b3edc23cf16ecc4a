use std::{fmt, sync::Arc};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_s3::{
    Client,
    config::{self, RequestChecksumCalculation, retry::RetryConfig},
};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use model::Key;
use tokio::sync::OnceCell;

use crate::{
    Condition, Fetched, Get, Listed, ObjectInfo, Operation, ReadStore, S3Location, Staged, Stat, Store, StoreError,
    Version,
    s3::{
        S3Settings,
        attempts::{Exchange, TooManyWrites},
        fault, list,
        read::lacking,
        staged::StagedObject,
    },
};

/// Store in a bucket. Clones share it.
#[derive(Clone)]
pub struct S3Store {
    pub(crate) bucket: Arc<Bucket>,
}

pub(crate) struct Bucket {
    pub(crate) client: Client,
    place: S3Location,
    pub(crate) settings: S3Settings,
    /// Set once the endpoint has shown that it honours conditions.
    pub(crate) probed: OnceCell<()>,
}

/// Returns the client of a bucket. This makes no request.
pub fn client(config: &SdkConfig, settings: &S3Settings) -> Client {
    let mut builder = config::Builder::from(config)
        .force_path_style(settings.path_style)
        .retry_classifier(TooManyWrites)
        // Every write of the store names its sha256. By default the SDK computes a CRC32 and sends it in a trailer, which some
        // servers refuse.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired);
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    Client::from_conf(builder.build())
}

impl S3Store {
    /// Returns the store at `place`. This makes no request.
    pub fn new(config: &SdkConfig, place: S3Location, settings: &S3Settings) -> Self {
        let bucket = Bucket {
            client: client(config, settings),
            place,
            settings: settings.clone(),
            probed: OnceCell::new(),
        };
        Self {
            bucket: Arc::new(bucket),
        }
    }

    /// Returns the location of the objects.
    pub fn place(&self) -> &S3Location {
        &self.bucket.place
    }
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Store").field(&self.place().to_string()).finish()
    }
}

#[async_trait]
impl ReadStore for S3Store {
    async fn get(&self, key: &Key, get: Get) -> Result<Fetched, StoreError> {
        self.read(key, get).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, StoreError> {
        self.look_at(key, &Exchange::default()).await
    }
}

#[async_trait]
impl Store for S3Store {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        let exchange = Exchange::default();
        let object = self.look_at(key, &exchange).await?;
        // Collection waits by this clock. Our own would let it delete too early where ours is ahead.
        let date = exchange.date().ok_or_else(|| lacking(Operation::Get, key, "Date"))?;
        Ok(Stat { date, object })
    }

    async fn put(&self, key: &Key, bytes: Bytes, condition: Condition) -> Result<Version, StoreError> {
        self.write(key, &bytes.into(), &condition).await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        Ok(Box::new(StagedObject::new(self.clone())))
    }

    /// Does nothing: S3 answers a write when it is stored in several places (Amazon S3 User Guide, "Data protection").
    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        let request = self.bucket.client.delete_object().bucket(&self.place().bucket);
        let request = request.key(self.place().name(&key.to_string())).customize();
        // A repeated delete could come after the object was written again.
        let once = config::Config::builder().retry_config(RetryConfig::disabled());
        match request.config_override(once).send().await {
            Ok(_) => Ok(()),
            Err(error) if fault::meaning(&error) == fault::Meaning::Missing => Ok(()),
            Err(error) => Err(fault::failed(Operation::Delete, key, error)),
        }
    }

    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        list::list(self.clone(), prefix)
    }
}
