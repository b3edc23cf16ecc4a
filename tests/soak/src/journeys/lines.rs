use bytes::Bytes;
use layout::Sha256;

use super::any;
use crate::{
    lines::Named,
    promise::Promise,
    visitor::{Visitor, Wanted},
    wrong::Wrong,
};

/// What clients accept.
const CODINGS: &[Option<&str>] = &[
    None,
    Some("gzip"),
    Some("zstd"),
    Some("identity"),
    Some("gzip, deflate, br"),
    Some("gzip;q=0.5, zstd"),
];

const ALL: &[(&str, &str)] = &[
    ("/catalogs/{catalog}/api/v1/all", "api/v1/all"),
    ("/catalogs/{catalog}/all.json", "all.json"),
];

impl Visitor {
    /// The whole catalog: the hash of what came is that of a state that was published meanwhile.
    pub(super) async fn whole(&mut self, catalog: &str) -> Result<(), Wrong> {
        let floor = self.shared.world.serial(catalog);
        let (route, rest) = any(ALL);
        let wanted = Wanted {
            coding: *any(CODINGS),
            ..Wanted::new(route, format!("/catalogs/{catalog}/{rest}"), Promise::Content)
        };
        let found = self.must_get(&wanted).await?;
        self.was_published(catalog, floor, found.hash).await
    }

    /// One package.
    pub(super) async fn package(&mut self, catalog: &str) -> Result<(), Wrong> {
        let current = self.current(catalog).await?;
        let Some(state) = self.state(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let name = &any(&state.packages).name;
        let wanted = Wanted {
            coding: *any(CODINGS),
            ..Wanted::new(
                "/catalogs/{catalog}/packages/{package}",
                format!("/catalogs/{catalog}/packages/{name}"),
                Promise::Content,
            )
        };
        let found = self.get(&wanted).await?.map(|found| found.hash);
        self.was_shard(catalog, current.serial, name, found).await
    }

    /// That a package was this, or was not there, in a state that was published meanwhile.
    async fn was_shard(&mut self, catalog: &str, floor: u64, name: &str, found: Option<Sha256>) -> Result<(), Wrong> {
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(());
        };
        for content in contents {
            match self.state(catalog, content).await? {
                Some(state) if state.package(name).map(|shard| shard.sha256) != found => {}
                // It fits, or nobody can tell any more.
                _ => return Ok(()),
            }
        }
        Err(Wrong::Mixed(name.to_owned()))
    }

    /// Some lines, compared with those that a second reading of the whole catalog finds.
    pub(super) async fn metas(&mut self, catalog: &str) -> Result<(), Wrong> {
        let current = self.current(catalog).await?;
        let Some(lines) = self.all_lines(catalog, current.content_hash).await? else {
            return Ok(());
        };
        let Some(query) = lines.any().map(question) else {
            return Ok(());
        };
        let wanted = Wanted {
            coding: *any(CODINGS),
            ..Wanted::new(
                "/catalogs/{catalog}/api/v1/metas",
                format!("/catalogs/{catalog}/api/v1/metas?{}", query.query()),
                Promise::Question,
            )
        };
        let found = self.must_get(&wanted).await?.plain;
        self.was_answer(catalog, current.serial, &query, &found).await
    }

    async fn was_answer(&mut self, catalog: &str, floor: u64, query: &Named, found: &Bytes) -> Result<(), Wrong> {
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(());
        };
        for content in contents {
            match self.all_lines(catalog, content).await? {
                Some(lines) if lines.select(query) != *found => {}
                _ => return Ok(()),
            }
        }
        Err(Wrong::Mixed(query.query()))
    }
}

/// Something that a client might ask, with one of a catalog's metas for its answer, or none.
fn question(meta: &Named) -> Named {
    let (schema, package, name) = (meta.schema.clone(), meta.package.clone(), meta.name.clone());
    let nothing = String::new;
    let query = match rand::random_range(0..6) {
        0 => (schema, nothing(), nothing()),
        1 => (schema, package, nothing()),
        2 => (nothing(), package, nothing()),
        3 => (nothing(), nothing(), name),
        4 => (schema, package, name),
        _ => ("no.such.schema".to_owned(), package, nothing()),
    };
    let (schema, package, name) = query;
    let query = Named { schema, package, name };
    // A query for everything is another question.
    match query.query().is_empty() {
        true => meta.clone(),
        false => query,
    }
}
