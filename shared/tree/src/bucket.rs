//! A tree in a bucket, for clients of its web site or of a CDN before it.

use async_trait::async_trait;
use aws_sdk_s3::{Client, error::DisplayErrorContext, operation::get_object::GetObjectError, primitives::ByteStream};
use bytes::Bytes;
use http::{
    HeaderMap,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE},
};
use model::Key;
use store::{
    S3Location, StorePlace,
    s3::{S3Settings, client, sdk_config},
};

use crate::{
    TreeError, TreeForm, TreeTarget,
    index::INDEX,
    target::{FileBody, copy},
};

/// A tree in a bucket, or below a prefix of it.
#[derive(Debug)]
pub struct BucketTree {
    client: Client,
    place: S3Location,
}

impl BucketTree {
    /// Connects to the bucket for the tree of a store. Asks it nothing.
    ///
    /// # Errors
    /// [`TreeError::Store`], and [`TreeError::Bucket`] for settings that cannot be used.
    pub async fn open(place: S3Location, store: &StorePlace, settings: &S3Settings) -> Result<Self, TreeError> {
        if let StorePlace::S3(store) = store
            && store.bucket == place.bucket
            && (store.name("").starts_with(&place.name("")) || place.name("").starts_with(&store.name("")))
        {
            return Err(TreeError::Store(place.to_string()));
        }
        let config = sdk_config(settings).await.map_err(|source| TreeError::Bucket {
            path: place.to_string(),
            source: source.into(),
        })?;
        Ok(Self {
            client: client(&config, settings),
            place,
        })
    }
}

/// Wraps an error of the SDK, whose own text has no cause.
fn failed<E: std::error::Error>(path: &str) -> impl FnOnce(E) -> TreeError + '_ {
    move |error| TreeError::Bucket {
        path: path.to_owned(),
        source: DisplayErrorContext(error).to_string().into(),
    }
}

#[async_trait]
impl TreeTarget for BucketTree {
    fn form(&self) -> TreeForm {
        TreeForm::Bucket
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        let (bucket, prefix) = (&self.place.bucket, self.place.name(""));
        let listed = self
            .client
            .list_objects_v2()
            .bucket(bucket)
            .prefix(prefix)
            .max_keys(1)
            .send()
            .await;
        if listed.map_err(failed(INDEX))?.contents().is_empty() {
            return Ok(None);
        }
        match self
            .client
            .get_object()
            .bucket(bucket)
            .key(self.place.name(INDEX))
            .send()
            .await
        {
            Ok(found) => Ok(Some(found.body.collect().await.map_err(failed(INDEX))?.into_bytes())),
            Err(error) if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) => {
                Err(TreeError::Foreign(self.place.to_string()))
            }
            Err(error) => Err(failed(INDEX)(error)),
        }
    }

    async fn has(&self, _: &str, _: u64) -> bool {
        true
    }

    async fn link(&self, _: &str, _: &Key) -> Result<bool, TreeError> {
        Ok(false)
    }

    async fn write(&self, path: &str, fields: &HeaderMap, body: FileBody) -> Result<u64, TreeError> {
        let spooled = async {
            let temporary = tempfile::NamedTempFile::new()?;
            let size = copy(body, tokio::fs::File::from_std(temporary.reopen()?)).await?;
            Ok((temporary, size))
        };
        let (temporary, size) = spooled.await.map_err(TreeError::file(path))?;
        let body = ByteStream::from_path(temporary.path()).await.map_err(failed(path))?;
        let request = self
            .client
            .put_object()
            .bucket(&self.place.bucket)
            .key(self.place.name(path))
            .body(body);
        let field = |name| Some(fields.get(name)?.to_str().ok()?.to_owned());
        let request = request.set_content_type(field(&CONTENT_TYPE));
        let request = request.set_content_encoding(field(&CONTENT_ENCODING));
        let request = request.set_cache_control(field(&CACHE_CONTROL));
        request.send().await.map_err(failed(path))?;
        Ok(size)
    }

    async fn delete(&self, path: &str) -> Result<(), TreeError> {
        let request = self
            .client
            .delete_object()
            .bucket(&self.place.bucket)
            .key(self.place.name(path));
        request.send().await.map_err(failed(path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn open_refuses_places_in_or_around_the_store_and_no_others() {
        for (tree, store, is_refused) in [
            ("s3://bucket/mirror", "s3://bucket/mirror", true),
            ("s3://bucket/mirror/tree", "s3://bucket/mirror", true),
            ("s3://bucket", "s3://bucket/mirror", true),
            ("s3://bucket/mirror-tree", "s3://bucket/mirror", false),
            ("s3://other/mirror", "s3://bucket/mirror", false),
        ] {
            let (place, store) = (tree.parse().unwrap(), store.parse().unwrap());
            let opened = BucketTree::open(place, &store, &S3Settings::default()).await;
            assert_eq!(matches!(opened, Err(TreeError::Store(_))), is_refused, "{tree}");
        }
    }
}
