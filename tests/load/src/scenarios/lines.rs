use model::Snapshot;

use super::any;
use crate::client::{CheckedRequest, Client};
use crate::expectation::Expectation;
use crate::lines::{MetaFields, url_query};
use crate::statistics::Route;
use crate::violation::Violation;

const ALL: &[Route] = &[
    "/catalogs/{catalog}/api/v1/all",
    "/catalogs/{catalog}/all.json",
];

impl Client {
    /// Requests the whole catalog. The hash of the body must be that of a state that was published
    /// meanwhile.
    pub(super) async fn whole(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let wanted = CheckedRequest::of(any::<Route>(ALL), catalog, Expectation::Content);
        let found = self.must_get(&wanted.coded()).await?;
        self.was_published(catalog, floor, found.hash).await
    }

    /// Requests one package.
    pub(super) async fn package(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let name = &any(&state.packages).name;
        let path = format!("/catalogs/{catalog}/packages/{name}");
        let wanted = CheckedRequest::new(
            "/catalogs/{catalog}/packages/{package}",
            path,
            Expectation::Content,
        );
        let found = self.get(&wanted.coded()).await?.map(|found| found.hash);
        let states = self.states_since(catalog, current.serial).await?;
        let is_shard =
            |state: &Snapshot| state.package(name).map(|shard| shard.lines.sha256) == found;
        match states {
            Some(states) if !states.iter().any(|state| is_shard(state)) => {
                Err(Violation::Mixed(name.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Sends a query and compares the lines with those found without the server's index.
    pub(super) async fn metas(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(lines) = self.all_lines(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let Some(query) = lines.any().map(question) else {
            return Ok(());
        };
        let path = format!("/catalogs/{catalog}/api/v1/metas?{}", url_query(&query));
        let wanted = CheckedRequest::new(
            "/catalogs/{catalog}/api/v1/metas",
            path,
            Expectation::Question,
        );
        let found = self.must_get(&wanted.coded()).await?.plain;
        let Some(contents) = self.since(catalog, current.serial).await? else {
            return Ok(());
        };
        for content in contents {
            match self.all_lines(catalog, content).await? {
                Some(lines) if lines.select(&query) != found => {}
                // The lines fit, or the state is deleted and cannot be compared.
                _ => return Ok(()),
            }
        }
        Err(Violation::Mixed(url_query(&query)))
    }
}

/// Returns a query by some fields of this meta, which others may match too, or one that nothing
/// matches.
fn question(meta: &MetaFields) -> MetaFields {
    let mut query = meta.clone();
    for field in &mut query {
        if rand::random() {
            field.clear();
        }
    }
    if rand::random_range(0..6) == 0 {
        query[0] = "no.such.schema".to_owned();
    }
    // A query without fields asks for the whole catalog, which is another scenario.
    if query.concat().is_empty() {
        meta.clone()
    } else {
        query
    }
}
