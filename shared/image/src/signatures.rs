//! What is attached to an image to vouch for it. Nothing in here is verified: that is for whoever knows the keys.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::digest::Digest;
use crate::error::{Error, ImageError, Limit};
use crate::images::Images;
use crate::manifest::Blob;
use crate::registry::Session;
use crate::source::Source;

/// The layer of a signature (cosign, specs/SIGNATURE_SPEC.md).
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Its signature in base64.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Signatures that are referrers of the image (cosign, `COSIGN_EXPERIMENTAL=1 --registry-referrers-mode=oci-1-1`).
const SIGNATURE_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// What cosign 2 writes into the index of a registry without referrers instead of the type of its bundles.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// How the media types of Sigstore bundles start, whatever their version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// Signatures of one image, as they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signatures {
    /// Payloads with a signature of each.
    pub attached: Vec<Attached>,
    /// Sigstore bundles, in JSON.
    pub bundles: Vec<Bytes>,
}

/// A payload and its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// What is signed.
    pub payload: Bytes,
    /// The signature in base64.
    pub signature: String,
}

/// As much of a manifest as matters here.
#[derive(Debug, Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Descriptor>,
}

/// As much of an index.
#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    artifact_type: Option<String>,
    digest: Digest,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Images {
    /// What cosign attached to the image `digest`: under the tag that it derives from the digest, and as referrers. A
    /// source that is no registry has none.
    ///
    /// # Errors
    /// As for every request: only "there is none" is no error.
    pub async fn signatures(&self, source: &Source, digest: &Digest) -> Result<Signatures, Error> {
        let Source::Registry { reference, .. } = source else {
            return Ok(Signatures::default());
        };
        let mut found = Finding {
            session: self.session(reference),
            signatures: Signatures::default(),
            left: self.limits().signatures,
        };
        // A list of them makes many requests of one.
        self.in_time(found.all(digest)).await?;
        Ok(found.signatures)
    }
}

/// Signatures that are being collected.
struct Finding {
    session: Session,
    signatures: Signatures,
    /// How many more may be fetched.
    left: u64,
}

impl Finding {
    async fn all(&mut self, digest: &Digest) -> Result<(), Error> {
        self.by_tag(digest).await?;
        self.by_referrers(digest).await
    }

    async fn by_tag(&mut self, digest: &Digest) -> Result<(), Error> {
        let tag = format!("{}-{}.sig", digest.algorithm(), digest.hex());
        match self.session.tagged(&tag).await? {
            Some(body) => self.layers(&tag, &body).await,
            None => Ok(()),
        }
    }

    /// OCI Distribution Specification v1.1, "Listing Referrers"; where a registry has no such API, the tag of the
    /// "Referrers Tag Schema".
    async fn by_referrers(&mut self, digest: &Digest) -> Result<(), Error> {
        let mut pages = self.session.referrers(digest);
        let Some(first) = self.session.page(&mut pages).await? else {
            let tag = format!("{}-{}", digest.algorithm(), digest.hex());
            return match self.session.tagged(&tag).await? {
                Some(body) => self.entries(digest, &body).await,
                None => Ok(()),
            };
        };
        self.entries(digest, &first).await?;
        while pages.has_more() {
            self.take(digest.as_str())?;
            if let Some(page) = self.session.page(&mut pages).await? {
                self.entries(digest, &page).await?;
            }
        }
        Ok(())
    }

    /// Whatever a registry says that it has filtered, only what is a signature is looked at.
    async fn entries(&mut self, digest: &Digest, body: &[u8]) -> Result<(), Error> {
        let index: Index = json(digest.as_str(), body)?;
        for entry in index.manifests.iter().filter(|entry| entry.is_signature()) {
            self.take(digest.as_str())?;
            let body = self.session.manifest(&entry.digest).await?;
            self.layers(entry.digest.as_str(), &body).await?;
        }
        Ok(())
    }

    async fn layers(&mut self, of: &str, body: &[u8]) -> Result<(), Error> {
        let manifest: Manifest = json(of, body)?;
        for layer in manifest.layers {
            let signature = layer.annotations.get(SIGNATURE);
            let is_attached = layer.media_type == SIMPLE_SIGNING && signature.is_some();
            if !is_attached && !layer.media_type.starts_with(BUNDLE) {
                continue;
            }
            self.take(of)?;
            let blob = Blob {
                digest: layer.digest.clone(),
                size: layer.size,
            };
            let payload = self.session.signature(&blob).await?;
            match signature.filter(|_| is_attached) {
                Some(signature) => self.signatures.attached.push(Attached {
                    payload,
                    signature: signature.clone(),
                }),
                None => self.signatures.bundles.push(payload),
            }
        }
        Ok(())
    }

    fn take(&mut self, of: &str) -> Result<(), Error> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::Limit(Limit {
                name: "signatures",
                limit: self.session.limits().signatures,
                place: format!("what is attached to {of}"),
            })),
        }
    }
}

impl Descriptor {
    /// Many other things refer to images too: SBOMs, scans. Bundles may be of those as well, which only their content
    /// tells.
    fn is_signature(&self) -> bool {
        let kind = self.artifact_type.as_deref().unwrap_or(EMPTY);
        [SIGNATURE_ARTIFACT, EMPTY].contains(&kind) || kind.starts_with(BUNDLE)
    }
}

fn json<'a, T: Deserialize<'a>>(of: &str, body: &'a [u8]) -> Result<T, Error> {
    let parsed = serde_json::from_slice(body);
    parsed.map_err(|source| {
        Error::Image(ImageError::Json {
            what: "signature manifest",
            digest: of.to_owned(),
            source,
        })
    })
}
