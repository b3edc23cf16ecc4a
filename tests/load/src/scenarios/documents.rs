use model::Sha256;
use serde::Deserialize;

use super::any;
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    history::forward,
    statistics::Route,
    violation::{Violation, equal},
};

/// Routes of which only the entity tag is checked.
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

impl Client {
    /// Requests one of the small documents.
    pub(super) async fn documents(&mut self, catalog: &str) -> Result<(), Violation> {
        match rand::random_range(0..8) {
            0 => self.plain(any::<Route>(PLAIN)).await,
            1 => self.listing().await,
            2 => self.status(catalog).await,
            3 => self.content_hash(catalog).await,
            4 => self.packages(catalog).await,
            5 => self.metrics().await,
            6 => self.page().await,
            _ => self.current(catalog).await.map(drop),
        }
    }

    async fn plain(&mut self, route: Route) -> Result<(), Violation> {
        let wanted = CheckedRequest::of(route, "", Expectation::Body);
        self.must_get(&wanted).await.map(drop)
    }

    pub(crate) async fn listing(&mut self) -> Result<(), Violation> {
        let names = self.shared.history.names();
        let floors: Vec<(String, u64)> = names
            .into_iter()
            .map(|name| (name.clone(), self.shared.history.serial(&name)))
            .collect();
        let listing: Listing = self
            .json(&CheckedRequest::of("/catalogs", "", Expectation::Body))
            .await?;
        for (name, floor) in floors {
            let entry = listing.catalogs.iter().find(|entry| entry.name == name);
            forward(entry.ok_or(Violation::Missing(name))?.serial, floor)?;
        }
        Ok(())
    }

    async fn status(&mut self, catalog: &str) -> Result<(), Violation> {
        let wanted = CheckedRequest::of("/catalogs/{catalog}/status.json", catalog, Expectation::Body);
        let status: serde_json::Value = self.json(&wanted).await?;
        equal("that a status has an outcome", &status["outcome"].is_string(), &true)
    }

    async fn content_hash(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.serial(catalog);
        let wanted = CheckedRequest::of("/catalogs/{catalog}/content-hash", catalog, Expectation::Body);
        let found = self.must_get(&wanted).await?;
        let text = String::from_utf8_lossy(&found.plain);
        let content: Result<Sha256, _> = text.trim_end_matches('\n').parse();
        let content = content.map_err(|_| Violation::Mixed(text.to_string()))?;
        self.was_published(catalog, floor, content).await
    }

    async fn packages(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.serial(catalog);
        let wanted = CheckedRequest::of("/catalogs/{catalog}/packages", catalog, Expectation::Body);
        let list: Packages = self.json(&wanted).await?;
        self.was_published(catalog, floor, list.content_hash).await?;
        let Some(state) = self.state(catalog, list.content_hash).await? else {
            return Ok(());
        };
        let found = list.packages.iter().map(|package| (&package.name, package.sha256));
        let named = state.packages.iter().map(|shard| (&shard.name, shard.lines.sha256));
        equal("that a list has the packages of its snapshot", &found.eq(named), &true)
    }

    /// Requests the page and the files that it names.
    async fn page(&mut self) -> Result<(), Violation> {
        let html = self
            .must_get(&CheckedRequest::of("/", "", Expectation::Content))
            .await?
            .plain;
        let html = String::from_utf8_lossy(&html);
        for file in html.split('"').filter(|part| part.starts_with("page/")) {
            let wanted = CheckedRequest::new("/page/{file}", format!("/{file}"), Expectation::Content);
            let found = self.must_get(&wanted).await?;
            let is_named = file.contains(&found.hash.to_string()[..16]);
            equal("that a file of the page has its name", &is_named, &true)?;
        }
        Ok(())
    }

    async fn metrics(&mut self) -> Result<(), Violation> {
        let wanted = CheckedRequest::of("/metrics", "", Expectation::Untagged);
        let page = self.must_get(&wanted).await?.plain;
        // OpenMetrics 1.0 ends a complete page with this line.
        equal("that a page of metrics is complete", &page.ends_with(b"# EOF\n"), &true)
    }
}
