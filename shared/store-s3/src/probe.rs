use store::{Operation, StoreError};

use crate::{
    S3Store,
    fault::{self, Meaning},
};

/// Its path is no key, so no listing shows it and no catalog can have it.
const NAME: &str = ".conditional-writes";

const CONTENT: &[u8] =
    b"catalog-mirror writes this to learn whether conditional writes are honoured here. It may be deleted.\n";

/// Of no object: the probe's has another MD5, and whoever makes ETags otherwise does not make zeros.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

/// What an endpoint does with conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conditions {
    /// It answers 412 where they do not hold.
    Honoured,
    /// It writes all the same.
    Ignored,
}

/// The reason to refuse such an endpoint.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} does not honour conditional writes, so one writer would silently overwrite what another published; use an \
     endpoint that does, or make sure that there is only one writer and say so (--single-writer)"
)]
pub(crate) struct Overwrites(String);

impl S3Store {
    /// Makes sure that the endpoint honours conditional writes, or that the settings do without. The first conditional
    /// put does this by itself; it costs two small requests once in a process.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it does not, or when it cannot be asked.
    pub async fn check_writes(&self) -> Result<(), StoreError> {
        self.conditions().await.map(drop)
    }

    pub(crate) async fn conditions(&self) -> Result<Conditions, StoreError> {
        let found = *self.known_conditions().get_or_try_init(|| self.probe()).await?;
        if found == Conditions::Ignored && !self.is_single_writer() {
            let overwrites = Overwrites(self.place().to_string());
            return Err(StoreError::failed(Operation::Put, &NAME, overwrites));
        }
        Ok(found)
    }

    async fn probe(&self) -> Result<Conditions, StoreError> {
        // The first ever creates the object, which says nothing about conditions; the next has to be refused.
        let create = Some("*");
        let refused = self.is_refused(create, None).await? || self.is_refused(create, None).await?;
        let honoured = refused && self.is_refused(None, Some(NO_TAG)).await?;
        if honoured {
            return Ok(Conditions::Honoured);
        }
        if self.is_single_writer() {
            tracing::warn!(store = %self.place(), "conditional writes are not honoured: there must be no other writer");
        }
        Ok(Conditions::Ignored)
    }

    /// Whether a write of the probe's object is refused, as it should be when it exists.
    async fn is_refused(&self, none_match: Option<&str>, matches: Option<&str>) -> Result<bool, StoreError> {
        let request = self.client().put_object().bucket(&self.place().bucket);
        let request = request.key(self.place().name(NAME)).body(CONTENT.to_vec().into());
        let request = request.content_type("text/plain").cache_control("no-store");
        let request = request.set_if_none_match(none_match.map(Into::into));
        let sent = request.set_if_match(matches.map(Into::into)).send().await;
        match sent {
            Ok(_) => Ok(false),
            Err(error) => match fault::meaning(&error) {
                // A race is only noticed by who looks at conditions.
                Meaning::Refused | Meaning::Raced => Ok(true),
                Meaning::NotImplemented => Ok(false),
                _ => Err(fault::failed(Operation::Put, &NAME, error)),
            },
        }
    }
}
