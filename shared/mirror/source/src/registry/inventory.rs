//! The content of a registry: repositories, tags and manifests, and the removal of manifests.

use std::collections::BTreeMap;

use bytes::Bytes;
use oci::{Digest, NamedLimit, media_type, parse_document};
use reqwest::{Method, Url};
use serde::Deserialize;

use crate::Error;
use crate::image::PARSING;
use crate::registry::{ApiRequest, Session, if_found};

/// Media type of lists of tags and repositories.
const JSON: &str = "application/json";

/// Number of names that one page of a list is asked for. Registries send fewer if they want.
const PAGE_NAMES: usize = 1000;

/// Maximum number of names of one list: many times those of a site.
const NAMES_MAX: u64 = 200_000;

/// Manifests that a manifest names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestLinks {
    /// Images of an index. Empty for one image.
    pub parts: Vec<Digest>,
    /// Manifest that this one is attached to.
    pub subject: Option<Digest>,
}

/// Result of a request to remove a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The registry has removed it.
    Done,
    /// The registry does not have it.
    Absent,
    /// The registry removes no manifests, or not this one.
    Refused,
}

#[derive(Deserialize)]
struct NameList {
    /// Names of tags. `null` if the repository has none.
    tags: Option<Vec<String>>,
    repositories: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinkedManifest {
    media_type: Option<String>,
    manifests: Option<Vec<LinkedEntry>>,
    subject: Option<LinkedEntry>,
}

#[derive(Deserialize)]
struct LinkedEntry {
    digest: Digest,
}

/// Parts of a manifest or of an index, with their sizes.
#[derive(Deserialize)]
struct SizedManifest {
    #[serde(default)]
    manifests: Vec<SizedPart>,
    config: Option<SizedPart>,
    #[serde(default)]
    layers: Vec<SizedPart>,
}

#[derive(Deserialize)]
struct SizedPart {
    digest: Digest,
    #[serde(default)]
    size: u64,
}

impl Session {
    /// Returns the tags of the repository, or nothing if there is no such repository.
    pub(crate) async fn tags(&self) -> Result<Vec<String>, Error> {
        let mut url = self.url("tags/list");
        url.set_query(Some(&format!("n={PAGE_NAMES}")));
        let names = self.names(url, "list of tags").await?;
        Ok(names.unwrap_or_default())
    }

    /// Returns the repositories of the registry; `None` if it lists none.
    pub(crate) async fn repositories(&self) -> Result<Option<Vec<String>>, Error> {
        let mut url = self.url("");
        url.set_path("/v2/_catalog");
        url.set_query(Some(&format!("n={PAGE_NAMES}")));
        self.names(url, "list of repositories").await
    }

    async fn names(&self, url: Url, what: &str) -> Result<Option<Vec<String>>, Error> {
        let mut pages = self.list_pages(url, what.to_owned(), JSON);
        let limit = NamedLimit::new("names", NAMES_MAX);
        let mut names = None;
        while let Some(page) = self.next_page(&mut pages).await? {
            let _parsing = PARSING.lock().await;
            let list: NameList = parse_document("list", &what, &page)?;
            let all = names.get_or_insert_with(Vec::new);
            all.extend(list.tags.or(list.repositories).unwrap_or_default());
            // Half a list is of no use: what it lacks would seem not to be there.
            limit.check(all.len() as u64, || what.to_owned())?;
        }
        Ok(names)
    }

    /// Returns the manifests that a manifest names; `None` if there is no such manifest.
    pub(crate) async fn links(&self, digest: &Digest) -> Result<Option<ManifestLinks>, Error> {
        let Some(body) = if_found(self.manifest(digest).await)? else {
            return Ok(None);
        };
        let _parsing = PARSING.lock().await;
        let manifest: LinkedManifest = parse_document("manifest", digest, &body)?;
        let parts = manifest.manifests.unwrap_or_default().into_iter();
        Ok(Some(ManifestLinks {
            parts: parts.map(|part| part.digest).collect(),
            subject: manifest.subject.map(|subject| subject.digest),
        }))
    }

    /// Returns the sizes of an image in bytes: of its manifests, and of what they name. Of a sparse
    /// index only its own.
    pub(crate) async fn sizes(
        &self,
        digest: &Digest,
        is_sparse: bool,
    ) -> Result<BTreeMap<Digest, u64>, Error> {
        let mut sizes = BTreeMap::new();
        let mut open = vec![digest.clone()];
        while let Some(digest) = open.pop() {
            if sizes.contains_key(&digest) {
                continue;
            }
            let Some(body) = if_found(self.manifest(&digest).await)? else {
                continue;
            };
            let _parsing = PARSING.lock().await;
            let manifest: SizedManifest = parse_document("manifest", &digest, &body)?;
            sizes.insert(digest, body.len() as u64);
            if is_sparse {
                break;
            }
            open.extend(manifest.manifests.into_iter().map(|part| part.digest));
            for blob in manifest.layers.into_iter().chain(manifest.config) {
                sizes.insert(blob.digest, blob.size);
            }
        }
        Ok(sizes)
    }

    /// Gives a manifest another tag, unless the tag is there.
    pub(crate) async fn add_tag(&self, digest: &Digest, tag: &str) -> Result<(), Error> {
        if if_found(self.resolve(tag).await)?.is_some() {
            return Ok(());
        }
        let body: Bytes = self.manifest(digest).await?;
        let parsing = PARSING.lock().await;
        let manifest: LinkedManifest = parse_document("manifest", digest, &body)?;
        drop(parsing);
        let media_type = match (manifest.media_type, manifest.manifests) {
            (Some(media_type), _) => media_type,
            (None, Some(_)) => media_type::INDEX.to_owned(),
            (None, None) => media_type::MANIFEST.to_owned(),
        };
        self.push_manifest(tag, &media_type, body).await
    }

    /// Removes a manifest with its tags.
    pub(crate) async fn delete_manifest(&self, digest: &Digest) -> Result<Deletion, Error> {
        let url = self.url(&format!("manifests/{digest}"));
        let request = ApiRequest::new(Method::DELETE, url, format!("manifest {digest}"));
        match self.send(&request).await {
            Ok(_) => Ok(Deletion::Done),
            Err(Error::Server(error)) if error.is_not_found() => Ok(Deletion::Absent),
            Err(Error::Server(error)) if error.lacks_api() => Ok(Deletion::Refused),
            Err(error) => Err(error),
        }
    }
}
