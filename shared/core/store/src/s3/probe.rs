use aws_sdk_s3::config::Config;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use futures_util::future::join_all;

use crate::s3::S3Store;
use crate::s3::fault::{self, Meaning};
use crate::s3::write::on_condition;
use crate::{Condition, Operation, StoreError, Version};

/// Name of the object of the probe. Its path is not a key, so no listing shows it and no catalog
/// can have it.
const NAME: &str = ".conditional-writes";

const CONTENT: &str = "catalog-mirror writes this to learn whether conditional writes are honoured here. It may be deleted.\n";

/// ETag that no object has: the object of the probe has another MD5, and other kinds of ETags are
/// not all zeros.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

/// Number of writers in one race of the probe, and of races. Of a server that compares and writes
/// in two steps (S3Proxy), 35 of 40 races of four had more than one winner.
const RACERS: u32 = 4;
const RACES: u32 = 3;

impl S3Store {
    /// Checks that the endpoint honours conditional writes. It costs two small requests, once in a
    /// process. The first conditional put does it, too.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the endpoint ignores conditions or cannot be reached.
    pub async fn check_writes(&self) -> Result<(), StoreError> {
        self.bucket
            .probed
            .get_or_try_init(|| self.probe())
            .await
            .copied()
    }

    async fn probe(&self) -> Result<(), StoreError> {
        // The first write ever creates the object, which tells nothing about conditions. The next
        // has to be refused.
        let created = self.write_probe(&Condition::CreateOnly).await?;
        if created.is_some() && self.write_probe(&Condition::CreateOnly).await?.is_some() {
            return Err(self.overwrites("it ignores them"));
        }
        let replace = Condition::Replace(Version(NO_TAG.to_owned()));
        if self.write_probe(&replace).await?.is_some() {
            return Err(self.overwrites("it ignores them"));
        }
        if let Some(version) = created
            && let Some(fault) = self.race(version).await
        {
            // The next process has to find it, too.
            let _ = self
                .bucket
                .client
                .delete_object()
                .bucket(&self.bucket.place.bucket)
                .key(self.bucket.place.name(NAME))
                .send()
                .await;
            return Err(self.overwrites(fault));
        }
        Ok(())
    }

    fn overwrites(&self, fault: &'static str) -> StoreError {
        let place = &self.bucket.place;
        let what = format!(
            "{place} does not honour conditional writes ({fault}): writers would overwrite each other's publications"
        );
        StoreError::failed(Operation::Put, &NAME, what)
    }

    /// Sends one conditional write of the object. Returns its version, or `None` if the write was
    /// refused.
    async fn write_probe(&self, condition: &Condition) -> Result<Option<String>, StoreError> {
        let request = on_condition(self.request(CONTENT.to_owned()), condition);
        match request.send().await {
            Ok(written) => Ok(Some(written.e_tag.unwrap_or_default())),
            Err(error) => match fault::meaning(&error) {
                // An endpoint that ignores conditions does not notice a race either.
                Meaning::Refused | Meaning::Raced => Ok(None),
                Meaning::NotImplemented => Err(self.overwrites("it does not implement them")),
                _ => Err(fault::failed(Operation::Put, &NAME, error)),
            },
        }
    }

    /// Lets several writers replace one version at the same time. Returns the fault if none or more
    /// than one of them succeeded.
    async fn race(&self, mut version: String) -> Option<&'static str> {
        for race in 0..RACES {
            let mut writers = Vec::new();
            for racer in 0..RACERS {
                // A writer that is sent again takes part in no race. A server with a limit for each
                // object answers most with 429.
                let once = Config::builder().retry_config(RetryConfig::disabled());
                // Equal bytes would have the same version, which a slower writer could then
                // replace.
                let writer = self
                    .request(format!("{CONTENT}Race {race}, writer {racer}.\n"))
                    .if_match(&version)
                    .customize()
                    .config_override(once)
                    .send();
                writers.push(writer);
            }
            let mut winners = Vec::new();
            let mut all_refused = true;
            for sent in join_all(writers).await {
                match sent {
                    Ok(written) => winners.push(written),
                    Err(error) => all_refused &= fault::meaning(&error) == Meaning::Refused,
                }
            }
            match &winners[..] {
                // Ceph 16 compares the version in quotes with one without.
                [] if all_refused => return Some("it refuses the version that it gave"),
                [] => {}
                [winner] => version = winner.e_tag.clone().unwrap_or_default(),
                _ => return Some("of several at a time, more than one succeeds"),
            }
        }
        None
    }

    fn request(&self, content: String) -> PutObjectFluentBuilder {
        self.bucket
            .client
            .put_object()
            .bucket(&self.bucket.place.bucket)
            .key(self.bucket.place.name(NAME))
            .content_type("text/plain")
            .cache_control("no-store")
            .body(content.into_bytes().into())
    }
}
