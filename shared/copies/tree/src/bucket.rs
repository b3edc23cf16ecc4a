//! A tree in a bucket, for clients of its web site or of a CDN before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use async_trait::async_trait;
use aws_sdk_s3::{
    Client, config::Config, error::DisplayErrorContext, operation::get_object::GetObjectError,
    primitives::ByteStream,
};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use store::s3::{S3Settings, client, sdk_config};
use store::{S3Location, StorePlace};
use tempfile::TempPath;

use crate::{TreeError, TreeForm, TreeTarget, index::INDEX};

/// A tree in a bucket, or below a prefix of it.
#[derive(Debug)]
pub struct BucketTree {
    client: Client,
    place: S3Location,
    settings: S3Settings,
    /// True after the bucket has shown that it keeps header fields.
    keeps_fields: AtomicBool,
}

impl BucketTree {
    /// Connects to the bucket for the tree of a store. Asks it nothing.
    ///
    /// # Errors
    /// [`TreeError::Store`], and [`TreeError::Write`] for settings that cannot be used.
    pub async fn open(
        place: S3Location,
        store: &StorePlace,
        settings: &S3Settings,
    ) -> Result<Self, TreeError> {
        if let StorePlace::S3(store) = store
            && store.bucket == place.bucket
            && (store.name("").starts_with(&place.name(""))
                || place.name("").starts_with(&store.name("")))
        {
            return Err(TreeError::Store(place.to_string()));
        }
        let config = sdk_config(settings).await.map_err(io::Error::other);
        let config = config.map_err(TreeError::at(&place.to_string()))?;
        Ok(Self {
            client: client(&config, settings),
            place,
            settings: settings.clone(),
            keeps_fields: AtomicBool::new(false),
        })
    }
}

/// Keeps the causes of an error of the SDK, whose own text has none.
fn failed<E: std::error::Error>(error: E) -> io::Error {
    io::Error::other(DisplayErrorContext(error).to_string())
}

#[async_trait]
impl TreeTarget for BucketTree {
    fn form(&self) -> TreeForm {
        TreeForm::Bucket
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        let bucket = &self.place.bucket;
        let get = self
            .client
            .get_object()
            .bucket(bucket)
            .key(self.place.name(INDEX));
        match get.send().await {
            Ok(found) => {
                let body = found.body.collect().await.map_err(io::Error::other);
                return body
                    .map(|body| Some(body.into_bytes()))
                    .map_err(TreeError::at(INDEX));
            }
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(GetObjectError::is_no_such_key) => {}
            Err(error) => return Err(TreeError::at(INDEX)(failed(error))),
        }
        let list = self.client.list_objects_v2().bucket(bucket).max_keys(1);
        let listed = list.prefix(self.place.name("")).send().await;
        let listed = listed.map_err(failed).map_err(TreeError::at(INDEX))?;
        if listed.contents().is_empty() {
            return Ok(None);
        }
        Err(TreeError::Foreign(self.place.to_string()))
    }

    async fn sizes(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, TreeError> {
        let prefix = self.place.name("");
        let mut sizes = BTreeMap::new();
        // Nothing is there of a new tree, and a bucket need not be asked for that.
        if paths.is_empty() {
            return Ok(sizes);
        }
        let list = self.client.list_objects_v2().bucket(&self.place.bucket);
        let mut pages = list.prefix(&prefix).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(failed).map_err(TreeError::at(&prefix))?;
            for object in page.contents() {
                let path = object.key().and_then(|key| key.strip_prefix(&prefix));
                let size = object.size().and_then(|size| u64::try_from(size).ok());
                if let (Some(path), Some(size)) = (path, size)
                    && paths.contains(path)
                {
                    sizes.insert(path.to_owned(), size);
                }
            }
            let token = page.next_continuation_token().unwrap_or_default();
            if page.is_truncated() == Some(true) && token.is_empty() {
                let cut = io::Error::other("the listing was cut off without a continuation token");
                return Err(TreeError::at(&prefix)(cut));
            }
        }
        Ok(sizes)
    }

    async fn put(&self, path: &str, fields: &HeaderMap, file: TempPath) -> io::Result<()> {
        let bucket = &self.place.bucket;
        let key = self.place.name(path);
        let body = ByteStream::from_path(&file)
            .await
            .map_err(io::Error::other)?;
        let field = |name| Some(fields.get(name)?.to_str().ok()?.to_owned());
        let media_type = field(&CONTENT_TYPE);
        let coding = field(&CONTENT_ENCODING);
        let limits = Config::builder()
            .timeout_config(self.settings.put_timeouts(fs::metadata(&file)?.len()));
        self.client
            .put_object()
            .bucket(bucket)
            .key(&key)
            .body(body)
            .set_content_type(media_type.clone())
            .set_content_encoding(coding.clone())
            .set_cache_control(field(&CACHE_CONTROL))
            .customize()
            .config_override(limits)
            .send()
            .await
            .map_err(failed)?;
        // Clients would take gzip bytes for plain ones. One question tells.
        if coding.is_some() && !self.keeps_fields.load(Ordering::Relaxed) {
            let head = self.client.head_object().bucket(bucket).key(&key);
            let stored = head.send().await.map_err(failed)?;
            if stored.content_type != media_type || stored.content_encoding != coding {
                return Err(io::Error::other(
                    "the bucket does not keep Content-Type and Content-Encoding",
                ));
            }
            self.keeps_fields.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn delete(&self, path: &str) -> io::Result<()> {
        let delete = self.client.delete_object().bucket(&self.place.bucket);
        delete
            .key(self.place.name(path))
            .send()
            .await
            .map_err(failed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_s3::config::{Credentials, SharedCredentialsProvider};
    use testkit::{S3, S3Call, S3Fault};

    use super::*;

    #[tokio::test]
    async fn put_of_a_large_file_has_time_for_its_bytes() {
        let server = S3::start().await;
        server.script(S3Call::Put, S3Fault::Late(Duration::from_millis(1500)));
        let settings = S3Settings {
            endpoint: Some(server.url().to_owned()),
            region: Some("us-east-1".to_owned()),
            path_style: true,
            attempts: 1,
            attempt_timeout: Duration::from_secs(1),
            total_timeout: Duration::from_secs(1),
            ..S3Settings::default()
        };
        let credentials = Credentials::new("key", "secret", None, None, "test");
        let config = sdk_config(&settings).await.unwrap().into_builder();
        let config = config
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        let tree = BucketTree {
            client: client(&config, &settings),
            place: "s3://bucket/tree".parse().unwrap(),
            settings,
            keeps_fields: AtomicBool::new(true),
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(2_000_000).unwrap();
        tree.put("all", &HeaderMap::new(), file.into_temp_path())
            .await
            .unwrap();
        assert!(server.object("tree/all").is_some());
    }

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
            assert_eq!(
                matches!(opened, Err(TreeError::Store(_))),
                is_refused,
                "{tree}"
            );
        }
    }
}
