use model::Sha256;
use serde::Deserialize;
use serde_json::Value;

use super::any;
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    violation::{Violation, equal},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchAnswer {
    content_hash: Sha256,
    results: Vec<Value>,
}

impl Client {
    /// Searches for a package by its whole name, which finds it if the state has it.
    pub(super) async fn search(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let wanted = CheckedRequest::of("/catalogs/{catalog}/search.json", catalog, Expectation::Question);
        let texts: Value = self.json(&wanted).await?;
        equal(
            "that there are texts of packages",
            &texts["packages"].is_object(),
            &true,
        )?;
        let name = &any(&state.packages).name;
        let wanted = CheckedRequest::new(
            "/catalogs/{catalog}/search",
            format!("/catalogs/{catalog}/search?q={name}&limit=100"),
            Expectation::Body,
        );
        let answer: SearchAnswer = self.json(&wanted).await?;
        self.was_published(catalog, current.serial, answer.content_hash).await?;
        let Some(searched) = self.state(catalog, answer.content_hash).await? else {
            return Ok(());
        };
        let is_found = answer.results.iter().any(|hit| hit["package"] == *name);
        let is_there = searched.package(name).is_some();
        equal("that a package is found by its name", &is_found, &is_there)
    }
}
