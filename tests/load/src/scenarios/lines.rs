use bytes::Bytes;
use model::Sha256;

use super::any;
use crate::{
    client::{CheckedRequest, Client},
    expectation::Expectation,
    lines::MetaFields,
    statistics::Route,
    violation::Violation,
};

/// Values of `Accept-Encoding`.
pub(super) const CODINGS: &[Option<&str>] = &[
    None,
    Some("gzip"),
    Some("zstd"),
    Some("identity"),
    Some("gzip, deflate, br"),
    Some("gzip;q=0.5, zstd"),
];

const ALL: &[Route] = &["/catalogs/{catalog}/api/v1/all", "/catalogs/{catalog}/all.json"];

impl Client {
    /// Requests the whole catalog. The hash of the body must be that of a state that was published meanwhile.
    pub(super) async fn whole(&mut self, catalog: &str) -> Result<(), Violation> {
        let floor = self.shared.history.serial(catalog);
        let wanted = CheckedRequest {
            coding: *any(CODINGS),
            ..CheckedRequest::of(any::<Route>(ALL), catalog, Expectation::Content)
        };
        let found = self.must_get(&wanted).await?;
        self.was_published(catalog, floor, found.hash).await
    }

    /// Requests one package.
    pub(super) async fn package(&mut self, catalog: &str) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let name = &any(&state.packages).name;
        let wanted = CheckedRequest {
            coding: *any(CODINGS),
            ..CheckedRequest::new(
                "/catalogs/{catalog}/packages/{package}",
                format!("/catalogs/{catalog}/packages/{name}"),
                Expectation::Content,
            )
        };
        let found = self.get(&wanted).await?.map(|found| found.hash);
        self.was_shard(catalog, current.serial, name, found).await
    }

    /// Checks that a package had this hash, or was missing, in a state that was published meanwhile.
    async fn was_shard(
        &mut self,
        catalog: &str,
        floor: u64,
        name: &str,
        found: Option<Sha256>,
    ) -> Result<(), Violation> {
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(());
        };
        for content in contents {
            match self.state(catalog, content).await? {
                Some(state) if state.package(name).map(|shard| shard.lines.sha256) != found => {}
                // The hash fits, or the state is deleted and cannot be compared.
                _ => return Ok(()),
            }
        }
        Err(Violation::Mixed(name.to_owned()))
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
        let wanted = CheckedRequest {
            coding: *any(CODINGS),
            ..CheckedRequest::new(
                "/catalogs/{catalog}/api/v1/metas",
                format!("/catalogs/{catalog}/api/v1/metas?{}", query.query()),
                Expectation::Question,
            )
        };
        let found = self.must_get(&wanted).await?.plain;
        self.was_answer(catalog, current.serial, &query, &found).await
    }

    async fn was_answer(
        &mut self,
        catalog: &str,
        floor: u64,
        query: &MetaFields,
        found: &Bytes,
    ) -> Result<(), Violation> {
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(());
        };
        for content in contents {
            match self.all_lines(catalog, content).await? {
                Some(lines) if lines.select(query) != *found => {}
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
