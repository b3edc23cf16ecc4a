//! Signatures: manifests under tags, and small blobs.

use bytes::Bytes;
use reqwest::Method;

use crate::error::Error;
use crate::limits::Limits;
use crate::manifest::Blob;
use crate::registry::exchange::Ask;
use crate::registry::{Fault, Session};

const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.oci.image.index.v1+json";

impl Session {
    /// The manifest or index under a tag; `None` if there is no such tag.
    pub(crate) async fn tagged(&self, tag: &str) -> Result<Option<Bytes>, Error> {
        let (path, what) = (format!("manifests/{tag}"), format!("tag {tag}"));
        let ask = Ask {
            method: Method::GET,
            path,
            accept: Some(MANIFESTS),
            from: 0,
            what: &what,
        };
        match self.whole(&ask, ("manifestBytes", self.limits().manifest_bytes)).await {
            Ok(body) => Ok(Some(body)),
            Err(Error::Registry(error)) if matches!(error.fault, Fault::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is signed, or a whole signature.
    pub(crate) async fn signature(&self, blob: &Blob) -> Result<Bytes, Error> {
        self.small_blob("signature", blob, ("signatureBytes", self.limits().signature_bytes))
            .await
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings().limits
    }
}
