use layout::{Image, Sha256, Stored};
use serde::Deserialize;

use super::any;
use crate::{
    promise::Promise,
    tally::Route,
    visitor::{Visitor, Wanted, field},
    wrong::{Wrong, equal},
};

const MANIFEST: Route = "/v2/{catalog}/manifests/{reference}";
const BLOB: Route = "/v2/{catalog}/blobs/{digest}";
/// How many digits of a content hash its tag has.
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

impl Visitor {
    /// The catalog as a container image, as clients of registries come for it.
    pub(super) async fn registry(&mut self, catalog: &str) -> Result<(), Wrong> {
        match rand::random_range(0..5) {
            0 => self.repositories(catalog).await,
            1 => self.tags(catalog).await,
            2 => self.latest(catalog).await,
            _ => self.pull(catalog).await,
        }
    }

    async fn repositories(&mut self, catalog: &str) -> Result<(), Wrong> {
        self.must_get(&Wanted::new("/v2/", "/v2/".to_owned(), Promise::Body))
            .await?;
        let wanted = Wanted::new("/v2/_catalog", "/v2/_catalog".to_owned(), Promise::Body);
        let list: Repositories = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        equal(
            "that a catalog is a repository",
            &list.repositories.iter().any(|name| name == catalog),
            &true,
        )
    }

    async fn tags(&mut self, catalog: &str) -> Result<(), Wrong> {
        let floor = self.shared.world.serial(catalog);
        let path = format!("/v2/{catalog}/tags/list");
        let wanted = Wanted::new("/v2/{catalog}/tags/list", path, Promise::Body);
        let tags: Tags = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        let has = |content: &Sha256| tags.tags.iter().any(|tag| *tag == content.to_string()[..TAG_DIGITS]);
        match self.since(catalog, floor).await? {
            Some(contents) if !contents.iter().any(has) => Err(Wrong::Mixed(tags.tags.join(" "))),
            _ => equal(
                "that there is a latest tag",
                &tags.tags.iter().any(|tag| tag == "latest"),
                &true,
            ),
        }
    }

    /// The tag that moves names the image of a state that was published meanwhile.
    async fn latest(&mut self, catalog: &str) -> Result<(), Wrong> {
        let floor = self.shared.world.serial(catalog);
        let path = format!("/v2/{catalog}/manifests/latest");
        let found = self.must_get(&Wanted::new(MANIFEST, path, Promise::Body)).await?;
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
        Err(Wrong::Mixed(digest(found.hash)))
    }

    /// The image by its digests, down to the layer.
    async fn pull(&mut self, catalog: &str) -> Result<(), Wrong> {
        let content = self.current(catalog).await?.content_hash;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let image = state
            .image
            .as_ref()
            .ok_or_else(|| Wrong::Missing("the image of a snapshot".to_owned()))?;
        let Some(body) = self
            .by_digest(catalog, content, (MANIFEST, "manifests"), image.index)
            .await?
        else {
            return Ok(());
        };
        let index: ImageIndex = serde_json::from_slice(&body)?;
        are("the manifests of an index", &index.manifests, &image.manifests)?;
        let platform = rand::random_range(0..image.manifests.len());
        let stored = image.manifests[platform];
        let Some(body) = self
            .by_digest(catalog, content, (MANIFEST, "manifests"), stored)
            .await?
        else {
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
            self.by_digest(catalog, content, (BLOB, "blobs"), stored).await?;
        }
        self.referrers(catalog, image).await
    }

    async fn by_digest(
        &mut self,
        catalog: &str,
        content: Sha256,
        (route, kind): (Route, &str),
        stored: Stored,
    ) -> Result<Option<bytes::Bytes>, Wrong> {
        let path = format!("/v2/{catalog}/{kind}/{}", digest(stored.sha256));
        let wanted = Wanted::new(route, path, Promise::object(stored.sha256, "", Some(stored)));
        Ok(self.object(catalog, content, wanted).await?.map(|found| found.plain))
    }

    async fn referrers(&mut self, catalog: &str, image: &Image) -> Result<(), Wrong> {
        let path = format!("/v2/{catalog}/referrers/{}", digest(any(&image.manifests).sha256));
        let wanted = Wanted::new("/v2/{catalog}/referrers/{digest}", path, Promise::Body);
        let index: ImageIndex = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        equal("the number of referrers", &index.manifests.len(), &0)
    }
}

fn digest(hash: Sha256) -> String {
    format!("sha256:{hash}")
}

fn are(what: &'static str, told: &[Descriptor], named: &[Stored]) -> Result<(), Wrong> {
    let told: Vec<String> = told.iter().map(|one| format!("{} {}", one.digest, one.size)).collect();
    let named: Vec<String> = named
        .iter()
        .map(|one| format!("{} {}", digest(one.sha256), one.size))
        .collect();
    equal(what, &told.join(", "), &named.join(", "))
}
