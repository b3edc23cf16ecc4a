//! The catalogs as container images, to be pulled (OCI distribution specification 1.1, "Pull" and
//! "Content Discovery"). Every catalog is a repository of its name. Nothing can be pushed.

use std::{collections::BTreeSet, time::UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderName, HeaderValue, Method, header::LINK};
use model::{CachePolicy, CatalogImage, Kind, ObjectDigest, Previous, Sha256};
use reader::{PublishedState, ReaderError};
use serde_json::{Value, json};

use crate::app::{App, Images};
use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::{decode, is_read};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Tag that always names the image of the published state.
const LATEST: &str = "latest";
/// Number of hex digits of a content hash in its tag: as many as people know from `git` and
/// `docker`. No two of the at most 17 contents of a catalog share so many.
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
    let mut tags: BTreeSet<String> = contents
        .map(|hash| hash.to_string()[..TAG_DIGITS].to_owned())
        .collect();
    tags.extend(image.map(|_| LATEST.to_owned()));
    let name = state.name();
    let (tags, link) = page.cut(&format!("/v2/{name}/tags/list"), tags.into_iter());
    Ok(listed(&json!({"name": name, "tags": tags}), link))
}

/// A tag moves, or gets another image of the same content from a newer program; a digest never
/// does.
pub(super) async fn manifest(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let reference = call.param("reference");
    let unknown = || ApiError::UnknownManifest(reference.clone().into_owned());
    // A tag cannot have a colon, and a digest has one after its algorithm.
    if !reference.contains(':') {
        let index = call
            .app
            .tagged(&state, &reference)
            .await?
            .ok_or_else(unknown)?;
        return Ok(blob(index, oci::media_type::INDEX, CachePolicy::Pointer));
    }
    let digest = parse_digest(&reference)?;
    let found = call
        .app
        .find_image(&state, |image| manifest_of(image, digest))
        .await?;
    let (stored, media_type) = found.ok_or_else(unknown)?;
    Ok(blob(stored, media_type, CachePolicy::Immutable))
}

/// A repository has only its own catalog's blobs, whatever else the store holds.
pub(super) async fn image_blob(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let digest = parse_digest(&call.param("digest"))?;
    let found = call
        .app
        .find_image(&state, |image| {
            image.blobs().find(|stored| stored.sha256 == digest)
        })
        .await?;
    let stored = found.ok_or(ApiError::UnknownBlob)?;
    Ok(blob(
        stored,
        Kind::Blob.content_type(),
        CachePolicy::Immutable,
    ))
}

/// The specification wants an empty index, also for a manifest that does not exist.
pub(super) async fn referrers(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    call.state().await?;
    parse_digest(&call.param("digest"))?;
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
    async fn tagged(
        &self,
        state: &PublishedState,
        tag: &str,
    ) -> Result<Option<ObjectDigest>, ApiError> {
        let is_tagged =
            |hash: &Sha256| tag.len() >= TAG_DIGITS && hash.to_string().starts_with(tag);
        let index = state.current().image.map(|image| image.digest);
        if tag == LATEST || (index.is_some() && is_tagged(&state.current().content_hash)) {
            return Ok(index);
        }
        let earlier = self.earlier_images(state).await?;
        let found = earlier.iter().find(|(hash, _)| is_tagged(hash));
        Ok(found.map(|(_, image)| image.index))
    }

    /// Searches the current image first: earlier ones are read only if it does not have what is
    /// asked for.
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
    let found = image
        .manifests
        .iter()
        .find(|stored| stored.sha256 == digest)?;
    Some((*found, oci::media_type::MANIFEST))
}

