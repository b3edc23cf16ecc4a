use model::{CatalogImage, ObjectDigest, Sha256};
use serde::Deserialize;

use super::any;
use crate::{
    client::{CheckedRequest, Client, field},
    expectation::Expectation,
    statistics::Route,
    violation::{Violation, equal},
};

const MANIFEST: Route = "/v2/{catalog}/manifests/{reference}";
const BLOB: Route = "/v2/{catalog}/blobs/{digest}";
/// Number of digits of a content hash in its tag.
const TAG_DIGITS: usize = 12;

#[derive(Deserialize)]
struct Repositories {
    repositories: Vec<String>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct ImageIndex {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    size: u64,
}

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
        self.must_get(&CheckedRequest::new("/v2/", "/v2/".to_owned(), Expectation::Body))
            .await?;
        let wanted = CheckedRequest::new("/v2/_catalog", "/v2/_catalog".to_owned(), Expectation::Body);
        let list: Repositories = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        equal(
            "that a catalog is a repository",
            &list.repositories.iter().any(|name| name == catalog),
            &true,
        )
    }

    async fn tags(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.serial(catalog);
        let path = format!("/v2/{catalog}/tags/list");
        let wanted = CheckedRequest::new("/v2/{catalog}/tags/list", path, Expectation::Body);
        let tags: Tags = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        let has = |content: &Sha256| tags.tags.iter().any(|tag| *tag == content.to_string()[..TAG_DIGITS]);
        match self.since(catalog, floor).await? {
            Some(contents) if !contents.iter().any(has) => Err(Violation::Mixed(tags.tags.join(" "))),
            _ => equal(
                "that there is a latest tag",
                &tags.tags.iter().any(|tag| tag == "latest"),
                &true,
            ),
        }
    }

    /// Checks that `latest` is the image of a state that was published meanwhile.
    async fn latest(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.serial(catalog);
        let path = format!("/v2/{catalog}/manifests/latest");
        let found = self
            .must_get(&CheckedRequest::new(MANIFEST, path, Expectation::Body))
            .await?;
        equal(
            "the digest",
            &found.answer.field(field("docker-content-digest")),
            &digest(found.hash).as_str(),
        )?;
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(());
        };
        for content in contents {
            match self.state(catalog, content).await? {
                Some(state)
                    if state
                        .image
                        .as_ref()
                        .is_some_and(|image| image.index.sha256 != found.hash) => {}
                _ => return Ok(()),
            }
        }
        Err(Violation::Mixed(digest(found.hash)))
    }

    /// Pulls the image by its digests, down to the layer.
    async fn pull(&mut self, catalog: &str) -> Result<(), Violation> {
        let content = self.current(catalog).await?.content_hash;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let image = state
            .image
            .as_ref()
            .ok_or_else(|| Violation::Missing("the image of a snapshot".to_owned()))?;
        let Some(body) = self.by_digest(catalog, content, MANIFEST, image.index).await? else {
            return Ok(());
        };
        let index: ImageIndex = serde_json::from_slice(&body)?;
        are("the manifests of an index", &index.manifests, &image.manifests)?;
        let platform = rand::random_range(0..image.manifests.len());
        let stored = image.manifests[platform];
        let Some(body) = self.by_digest(catalog, content, MANIFEST, stored).await? else {
            return Ok(());
        };
        let manifest: Manifest = serde_json::from_slice(&body)?;
        are(
            "the configuration of a manifest",
            &[manifest.config],
            &[image.configs[platform]],
        )?;
        are("the layers of a manifest", &manifest.layers, &[image.layer])?;
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
        let path = path.replace("{reference}", &digest).replace("{digest}", &digest);
        let wanted = CheckedRequest::new(route, path, Expectation::Object(stored));
        Ok(self.object(catalog, content, wanted).await?.map(|found| found.plain))
    }

    async fn referrers(&mut self, catalog: &str, image: &CatalogImage) -> Result<(), Violation> {
        let path = format!("/v2/{catalog}/referrers/{}", digest(any(&image.manifests).sha256));
        let wanted = CheckedRequest::new("/v2/{catalog}/referrers/{digest}", path, Expectation::Body);
        let index: ImageIndex = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        equal("the number of referrers", &index.manifests.len(), &0)
    }
}

fn digest(hash: Sha256) -> String {
    format!("sha256:{hash}")
}

fn are(what: &'static str, found: &[Descriptor], named: &[ObjectDigest]) -> Result<(), Violation> {
    let found: Vec<String> = found.iter().map(|one| format!("{} {}", one.digest, one.size)).collect();
    let named: Vec<String> = named
        .iter()
        .map(|one| format!("{} {}", digest(one.sha256), one.size))
        .collect();
    equal(what, &found.join(", "), &named.join(", "))
}
