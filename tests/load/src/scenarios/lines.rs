use model::Snapshot;

use super::any;
use crate::client::{CheckedRequest, Client};
use crate::expectation::Expectation;
use crate::lines::MetaFields;
use crate::statistics::Route;
use crate::violation::Violation;

const ALL: &[Route] = &["/catalogs/{catalog}/api/v1/all", "/catalogs/{catalog}/all.json"];

impl Client {
    /// Requests the whole catalog. The hash of the body must be that of a state that was published meanwhile.
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
        let wanted = CheckedRequest::new("/catalogs/{catalog}/packages/{package}", path, Expectation::Content);
        let found = self.get(&wanted.coded()).await?.map(|found| found.hash);
        let states = self.states_since(catalog, current.serial).await?;
        let is_shard = |state: &Snapshot| state.package(name).map(|shard| shard.lines.sha256) == found;
        match states {
            Some(states) if !states.iter().any(|state| is_shard(state)) => Err(Violation::Mixed(name.to_owned())),
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
        let path = format!("/catalogs/{catalog}/api/v1/metas?{}", query.query());
        let wanted = CheckedRequest::new("/catalogs/{catalog}/api/v1/metas", path, Expectation::Question);
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
        Err(Violation::Mixed(query.query()))
    }
}

/// Returns a query that matches this meta and maybe others, or nothing at all.
fn question(meta: &MetaFields) -> MetaFields {
    let (schema, package, name) = (meta.schema.clone(), meta.package.clone(), meta.name.clone());
    let nothing = String::new;
    let [schema, package, name] = match rand::random_range(0..6) {
        0 => [schema, nothing(), nothing()],
        1 => [schema, package, nothing()],
        2 => [nothing(), package, nothing()],
        3 => [nothing(), nothing(), name],
        4 => [schema, package, name],
        _ => ["no.such.schema".to_owned(), package, nothing()],
    };
    let query = MetaFields { schema, package, name };
    // A query without fields asks for the whole catalog, which is another scenario.
    match query.query().is_empty() {
        true => meta.clone(),
        false => query,
    }
}
