use serde::Deserialize;

use super::any;
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    violation::{Violation, equal},
};

#[derive(Deserialize)]
struct QueryAnswer {
    data: QueryData,
}

#[derive(Deserialize)]
struct QueryData {
    olmpackages: Vec<NamedPackage>,
}

#[derive(Deserialize)]
struct NamedPackage {
    name: String,
}

impl Client {
    /// Asks for a package by its name with GraphQL, which finds it if the state has it.
    pub(super) async fn graphql(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let name = &any(&state.packages).name;
        let wanted = CheckedRequest::new(
            "/catalogs/{catalog}/api/v1/graphql",
            format!("/catalogs/{catalog}/api/v1/graphql?query=%7Bolmpackages(name:%22{name}%22)%7Bname%7D%7D"),
            Expectation::Question,
        );
        let found = self.must_get(&wanted).await?;
        let answer: QueryAnswer = serde_json::from_slice(&found.plain)?;
        let latest = self.current(catalog).await?;
        if latest.content_hash != current.content_hash {
            // The answer may be of either state.
            return Ok(());
        }
        let names: Vec<&str> = answer
            .data
            .olmpackages
            .iter()
            .map(|package| package.name.as_str())
            .collect();
        equal("the package that GraphQL finds by its name", &names.join(","), name)
    }
}
