use crate::{Operation, StoreError};

use crate::s3::{
    S3Store,
    fault::{self, Meaning},
};

/// Name of the object of the probe. Its path is not a key, so no listing shows it and no catalog can have it.
const NAME: &str = ".conditional-writes";

const CONTENT: &[u8] =
    b"catalog-mirror writes this to learn whether conditional writes are honoured here. It may be deleted.\n";

/// ETag that no object has: the object of the probe has another MD5, and other kinds of ETags are not all zeros.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

/// Error for an endpoint that ignores conditions.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} does not honour conditional writes, so one writer would silently overwrite what another published; use an \
     endpoint that does"
)]
pub(crate) struct Overwrites(String);

impl S3Store {
    /// Checks that the endpoint honours conditional writes. It costs two small requests, once in a process. The first
    /// conditional put does it, too.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the endpoint ignores conditions or cannot be reached.
    pub async fn check_writes(&self) -> Result<(), StoreError> {
        self.bucket.probed.get_or_try_init(|| self.probe()).await.copied()
    }

    async fn probe(&self) -> Result<(), StoreError> {
        // The first write ever creates the object, which tells nothing about conditions. The next has to be refused.
        let create = Some("*");
        let refused = self.is_refused(create, None).await? || self.is_refused(create, None).await?;
        if refused && self.is_refused(None, Some(NO_TAG)).await? {
            return Ok(());
        }
        let overwrites = Overwrites(self.place().to_string());
        Err(StoreError::failed(Operation::Put, &NAME, overwrites))
    }

    /// True if a conditional write of the existing object is refused, as it should be.
    async fn is_refused(&self, none_match: Option<&str>, matches: Option<&str>) -> Result<bool, StoreError> {
        let request = self.bucket.client.put_object().bucket(&self.place().bucket);
        let request = request.key(self.place().name(NAME)).body(CONTENT.to_vec().into());
        let request = request.content_type("text/plain").cache_control("no-store");
        let request = request.set_if_none_match(none_match.map(Into::into));
        let sent = request.set_if_match(matches.map(Into::into)).send().await;
        match sent {
            Ok(_) => Ok(false),
            Err(error) => match fault::meaning(&error) {
                // An endpoint that ignores conditions does not notice a race either.
                Meaning::Refused | Meaning::Raced => Ok(true),
                Meaning::NotImplemented => Ok(false),
                _ => Err(fault::failed(Operation::Put, &NAME, error)),
            },
        }
    }
}
