//! Signatures that are attached to an image, or kept beside its registry
//! (containers-registries.d(5), `lookaside`). They are not verified here, because that takes keys.

use std::{io, path::PathBuf, str::FromStr};

use bytes::Bytes;
use model::{AttachedSignature, ImageSignatures};
use oci::{Digest, ImageDescriptor, SignatureManifest, parse_document};
use oci_client::Reference;
use reqwest::Url;

use crate::Error;
use crate::blob_source::read_file;
use crate::image::PARSING;
use crate::registry::{Session, if_found};
use crate::stream::blocking;

/// Kind of a document with signatures, for errors.
const MANIFEST: &str = "signature manifest";

/// Location of signatures that are kept beside a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookaside {
    /// Files below an HTTP or HTTPS URL.
    Http(Url),
    /// Files below a folder of this machine.
    Folder(PathBuf),
}

/// The text is not a location of signatures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a location of signatures: write https://HOST/PATH or file:///PATH")]
pub struct LookasideError(String);

/// Returns the signatures that cosign attached to the image `digest`, under a tag derived from the
/// digest and as referrers.
pub(crate) async fn attached_signatures(
    session: &Session,
    digest: &Digest,
) -> Result<ImageSignatures, Error> {
    let mut search = SignatureSearch {
        session,
        signatures: ImageSignatures::default(),
        taken: 0,
    };
    search.search(digest).await?;
    Ok(search.signatures)
}

/// Returns the tags and digests of the manifests that are attached to the image `digest`.
pub(crate) async fn attached_manifests(
    session: &Session,
    digest: &Digest,
) -> Result<Vec<String>, Error> {
    let list = list_tag(digest);
    let mut found = Vec::new();
    for tag in [format!("{list}.sig"), format!("{list}.att"), list] {
        if if_found(session.resolve(&tag).await)?.is_some() {
            found.push(tag);
        }
    }
    let limit = session.settings.limits.signatures();
    let mut pages = session.referrers(digest);
    while let Some(page) = session.next_page(&mut pages).await? {
        let _parsing = PARSING.lock().await;
        let index: SignatureManifest = parse_document(MANIFEST, digest, &page)?;
        for entry in index.manifests {
            found.push(entry.blob(digest)?.digest.to_string());
        }
        limit.check(found.len() as u64, || {
            format!("what is attached to {digest}")
        })?;
    }
    Ok(found)
}

/// Returns the tag of the list of referrers ("Referrers Tag Schema"). Those of cosign begin with
/// it.
pub(crate) fn list_tag(digest: &Digest) -> String {
    format!("{}-{}", digest.algorithm(), digest.hex())
}

/// The collection of the signatures of one image.
struct SignatureSearch<'a> {
    session: &'a Session,
    signatures: ImageSignatures,
    /// Number of documents that were fetched.
    taken: u64,
}

