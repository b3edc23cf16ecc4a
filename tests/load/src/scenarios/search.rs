use model::Sha256;
use serde::Deserialize;
use serde_json::Value;

use super::{any, each};
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    violation::{Violation, equal},
};

impl Client {
    /// Searches for a package by its whole name, which finds it if the state has it.
    pub(super) async fn search(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let wanted = CheckedRequest::of("/catalogs/{catalog}/search.json", catalog, Expectation::Question);
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
}
