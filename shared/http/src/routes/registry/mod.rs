//! The catalogs as container images, to be pulled (OCI distribution specification 1.1, "Pull" and "Content Discovery").
//! Every catalog is a repository of its name. Nothing can be pushed.

mod images;
mod names;

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header::LINK};
use model::{CachePolicy, CatalogImage, Kind, ObjectDigest, Sha256};
use reader::{PublishedState, ReaderError};
use serde_json::{Value, json};

use self::names::Page;
pub(crate) use self::{images::Images, names::unmatched};
use super::RouteCall;
use crate::{error::ApiError, payload::Payload, respond::Representation, router::App};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Tag that always names the image of the published state.
const LATEST: &str = "latest";
/// Number of hex digits of a content hash in its tag: as many as people know from `git` and `docker`. No two of the at most
/// 17 contents of a catalog share so many.
const TAG_DIGITS: usize = 12;

pub(super) async fn base(_: RouteCall<'_>) -> Result<Representation, ApiError> {
    Ok(Representation::document(Bytes::from_static(b"{}")))
}

pub(super) async fn repositories(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let page = Page::parse(call.query())?;
    let states = call.app.catalogs.all().await?;
    let names = states.iter().map(|state| state.name().to_string());
    let (repositories, link) = page.cut("/v2/_catalog", names);
    Ok(listed(&json!({"repositories": repositories}), link))
}

pub(super) async fn tags(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let page = Page::parse(call.query())?;
    let image = image(&state).await?;
    let earlier = call.app.earlier_images(&state).await?;
    let contents = image.iter().map(|_| state.current().content_hash);
    let contents = contents.chain(earlier.iter().map(|(hash, _)| *hash));
    // In lexical order, as the specification asks.
    let mut tags: BTreeSet<String> = contents.map(|hash| hash.to_string()[..TAG_DIGITS].to_owned()).collect();
    tags.extend(image.map(|_| LATEST.to_owned()));
    let name = state.name();
    let (tags, link) = page.cut(&format!("/v2/{name}/tags/list"), tags.into_iter());
    Ok(listed(&json!({"name": name, "tags": tags}), link))
}

/// A tag moves, or gets another image of the same content from a newer program; a digest never does.
pub(super) async fn manifest(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let reference = call.param("reference");
    let unknown = || ApiError::UnknownManifest(reference.clone().into_owned());
    // A tag cannot have a colon, and a digest has one after its algorithm.
    if !reference.contains(':') {
        let index = call.app.tagged(&state, &reference).await?.ok_or_else(unknown)?;
        return Ok(blob(index, oci::media_type::INDEX, CachePolicy::Pointer));
    }
    let digest = names::digest(&reference)?;
    let find = |image: &CatalogImage| manifest_of(image, digest);
    let (stored, media_type) = call.app.find_image(&state, find).await?.ok_or_else(unknown)?;
    Ok(blob(stored, media_type, CachePolicy::Immutable))
}

/// A repository has only its own catalog's blobs, whatever else the store holds.
pub(super) async fn image_blob(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let digest = names::digest(&call.param("digest"))?;
    let find = |image: &CatalogImage| image.blobs().find(|stored| stored.sha256 == digest);
    let stored = call.app.find_image(&state, find).await?.ok_or(ApiError::UnknownBlob)?;
    Ok(blob(stored, Kind::Blob.content_type(), CachePolicy::Immutable))
}

/// The specification wants an empty index, also for a manifest that does not exist.
pub(super) async fn referrers(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    call.state().await?;
    names::digest(&call.param("digest"))?;
    let media_type = oci::media_type::INDEX;
    let empty = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": []});
    Ok(Representation::document(empty.to_string().into()).with_type(media_type))
}

/// Returns the current image, if this content was published with one.
async fn image(state: &PublishedState) -> Result<Option<CatalogImage>, ReaderError> {
    // The pointer tells without the Snapshot.
    if state.current().image.is_none() {
        return Ok(None);
    }
    Ok(state.snapshot().await?.image.clone())
}

impl App {
    async fn tagged(&self, state: &PublishedState, tag: &str) -> Result<Option<ObjectDigest>, ApiError> {
        let is_tagged = |hash: &Sha256| tag.len() >= TAG_DIGITS && hash.to_string().starts_with(tag);
        let index = state.current().image.map(|image| image.digest);
        if tag == LATEST || (index.is_some() && is_tagged(&state.current().content_hash)) {
            return Ok(index);
        }
        let earlier = self.earlier_images(state).await?;
        let found = earlier.iter().find(|(hash, _)| is_tagged(hash));
        Ok(found.map(|(_, image)| image.index))
    }

    /// Searches the current image first: earlier ones are read only if it does not have what is asked for.
    async fn find_image<T>(
        &self,
        state: &PublishedState,
        find: impl Fn(&CatalogImage) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        if let Some(found) = image(state).await?.as_ref().and_then(&find) {
            return Ok(Some(found));
        }
        let earlier = self.earlier_images(state).await?;
        Ok(earlier.iter().find_map(|(_, image)| find(image)))
    }
}

fn manifest_of(image: &CatalogImage, digest: Sha256) -> Option<(ObjectDigest, &'static str)> {
    if image.index.sha256 == digest {
        return Some((image.index, oci::media_type::INDEX));
    }
    let found = image.manifests.iter().find(|stored| stored.sha256 == digest)?;
    Some((*found, oci::media_type::MANIFEST))
}

fn blob(stored: ObjectDigest, content_type: &'static str, cache: CachePolicy) -> Representation {
    let digest = HeaderValue::try_from(oci::digest(&stored.sha256)).expect("hex digits are visible ASCII");
    let blob = Representation::of(Payload::Object(stored.with_kind(Kind::Blob)), cache);
    blob.with_type(content_type).with(CONTENT_DIGEST, digest)
}

fn listed(list: &Value, link: Option<HeaderValue>) -> Representation {
    let list = Representation::document(list.to_string().into());
    match link {
        Some(link) => list.with(LINK, link),
        None => list,
    }
}
