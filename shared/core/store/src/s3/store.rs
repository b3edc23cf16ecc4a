use std::{fmt, sync::Arc};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{self, RequestChecksumCalculation};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::{Client, types};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use model::Key;
use tokio::sync::OnceCell;

use crate::s3::attempts::{Exchange, TooManyWrites};
use crate::s3::read::{lacking, time};
use crate::s3::staged::{ObjectBytes, StagedObject};
use crate::s3::{S3Settings, fault};
use crate::{Condition, Listed, Operation, S3Location, Staged, Stat, Store, StoreError, Version};

/// Store in a bucket. Clones share it.
#[derive(Clone)]
pub struct S3Store {
    pub(crate) bucket: Arc<Bucket>,
}

pub(crate) struct Bucket {
    pub(crate) client: Client,
    pub(crate) place: S3Location,
    pub(crate) settings: S3Settings,
    /// Set once the endpoint has shown that it honours conditions.
    pub(crate) probed: OnceCell<()>,
}

/// Returns the client of a bucket. This makes no request.
pub fn client(config: &SdkConfig, settings: &S3Settings) -> Client {
    let mut builder = config::Builder::from(config)
        .force_path_style(settings.path_style)
        .retry_classifier(TooManyWrites)
        // Every write of the store names its sha256. By default the SDK computes a CRC32 and sends
        // it in a trailer, which some servers refuse.
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
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("S3Store")
            .field(&self.bucket.place.to_string())
            .finish()
    }
}

#[async_trait]
impl Store for S3Store {
    async fn stat(&self, key: &Key) -> Result<Stat, StoreError> {
        let exchange = Exchange::default();
        let object = self.look_at(key, &exchange).await?;
        // Collection waits by this clock. Our own would let it delete too early where ours is
        // ahead.
        match exchange.date() {
            Some(date) => Ok(Stat { date, object }),
            None => Err(lacking(Operation::Get, key, "Date")),
        }
    }

    async fn put(
        &self,
        key: &Key,
        bytes: Bytes,
        condition: Condition,
    ) -> Result<Version, StoreError> {
        self.write(key, &ObjectBytes::Memory(bytes), &condition)
            .await
    }

    async fn stage(&self) -> Result<Box<dyn Staged>, StoreError> {
        Ok(Box::new(StagedObject::new(self.clone())))
    }

    /// Does nothing: S3 answers a write when it is stored in several places (Amazon S3 User Guide,
    /// "Data protection").
    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        // A repeated delete could come after the object was written again.
        let once = config::Config::builder().retry_config(RetryConfig::disabled());
        let sent = self
            .bucket
            .client
            .delete_object()
            .bucket(&self.bucket.place.bucket)
            .key(self.bucket.place.name(&key.to_string()))
            .customize()
            .config_override(once)
            .send()
            .await;
        match sent {
            Ok(_) => Ok(()),
            Err(error) if fault::meaning(&error) == fault::Meaning::Missing => Ok(()),
            Err(error) => Err(fault::failed(Operation::Delete, key, error)),
        }
    }

    /// Lists page by page. S3 puts at most 1,000 objects on one.
    fn list(&self, prefix: &str) -> BoxStream<'static, Result<Listed, StoreError>> {
        let pages = self
            .bucket
            .client
            .list_objects_v2()
            .bucket(&self.bucket.place.bucket)
            .prefix(self.bucket.place.name(prefix))
            .into_paginator()
            .send();
        stream::try_unfold((self.clone(), Some(pages)), async |(store, pages)| {
            let Some(mut pages) = pages else {
                return Ok(None);
            };
            let Some(page) = pages.next().await else {
                return Ok(None);
            };
            let place = &store.bucket.place;
            let page = page.map_err(|error| fault::failed(Operation::List, place, error))?;
            let is_cut =
                is_cut(&page).map_err(|error| StoreError::failed(Operation::List, place, error))?;
            let mut found = Vec::new();
            for object in page.contents() {
                found.extend(listed(place, object));
            }
            let rest = if is_cut { Some(pages) } else { None };
            Ok(Some((stream::iter(found).map(Ok), (store, rest))))
        })
        .try_flatten()
        .boxed()
    }
}

/// Returns true if another page follows. A cut page without a token is an error: a listing that
/// ends early would hide pointers from collection, which would then delete the objects of those
/// catalogs.
fn is_cut(page: &ListObjectsV2Output) -> Result<bool, &'static str> {
    let is_cut = page.is_truncated() == Some(true);
    if is_cut && page.next_continuation_token().is_none_or(str::is_empty) {
        return Err("the listing was cut off without a continuation token");
    }
    Ok(is_cut)
}

fn listed(place: &S3Location, object: &types::Object) -> Option<Listed> {
    Some(Listed {
        key: Key::parse(place.path(object.key()?)?)?,
        size: u64::try_from(object.size()?).ok()?,
        modified: time(object.last_modified()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_page_without_token_is_an_error() {
        let page = |cut, token: Option<&str>| {
            let page = ListObjectsV2Output::builder().is_truncated(cut);
            is_cut(
                &page
                    .set_next_continuation_token(token.map(str::to_owned))
                    .build(),
            )
        };
        assert!(matches!(page(false, None), Ok(false)));
        assert!(matches!(page(true, Some("t")), Ok(true)));
        for token in [None, Some("")] {
            page(true, token).expect_err("the rest cannot be asked for");
        }
    }
}
