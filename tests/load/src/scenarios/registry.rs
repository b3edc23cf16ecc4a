use http::HeaderName;
use model::{CatalogImage, ObjectDigest, Sha256};
use serde_json::{Value, json};

use super::{any, each, stored::image_of};
use crate::client::{CheckedRequest, Client};
use crate::expectation::Expectation;
use crate::statistics::Route;
use crate::violation::{Violation, equal};

const MANIFEST: Route = "/v2/{catalog}/manifests/{reference}";
const BLOB: Route = "/v2/{catalog}/blobs/{digest}";
/// Number of digits of a content hash in its tag.
const TAG_DIGITS: usize = 12;

impl Client {
    /// Requests the catalog as a container image, as clients of registries do.
    pub(super) async fn registry(&mut self, catalog: &str) -> Result<(), Violation> {
        match rand::random_range(0..5) {
            0 => self.repositories(catalog).await,
            1 => self.tags(catalog).await,
            2 => self.latest(catalog).await,
            _ => self.pull(catalog).await,
        }
    }

    async fn repositories(&mut self, catalog: &str) -> Result<(), Violation> {
        let version = CheckedRequest::of("/v2", "", Expectation::Body);
        self.must_get(&version).await?;
        let wanted = CheckedRequest::of("/v2/_catalog", "", Expectation::Body);
        let is_listed = has(&self.json::<Value>(&wanted).await?["repositories"], catalog);
        equal("that a catalog is a repository", &is_listed, &true)
    }

    async fn tags(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let wanted = CheckedRequest::of("/v2/{catalog}/tags/list", catalog, Expectation::Body);
        let tags = self.json::<Value>(&wanted).await?["tags"].take();
        let is_tagged = |content: &Sha256| has(&tags, &content.to_string()[..TAG_DIGITS]);
        match self.since(catalog, floor).await? {
            Some(contents) if !contents.iter().any(is_tagged) => {
                Err(Violation::Mixed(tags.to_string()))
            }
            _ => equal("that there is a latest tag", &has(&tags, "latest"), &true),
        }
    }

    /// Checks that `latest` is the image of a state that was published meanwhile.
    async fn latest(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let path = format!("/v2/{catalog}/manifests/latest");
        let wanted = CheckedRequest::new(MANIFEST, path, Expectation::Body);
        let found = self.must_get(&wanted).await?;
        let told = found
            .answer
            .field(HeaderName::from_static("docker-content-digest"));
        equal("the digest", &told, &digest(found.hash).as_str())?;
        let is_image = |image: &CatalogImage| image.index.sha256 == found.hash;
        match self.states_since(catalog, floor).await? {
            Some(states)
                if !states
                    .iter()
                    .any(|state| state.image.as_ref().is_none_or(is_image)) =>
            {
                Err(Violation::Mixed(digest(found.hash)))
            }
            _ => Ok(()),
        }
    }

    /// Pulls the image by its digests, down to the layer.
    async fn pull(&mut self, catalog: &str) -> Result<(), Violation> {
        let content = self.current(catalog).await?.content_hash;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let image = image_of(&state)?;
        let Some(body) = self
            .by_digest(catalog, content, MANIFEST, image.index)
            .await?
        else {
            return Ok(());
        };
        let index: Value = serde_json::from_slice(&body)?;
        are(
            "the manifests of an index",
            &index["manifests"],
            &image.manifests,
        )?;
        let platform = rand::random_range(0..image.manifests.len());
        let stored = image.manifests[platform];
        let Some(body) = self.by_digest(catalog, content, MANIFEST, stored).await? else {
            return Ok(());
        };
        let manifest: Value = serde_json::from_slice(&body)?;
        let config = json!([manifest["config"]]);
        are(
            "the configuration of a manifest",
            &config,
            &[image.configs[platform]],
        )?;
        are(
            "the layers of a manifest",
            &manifest["layers"],
            &[image.layer],
        )?;
        for stored in [image.configs[platform], image.layer] {
            self.by_digest(catalog, content, BLOB, stored).await?;
        }
        self.referrers(catalog, image).await
    }

    async fn by_digest(
        &mut self,
        catalog: &str,
        content: Sha256,
        route: Route,
        stored: ObjectDigest,
    ) -> Result<Option<bytes::Bytes>, Violation> {
        let digest = digest(stored.sha256);
        let path = route.replace("{catalog}", catalog);
        let path = path
            .replace("{reference}", &digest)
            .replace("{digest}", &digest);
        let wanted = CheckedRequest::new(route, path, Expectation::Object(stored));
        Ok(self
            .object(catalog, content, wanted)
            .await?
            .map(|found| found.plain))
    }

    async fn referrers(&mut self, catalog: &str, image: &CatalogImage) -> Result<(), Violation> {
        let path = format!(
            "/v2/{catalog}/referrers/{}",
            digest(any(&image.manifests).sha256)
        );
        let wanted =
            CheckedRequest::new("/v2/{catalog}/referrers/{digest}", path, Expectation::Body);
        let index: Value = self.json(&wanted).await?;
        equal("the referrers", &index["manifests"], &json!([]))
    }
}

fn digest(hash: Sha256) -> String {
    format!("sha256:{hash}")
}

fn has(list: &Value, text: &str) -> bool {
    each(list).any(|found| found == text)
}

/// Compares the digests and sizes of descriptors.
fn are(what: &'static str, found: &Value, named: &[ObjectDigest]) -> Result<(), Violation> {
    let found: Value = each(found)
        .map(|one| json!([one["digest"], one["size"]]))
        .collect();
    let named: Value = named
        .iter()
        .map(|one| json!([digest(one.sha256), one.size]))
        .collect();
    equal(what, &found, &named)
}