fn blob(stored: ObjectDigest, content_type: &'static str, cache: CachePolicy) -> Representation {
    let digest =
        HeaderValue::try_from(oci::digest(&stored.sha256)).expect("hex digits are visible ASCII");
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

/// Maximum number of Snapshots that are read at a time.
const CONCURRENT_READS: usize = 4;

impl App {
    /// Returns the images of earlier publications whose Snapshots are still stored.
    async fn earlier_images(&self, state: &PublishedState) -> Result<Images, ReaderError> {
        // Snapshots may be collected while the pointer stays, so the list is read again each
        // minute: as long as caches may keep a pointer.
        let now = (self.settings.clock)()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let key = (state.document_hash(), now.as_secs() / 60);
        self.earlier_images
            .get_or_load(&key, || self.read_earlier_images(state))
            .await
    }

    async fn read_earlier_images(&self, state: &PublishedState) -> Result<Images, ReaderError> {
        let mut seen = BTreeSet::from([state.current().snapshot]);
        let previous = state.current().previous.iter();
        let earlier = previous.filter(|previous| seen.insert(previous.snapshot));
        // Collected first: at most sixteen, and the borrow of `seen` ends here.
        let reads: Vec<_> = earlier
            .map(|previous| self.earlier_image(state, previous))
            .collect();
        let images = stream::iter(reads).buffered(CONCURRENT_READS);
        let images = images.try_filter_map(async |image| Ok(image));
        Ok(images.try_collect::<Vec<_>>().await?.into())
    }

    /// Returns nothing for a Snapshot that is gone or damaged: it must not hide the other images.
    async fn earlier_image(
        &self,
        state: &PublishedState,
        previous: &Previous,
    ) -> Result<Option<(Sha256, CatalogImage)>, ReaderError> {
        match self.catalogs.snapshot(&previous.snapshot).await {
            Ok(snapshot) => Ok(snapshot
                .image
                .clone()
                .map(|image| (previous.content_hash, image))),
            Err(error) if error.is_missing() => Ok(None),
            Err(error @ ReaderError::Corrupt { .. }) => {
                tracing::error!(
                    error = %model::text::Chain(&error),
                    catalog = state.name().as_str(),
                    "left out an earlier image"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the error of a path below `/v2/` without a route. Pushing clients ask for several, and
/// should learn that nothing can be pushed. The name of a repository elsewhere may have slashes;
/// here such a repository is unknown.
pub(crate) fn unmatched(method: &Method, path: &str) -> ApiError {
    if !is_read(method) {
        return ApiError::Method;
    }
    match path.rsplitn(3, '/').nth(2) {
        Some(repository) => ReaderError::UnknownCatalog(decode(repository).into_owned()).into(),
        None => ApiError::UnknownPath,
    }
}

/// Parses a digest (OCI image specification, "Digests"). Other algorithms are unsupported, since
/// nothing here has one, and only lower-case hex is a sha256.
fn parse_digest(text: &str) -> Result<Sha256, ApiError> {
    let hash = text
        .strip_prefix("sha256:")
        .and_then(|hex| hex.parse().ok());
    hash.ok_or_else(|| ApiError::Digest(text.to_owned()))
}

/// A page of a sorted list (OCI distribution specification, "Listing Tags").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Page {
    /// Maximum number of results; all of them by default.
    n: Option<usize>,
    /// Result after which the page starts; empty for the first page.
    last: String,
}

impl Page {
    /// Reads the query component of a URL. Unknown parameters are ignored, as other registries do.
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut page = Self::default();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("n", n)) => page.n = Some(number(&decode(n))?),
                Some(("last", last)) => page.last = decode(last).into_owned(),
                _ => {}
            }
        }
        Ok(page)
    }

    /// Returns the page of the sorted `names` that are at `path`, and the `Link` field (RFC 8288)
    /// to the next page if more follow. An empty page has none: it would lead to itself.
    fn cut(
        &self,
        path: &str,
        names: impl Iterator<Item = String>,
    ) -> (Vec<String>, Option<HeaderValue>) {
        let mut rest = names.skip_while(|name| *name <= self.last);
        let page: Vec<String> = rest.by_ref().take(self.n.unwrap_or(usize::MAX)).collect();
        let last = page.last().filter(|_| rest.next().is_some());
        let link = self.n.zip(last).map(|(n, last)| {
            let link = format!("<{path}?n={n}&last={last}>; rel=\"next\"");
            HeaderValue::try_from(link).expect("names and tags are visible ASCII")
        });
        (page, link)
    }
}

/// Parses a number of results. A number above the range of integers means all.
fn number(text: &str) -> Result<usize, ApiError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ApiError::Page(text.to_owned()));
    }
    Ok(text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::all("", "abcd", None)]
    #[case::some("n=2", "ab", Some("</v2/_catalog?n=2&last=b>; rel=\"next\""))]
    #[case::the_next("n=2&last=b", "cd", None)]
    #[case::behind_what_is_gone("last=bb", "cd", None)]
    #[case::behind_the_end("n=1&last=x", "", None)]
    #[case::exactly_all("n=4", "abcd", None)]
    #[case::none("n=0", "", None)]
    #[case::huge("n=99999999999999999999999999", "abcd", None)]
    #[case::unknown("a=b&n&&last=c", "d", None)]
    fn cut_returns(#[case] query: &str, #[case] expected: &str, #[case] next: Option<&str>) {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let (page, link) = Page::parse(query)
            .unwrap()
            .cut("/v2/_catalog", names.into_iter());
        assert_eq!(
            (page.concat().as_str(), link),
            (expected, next.map(|link| link.parse().unwrap()))
        );
    }
}
