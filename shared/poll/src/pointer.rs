//! Signing the pointer, and believing one.

use layout::{CatalogName, Current, Document, Key};
use seal::Signer;
use store::{DOCUMENT_MAX, ReadError, Store, StoreExt};

use crate::{PollError, turn::Read};

/// How the next pointer of a catalog is signed.
pub(crate) struct Seal<'a> {
    pub(crate) signer: Option<&'a Signer>,
    pub(crate) catalog: &'a CatalogName,
    /// Whether an unsigned pointer may follow a signed one.
    pub(crate) may_unsign: bool,
}

impl Seal<'_> {
    /// `next`, signed by all keys.
    pub(crate) fn sealed(&self, before: Option<&Current>, next: Current) -> Result<Current, PollError> {
        match self.signer {
            Some(signer) => Ok(signer.sign(self.catalog, next)),
            // Readers that verify would stay at the signed one, and nobody would know why.
            None if before.is_some_and(|before| !before.signatures.is_empty()) && !self.may_unsign => {
                Err(PollError::NoKey)
            }
            None => Ok(Current {
                signatures: Vec::new(),
                ..next
            }),
        }
    }

    /// The same for one that may say nothing new: that keeps the signatures that it has, if there are no keys.
    pub(crate) fn again(&self, before: &Current, next: Current) -> Result<Current, PollError> {
        if self.signer.is_none() && next == *before {
            return Ok(next);
        }
        self.sealed(Some(before), next)
    }
}

/// Reads the pointer of a catalog. Without keys everything is believed, as there is nothing to tell by.
pub(crate) async fn read_pointer(
    store: &dyn Store,
    catalog: &CatalogName,
    signer: Option<&Signer>,
) -> Result<Option<Read>, PollError> {
    let key = Key::Current(catalog.clone());
    let (bytes, info) = match store.read_all(&key, DOCUMENT_MAX).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let current = Current::from_bytes(&bytes).map_err(|source| ReadError::Document {
        key: key.to_string(),
        source,
    })?;
    let judged = signer.map_or(Ok(()), |signer| signer.trust().verify(catalog, &bytes).map(drop));
    if let Err(error) = &judged {
        tracing::warn!(%catalog, error = telemetry::chain(error), "what is published is made again, not believed");
    }
    Ok(Some(Read {
        current,
        version: info.version,
        believed: judged.is_ok(),
    }))
}
