//! The catalogs as container images, to be pulled (OCI distribution specification 1.1, "Pull" and "Content Discovery"):
//! every catalog is a repository of its name. Nothing can be pushed.

mod images;
mod page;
mod refusal;
mod route;

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header::LINK};
use layout::{CachePolicy, Image, Key, Sha256, Stored};
use serde::Serialize;

use self::page::Page;
pub(crate) use self::{
    images::Earlier,
    refusal::{Refusal, RegistryError, RegistryErrors, respond},
    route::Target,
};
use crate::{
    answers::document,
    app::App,
    error::Error,
    fields::Tag,
    published::Published,
    respond::Representation,
    source::{Object, Source},
};

/// Every answer below `/v2/` has it: clients tell a registry by it.
const API_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("docker-distribution-api-version"),
    HeaderValue::from_static("registry/2.0"),
);
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const FILTERS_APPLIED: HeaderName = HeaderName::from_static("oci-filters-applied");

/// The tag of the current image.
const LATEST: &str = "latest";
/// How many hex digits of a content hash its tag has: as many as people know from `git` and `docker`, and none of the
/// at most 17 contents of a catalog shares them with another one.
const TAG_DIGITS: usize = 12;

/// `/v2/_catalog`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RepositoryList {
    /// The catalogs in byte order of their names.
    repositories: Vec<String>,
}

/// `/v2/{catalog}/tags/list`.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct TagList {
    name: String,
    /// `latest`, and the beginnings of the content hashes that are kept.
    tags: Vec<String>,
}

/// Whether a path belongs to the registry, whose errors look different.
pub(crate) fn is_below(path: &str) -> bool {
    path == "/v2" || path.starts_with("/v2/")
}

pub(crate) fn mark(response: &mut Response<Body>) {
    let (name, value) = API_VERSION;
    response.headers_mut().insert(name, value);
}

impl App {
    pub(crate) async fn registry(self: &Arc<Self>, target: Target<'_>, query: &str) -> Result<Representation, Error> {
        match target {
            Target::Base => Ok(document(Bytes::from_static(b"{}"), CachePolicy::Pointer)),
            Target::Repositories => self.repositories(query).await,
            Target::Tags(name) => self.tags(&*self.published(&name).await?, query).await,
            Target::Manifest(name, reference) => self.manifest(&*self.published(&name).await?, &reference).await,
            Target::Blob(name, digest) => self.blob(&*self.published(&name).await?, digest).await,
            Target::Referrers(name) => self.published(&name).await.map(|_| no_referrers(query)),
            Target::Upload(name) => match self.published(&name).await {
                Ok(_) => Err(Refusal::UnknownUpload.into()),
                Err(error) => Err(error),
            },
        }
    }

    async fn repositories(self: &Arc<Self>, query: &str) -> Result<Representation, Error> {
        let page = Page::parse(query)?;
        let names = self.served().await?;
        let (repositories, more) = page.cut(names.iter().map(|published| published.name.to_string()));
        let link = more.then(|| page.next("/v2/_catalog", repositories.last())).flatten();
        Ok(listed(&RepositoryList { repositories }, link))
    }

    async fn tags(&self, published: &Published, query: &str) -> Result<Representation, Error> {
        let page = Page::parse(query)?;
        let earlier = self.earlier(published).await?;
        let hashes = published
            .images()
            .chain(earlier.iter().map(|(hash, image)| (*hash, image)));
        let mut tags: Vec<String> = hashes.map(|(hash, _)| tag(&hash)).collect();
        tags.extend(published.snapshot.image.is_some().then(|| LATEST.to_owned()));
        // In lexical order, as the specification asks.
        tags.sort_unstable();
        tags.dedup();
        let (tags, more) = page.cut(tags.into_iter());
        let name = published.name.to_string();
        let link = more
            .then(|| page.next(&format!("/v2/{name}/tags/list"), tags.last()))
            .flatten();
        Ok(listed(&TagList { name, tags }, link))
    }

