//! Signatures: manifests under tags, lists of referrers, and small blobs.

use bytes::Bytes;
use reqwest::Method;

use crate::digest::Digest;
use crate::error::Error;
use crate::limits::Limits;
use crate::manifest::Blob;
use crate::registry::exchange::Ask;
use crate::registry::{Fault, Session};

const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.oci.image.index.v1+json";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

impl Session {
    /// The manifest or index under a tag; `None` if there is no such tag.
    pub(crate) async fn tagged(&self, tag: &str) -> Result<Option<Bytes>, Error> {
        let (path, what) = (format!("manifests/{tag}"), format!("tag {tag}"));
        self.optional(path, Some(MANIFESTS), &what, |_| false).await
    }

    /// The index of what refers to a manifest; `None` if the registry has no such list (OCI Distribution Specification
    /// v1.1, "Listing Referrers": 404, which older registries vary).
    pub(crate) async fn referrers(&self, digest: &Digest) -> Result<Option<Bytes>, Error> {
        let (path, what) = (format!("referrers/{digest}"), format!("list of referrers of {digest}"));
        let has_none = |fault: &Fault| match fault {
            Fault::PlainRefused => true,
            Fault::Status(status) => matches!(status.as_u16(), 400 | 405 | 406 | 501),
            _ => false,
        };
        self.optional(path, Some(INDEX), &what, has_none).await
    }

    /// What is signed, or a whole signature.
    pub(crate) async fn signature(&self, blob: &Blob) -> Result<Bytes, Error> {
        self.small_blob("signature", blob, ("signatureBytes", self.limits().signature_bytes))
            .await
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings().limits
    }

    async fn optional(
        &self,
        path: String,
        accept: Option<&'static str>,
        what: &str,
        has_none: impl Fn(&Fault) -> bool,
    ) -> Result<Option<Bytes>, Error> {
        let ask = Ask {
            method: Method::GET,
            path,
            accept,
            from: 0,
            what,
        };
        let limit = ("manifestBytes", self.limits().manifest_bytes);
        match self.whole(&ask, limit).await {
            Ok(body) => Ok(Some(body)),
            Err(Error::Registry(error)) => match error.fault {
                Fault::NotFound { .. } => Ok(None),
                fault if has_none(&fault) => Ok(None),
                fault => Err(self.failed(fault)),
            },
            Err(error) => Err(error),
        }
    }
}