impl SignatureSearch<'_> {
    /// Reads the signatures under the tag of cosign, then the list of referrers (OCI Distribution
    /// Specification v1.1, "Listing Referrers"). A registry without that API keeps the list under a
    /// tag ("Referrers Tag Schema").
    async fn search(&mut self, digest: &Digest) -> Result<(), Error> {
        let list = list_tag(digest);
        let tag = format!("{list}.sig");
        if let Some(body) = self.session.tagged(&tag).await? {
            self.layers(&tag, &body).await?;
        }
        let mut pages = self.session.referrers(digest);
        let mut next = self.session.next_page(&mut pages).await?;
        if next.is_none() {
            next = self.session.tagged(&list).await?;
        }
        while let Some(page) = next {
            self.entries(digest, &page).await?;
            if pages.next.is_some() {
                self.take(digest.as_str())?;
            }
            next = self.session.next_page(&mut pages).await?;
        }
        Ok(())
    }

    /// Reads the entries of an index that are signatures, even if the registry says that it has
    /// filtered the list.
    async fn entries(&mut self, digest: &Digest, body: &[u8]) -> Result<(), Error> {
        for entry in self.parsed(digest.as_str(), body).await?.manifests {
            self.take(digest.as_str())?;
            let manifest = entry.blob(digest)?.digest;
            let body = self.session.manifest(&manifest).await?;
            self.layers(manifest.as_str(), &body).await?;
        }
        Ok(())
    }

    async fn layers(&mut self, of: &str, body: &[u8]) -> Result<(), Error> {
        for layer in self.parsed(of, body).await?.layers {
            self.take(of)?;
            let blob = layer.blob(&of)?;
            let limit = self.session.settings.limits.signature();
            let content = self.session.small_blob("signature", &blob, limit).await?;
            match layer.attached() {
                Some(signature) => self.signatures.attached.push(AttachedSignature {
                    payload: content.into(),
                    signature: signature.to_owned(),
                }),
                None => self.signatures.bundles.push(content.into()),
            }
        }
        Ok(())
    }

    /// Parses a list of signatures. Keeps one entry more than may be fetched, so that too many fail
    /// and take no memory.
    async fn parsed(&self, of: &str, body: &[u8]) -> Result<SignatureManifest, Error> {
        let most = self.session.settings.limits.signatures;
        let left = usize::try_from(most.saturating_sub(self.taken)).unwrap_or(usize::MAX);
        let kept = left.saturating_add(1);
        let _parsing = PARSING.lock().await;
        let list: SignatureManifest = parse_document(MANIFEST, &of, body)?;
        let layers = list.layers.into_iter().filter(ImageDescriptor::is_content);
        let manifests = list
            .manifests
            .into_iter()
            .filter(ImageDescriptor::is_signature);
        Ok(SignatureManifest {
            layers: layers.take(kept).collect(),
            manifests: manifests.take(kept).collect(),
        })
    }

    /// Counts a document before it is fetched.
    fn take(&mut self, of: &str) -> Result<(), Error> {
        self.taken += 1;
        let limit = self.session.settings.limits.signatures();
        Ok(limit.check(self.taken, || format!("what is attached to {of}"))?)
    }
}

impl FromStr for Lookaside {
    type Err = LookasideError;

    fn from_str(text: &str) -> Result<Self, LookasideError> {
        let wrong = || LookasideError(text.to_owned());
        let url = Url::parse(text).map_err(|_| wrong())?;
        match url.scheme() {
            "file" => url.to_file_path().map(Self::Folder).map_err(|()| wrong()),
            _ if url.query().is_none() && fetch::unusable(&url).is_none() => Ok(Self::Http(url)),
            _ => Err(wrong()),
        }
    }
}

impl Lookaside {
    /// Returns the signatures of the image `digest`: files from `signature-1` up to the first that
    /// does not exist.
    pub(crate) async fn all(
        &self,
        session: &Session,
        reference: &Reference,
        digest: &Digest,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let repository = reference.repository();
        let folder = format!("{repository}@{}={}", digest.algorithm(), digest.hex());
        let limit = session.settings.limits.signatures();
        let mut found = Vec::new();
        for number in 1_u64.. {
            let path = format!("{folder}/signature-{number}");
            let Some(signature) = self.read(session, &path).await? else {
                break;
            };
            limit.check(number, || folder.clone())?;
            found.push(signature.into());
        }
        Ok(found)
    }

    async fn read(&self, session: &Session, path: &str) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Http(base) => {
                let mut url = base.clone();
                url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
                session.file_at(&url).await
            }
            Self::Folder(folder) => {
                let path = folder.join(path);
                let limit = session.settings.limits.signature();
                match blocking(move || read_file(&path, limit)).await {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                        Ok(None)
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookaside_is_a_url_or_a_folder() {
        let parse = |text: &str| text.parse::<Lookaside>();
        assert!(matches!(
            parse("https://a.io/sigstore"),
            Ok(Lookaside::Http(_))
        ));
        let folder = Lookaside::Folder("/var/sigstore".into());
        assert_eq!(parse("file:///var/sigstore"), Ok(folder));
        let refused = [
            "",
            "/var",
            "ftp://a.io/",
            "https://a.io/?x=1",
            "https://a:b@a.io/",
        ];
        for text in refused {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
