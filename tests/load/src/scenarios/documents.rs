use model::Sha256;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{any, each};
use crate::client::{CheckedRequest, Client};
use crate::expectation::Expectation;
use crate::history::forward;
use crate::statistics::Route;
use crate::violation::{Violation, equal};

/// Routes of which only the entity tag is checked.
const PLAIN: &[Route] = &["/catalogs.json", "/healthz", "/readyz", "/openapi.json"];

impl Client {
    /// Requests one of the small documents.
    pub(super) async fn documents(&mut self, catalog: &str) -> Result<(), Violation> {
        match rand::random_range(0..9) {
            0 => self.plain(any::<Route>(PLAIN)).await,
            1 => self.listing().await,
            2 => self.status(catalog).await,
            3 => self.content_hash(catalog).await,
            4 => self.packages(catalog).await,
            5 => self.metrics().await,
            6 => self.page().await,
            7 => self.versions(catalog).await,
            _ => self.current(catalog).await.map(drop),
        }
    }

    async fn plain(&mut self, route: Route) -> Result<(), Violation> {
        let wanted = CheckedRequest::of(route, "", Expectation::Body);
        self.must_get(&wanted).await.map(drop)
    }

    pub(crate) async fn listing(&mut self) -> Result<(), Violation> {
        let history = &self.shared.history;
        let floor = |name: String| (history.of(&name).serial, name);
        let floors: Vec<_> = history.names().into_iter().map(floor).collect();
        let wanted = CheckedRequest::of("/catalogs", "", Expectation::Body);
        let listing: Value = self.json(&wanted).await?;
        for (floor, name) in floors {
            let entry = each(&listing["catalogs"]).find(|entry| entry["name"] == name);
            let serial = entry.and_then(|entry| entry["serial"].as_u64());
            forward(serial.ok_or(Violation::Missing(name))?, floor)?;
        }
        Ok(())
    }

    async fn status(&mut self, catalog: &str) -> Result<(), Violation> {
        let wanted = CheckedRequest::of(
            "/catalogs/{catalog}/status.json",
            catalog,
            Expectation::Body,
        );
        let status: Value = self.json(&wanted).await?;
        equal(
            "that a status has an outcome",
            &status["outcome"].is_string(),
            &true,
        )
    }

    async fn content_hash(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let wanted = CheckedRequest::of(
            "/catalogs/{catalog}/content-hash",
            catalog,
            Expectation::Body,
        );
        let found = self.must_get(&wanted).await?;
        let text = String::from_utf8_lossy(&found.plain);
        let content: Result<Sha256, _> = text.trim_end_matches('\n').parse();
        let content = content.map_err(|_| Violation::Mixed(text.to_string()))?;
        self.was_published(catalog, floor, content).await
    }

    async fn packages(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let wanted = CheckedRequest::of("/catalogs/{catalog}/packages", catalog, Expectation::Body);
        let list: Value = self.json(&wanted).await?;
        let content = Sha256::deserialize(&list["contentHash"])?;
        self.was_published(catalog, floor, content).await?;
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let found =
            each(&list["packages"]).map(|package| json!([package["name"], package["sha256"]]));
        let named = state
            .packages
            .iter()
            .map(|shard| json!([shard.name, shard.lines.sha256]));
        equal(
            "that a list has the packages of its snapshot",
            &found.eq(named),
            &true,
        )
    }

    /// Searches for a package by its whole name, which finds it if the state has it.
    pub(super) async fn search(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let wanted = CheckedRequest::of(
            "/catalogs/{catalog}/search.json",
            catalog,
            Expectation::Question,
        );
        let texts: Value = self.json(&wanted).await?;
        let are_texts = texts["packages"].is_object();
        equal("that there are texts of packages", &are_texts, &true)?;
        let name = &any(&state.packages).name;
        let path = format!("/catalogs/{catalog}/search?q={name}&limit=100");
        let wanted = CheckedRequest::new("/catalogs/{catalog}/search", path, Expectation::Body);
        let answer: Value = self.json(&wanted).await?;
        let content = Sha256::deserialize(&answer["contentHash"])?;
        self.was_published(catalog, current.serial, content).await?;
        let Some(searched) = self.state(catalog, content).await? else {
            return Ok(());
        };
        let is_found = each(&answer["results"]).any(|hit| hit["package"] == *name);
        let is_there = searched.package(name).is_some();
        equal("that a package is found by its name", &is_found, &is_there)
    }

    /// Requests the page and the files that it names.
    async fn page(&mut self) -> Result<(), Violation> {
        let wanted = CheckedRequest::of("/", "", Expectation::Content);
        let html = self.must_get(&wanted).await?.plain;
        let html = String::from_utf8_lossy(&html);
        for file in html.split('"').filter(|part| part.starts_with("page/")) {
            let wanted =
                CheckedRequest::new("/page/{file}", format!("/{file}"), Expectation::Content);
            let found = self.must_get(&wanted).await?;
            let is_named = file.contains(&found.hash.to_string()[..16]);
            equal("that a file of the page has its name", &is_named, &true)?;
        }
        Ok(())
    }

    /// Requests the documents about one package. A catalog of the test may have none of them.
    async fn versions(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let name = &any(&state.packages).name;
        let routes: [(Route, String); 7] = [
            ("/catalogs/{catalog}/days.json", "days.json".to_owned()),
            (
                "/catalogs/{catalog}/packages/{package}/icon",
                format!("packages/{name}/icon"),
            ),
            (
                "/catalogs/{catalog}/icons/{file}",
                format!("icons/{name}.svg"),
            ),
            (
                "/catalogs/{catalog}/packages/{package}/versions.json",
                format!("packages/{name}/versions.json"),
            ),
            (
                "/catalogs/{catalog}/versions/{file}",
                format!("versions/{name}.json"),
            ),
            (
                "/catalogs/{catalog}/packages/{package}/channels/{channel}/versions.json",
                format!("packages/{name}/channels/stable/versions.json"),
            ),
            (
                "/catalogs/{catalog}/versions/{package}/{file}",
                format!("versions/{name}/stable.json"),
            ),
        ];
        for (route, path) in routes {
            let path = format!("/catalogs/{catalog}/{path}");
            let wanted = CheckedRequest::new(route, path, Expectation::Content);
            if self.get(&wanted).await?.is_none() {
                self.fine(&wanted);
            }
        }
        Ok(())
    }

    async fn metrics(&mut self) -> Result<(), Violation> {
        let wanted = CheckedRequest::of("/metrics", "", Expectation::Untagged);
        let page = self.must_get(&wanted).await?.plain;
        // OpenMetrics 1.0 ends a complete page with this line.
        equal(
            "that a page of metrics is complete",
            &page.ends_with(b"# EOF\n"),
            &true,
        )
    }
}