    /// A tag moves, or gets another image of the same content from a newer program; a digest never does.
    async fn manifest(&self, published: &Published, reference: &str) -> Result<Representation, Error> {
        let unknown = || Refusal::UnknownManifest(reference.to_owned());
        if !reference.contains(':') {
            let index = self.tagged(published, reference).await?.ok_or_else(unknown)?;
            return Ok(blob(index, oci::media_type::INDEX, CachePolicy::Pointer));
        }
        let digest = route::digest(reference)?.ok_or_else(unknown)?;
        let find = |image: &Image| manifest_of(image, digest);
        let (stored, media_type) = self.find_image(published, find).await?.ok_or_else(unknown)?;
        Ok(blob(stored, media_type, CachePolicy::Immutable))
    }

    async fn tagged(&self, published: &Published, tag: &str) -> Result<Option<Stored>, Error> {
        if tag == LATEST {
            return Ok(published.snapshot.image.as_ref().map(|image| image.index));
        }
        let is_it = |hash: &Sha256| tag.len() >= TAG_DIGITS && hash.to_string().starts_with(tag);
        if let Some((_, image)) = published.images().find(|(hash, _)| is_it(hash)) {
            return Ok(Some(image.index));
        }
        let earlier = self.earlier(published).await?;
        let found = earlier.iter().find(|(hash, _)| is_it(hash));
        Ok(found.map(|(_, image)| image.index))
    }

    /// Only what belongs to the catalog is there under its name, whatever else the store has.
    async fn blob(&self, published: &Published, digest: Option<Sha256>) -> Result<Representation, Error> {
        let digest = digest.ok_or(Refusal::UnknownBlob)?;
        let find = |image: &Image| image.blobs().find(|stored| stored.sha256 == digest);
        let stored = self.find_image(published, find).await?.ok_or(Refusal::UnknownBlob)?;
        Ok(blob(stored, Key::Blob(digest).content_type(), CachePolicy::Immutable))
    }

    /// The earlier images are looked at only if the current one is not it.
    async fn find_image<T>(
        &self,
        published: &Published,
        find: impl Fn(&Image) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        if let Some(found) = published.snapshot.image.as_ref().and_then(&find) {
            return Ok(Some(found));
        }
        let earlier = self.earlier(published).await?;
        Ok(earlier.iter().find_map(|(_, image)| find(image)))
    }
}

fn tag(hash: &Sha256) -> String {
    let mut digits = hash.to_string();
    digits.truncate(TAG_DIGITS);
    digits
}

fn manifest_of(image: &Image, digest: Sha256) -> Option<(Stored, &'static str)> {
    let index = (image.index, oci::media_type::INDEX);
    let manifests = image
        .manifests
        .iter()
        .map(|stored| (*stored, oci::media_type::MANIFEST));
    std::iter::once(index)
        .chain(manifests)
        .find(|(stored, _)| stored.sha256 == digest)
}

fn blob(stored: Stored, content_type: &'static str, cache: CachePolicy) -> Representation {
    let digest = HeaderValue::try_from(oci::digest(&stored.sha256)).expect("hex digits are visible ASCII");
    Representation {
        tag: Tag::new(stored.sha256, ""),
        content_type,
        extra: Some(Box::new((CONTENT_DIGEST, digest))),
        source: Source::Object(Object::new(Key::Blob(stored.sha256), stored)),
        ..document(Bytes::new(), cache)
    }
}

fn listed(list: &impl Serialize, link: Option<HeaderValue>) -> Representation {
    let bytes = serde_json::to_vec(list).expect("lists hold only plain fields");
    Representation {
        extra: link.map(|link| Box::new((LINK, link))),
        ..document(bytes.into(), CachePolicy::Pointer)
    }
}

/// Nothing refers to an image here. The specification wants an empty index, also for a manifest that is not there.
fn no_referrers(query: &str) -> Representation {
    let filtered = query.split('&').any(|pair| pair.starts_with("artifactType="));
    let empty = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","manifests":[]}}"#,
        oci::media_type::INDEX
    );
    let applied = (FILTERS_APPLIED, HeaderValue::from_static("artifactType"));
    Representation {
        content_type: oci::media_type::INDEX,
        extra: filtered.then(|| Box::new(applied)),
        ..document(empty.into(), CachePolicy::Pointer)
    }
}
