use layout::Sha256;
use serde::Deserialize;

use super::any;
use crate::{
    promise::Promise,
    tally::Route,
    visitor::{Visitor, Wanted},
    world::forward,
    wrong::{Wrong, equal},
};

/// What only has to be what its tag says.
const PLAIN: &[Route] = &["/catalogs.json", "/healthz", "/readyz", "/openapi.json"];

#[derive(Deserialize)]
struct Listing {
    catalogs: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    serial: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Packages {
    content_hash: Sha256,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    sha256: Sha256,
}

impl Visitor {
    /// One of the small documents.
    pub(super) async fn documents(&mut self, catalog: &str) -> Result<(), Wrong> {
        match rand::random_range(0..7) {
            0 => self.plain(any::<Route>(PLAIN)).await,
            1 => self.listing().await,
            2 => self.status(catalog).await,
            3 => self.content_hash(catalog).await,
            4 => self.packages(catalog).await,
            5 => self.metrics().await,
            _ => self.current(catalog).await.map(drop),
        }
    }

    async fn plain(&mut self, route: Route) -> Result<(), Wrong> {
        let wanted = Wanted::new(route, route.to_owned(), Promise::Body);
        self.must_get(&wanted).await.map(drop)
    }

    pub(crate) async fn listing(&mut self) -> Result<(), Wrong> {
        let names = self.shared.world.names();
        let floors: Vec<(String, u64)> = names
            .into_iter()
            .map(|name| (name.clone(), self.shared.world.serial(&name)))
            .collect();
        let wanted = Wanted::new("/catalogs", "/catalogs".to_owned(), Promise::Body);
        let listing: Listing = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        for (name, floor) in floors {
            let entry = listing.catalogs.iter().find(|entry| entry.name == name);
            forward(entry.ok_or(Wrong::Missing(name))?.serial, floor)?;
        }
        Ok(())
    }

    async fn status(&mut self, catalog: &str) -> Result<(), Wrong> {
        let path = format!("/catalogs/{catalog}/status.json");
        let wanted = Wanted::new("/catalogs/{catalog}/status.json", path, Promise::Body);
        let status: serde_json::Value = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        equal("that a status has an outcome", &status["outcome"].is_string(), &true)
    }

    async fn content_hash(&mut self, catalog: &str) -> Result<(), Wrong> {
        let floor = self.shared.world.serial(catalog);
        let path = format!("/catalogs/{catalog}/content-hash");
        let wanted = Wanted::new("/catalogs/{catalog}/content-hash", path, Promise::Body);
        let found = self.must_get(&wanted).await?;
        let text = String::from_utf8_lossy(&found.plain);
        let content: Result<Sha256, _> = text.trim_end_matches('\n').parse();
        let content = content.map_err(|_| Wrong::Mixed(text.to_string()))?;
        self.was_published(catalog, floor, content).await
    }

    async fn packages(&mut self, catalog: &str) -> Result<(), Wrong> {
        let floor = self.shared.world.serial(catalog);
        let path = format!("/catalogs/{catalog}/packages");
        let wanted = Wanted::new("/catalogs/{catalog}/packages", path, Promise::Body);
        let list: Packages = serde_json::from_slice(&self.must_get(&wanted).await?.plain)?;
        self.was_published(catalog, floor, list.content_hash).await?;
        let Some(state) = self.state(catalog, list.content_hash).await? else {
            return Ok(());
        };
        let told = list
            .packages
            .iter()
            .map(|package| (package.name.as_str(), package.sha256));
        let named = state.packages.iter().map(|shard| (shard.name.as_str(), shard.sha256));
        equal("that a list has the packages of its snapshot", &told.eq(named), &true)
    }

    async fn metrics(&mut self) -> Result<(), Wrong> {
        let wanted = Wanted::new("/metrics", "/metrics".to_owned(), Promise::Untagged);
        let page = self.must_get(&wanted).await?.plain;
        // How OpenMetrics 1.0 ends a page that is complete.
        equal("that a page of metrics is complete", &page.ends_with(b"# EOF\n"), &true)
    }
}
