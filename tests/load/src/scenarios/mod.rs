//! Scenarios: each sends some requests and checks that the answers agree.

mod changes;
mod documents;
mod lines;
mod registry;
mod stored;

use std::sync::Arc;

use model::{Current, Document, Encoding, Kind, ObjectRef, Sha256, Snapshot, StoredDocument};
use serde_json::Value;

use crate::client::{CheckedRequest, Client};
use crate::expectation::{Expectation, VerifiedAnswer};
use crate::history::{find, keep};
use crate::lines::CatalogLines;
use crate::statistics::Route;
use crate::violation::{Violation, equal};

const OBJECT: Route = "/{kind}/sha256/{object}";

impl Client {
    /// Runs a random scenario.
    pub(crate) async fn run_scenario(&mut self, catalog: &str) -> Result<(), Violation> {
        // This scenario sends a request for each package, so it is rare.
        match rand::random_range(0..57) {
            0..14 => self.documents(catalog).await,
            14..23 => self.whole(catalog).await,
            23..32 => self.package(catalog).await,
            32..41 => self.metas(catalog).await,
            41..44 => self.changes(catalog).await,
            44..46 => self.search(catalog).await,
            46 => self.everything_fits(catalog).await,
            47..51 => self.earlier(catalog).await,
            _ => self.registry(catalog).await,
        }
    }

    /// Returns the pointer and adds it to the history.
    pub(crate) async fn current(&mut self, catalog: &str) -> Result<Current, Violation> {
        let floor = self.shared.history.of(catalog).serial;
        let wanted = CheckedRequest::of(
            "/catalogs/{catalog}/current.json",
            catalog,
            Expectation::Content,
        );
        let found = self.must_get(&wanted.coded()).await?;
        let current = Current::from_bytes(&found.plain)?;
        self.shared.history.learn(catalog, &current, floor)?;
        Ok(current)
    }

    /// Returns the contents that were published since `floor` was the latest serial, or `None` if
    /// some are unknown.
    async fn since(&mut self, catalog: &str, floor: u64) -> Result<Option<Vec<Sha256>>, Violation> {
        let current = self.current(catalog).await?;
        Ok(self.shared.history.between(catalog, floor, current.serial))
    }

    /// Returns the states that were published since `floor` was the latest serial, or `None` if
    /// some are unknown or deleted.
    async fn states_since(
        &mut self,
        catalog: &str,
        floor: u64,
    ) -> Result<Option<Vec<Arc<Snapshot>>>, Violation> {
        let mut states = Vec::new();
        let Some(contents) = self.since(catalog, floor).await? else {
            return Ok(None);
        };
        for content in contents {
            match self.state(catalog, content).await? {
                Some(state) => states.push(state),
                None => return Ok(None),
            }
        }
        Ok(Some(states))
    }

    /// Checks that an answer belongs to a content that was published since `floor` was the latest
    /// serial.
    async fn was_published(
        &mut self,
        catalog: &str,
        floor: u64,
        content: Sha256,
    ) -> Result<(), Violation> {
        match self.since(catalog, floor).await? {
            Some(contents) if !contents.contains(&content) => {
                Err(Violation::Mixed(content.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the snapshot of a content, or `None` if it was replaced long ago and deleted.
    async fn state(
        &mut self,
        catalog: &str,
        content: Sha256,
    ) -> Result<Option<Arc<Snapshot>>, Violation> {
        if let Some(state) = find(&self.shared.history.of(catalog).states, content) {
            return Ok(Some(state));
        }
        let object = self
            .shared
            .history
            .of(catalog)
            .snapshots
            .get(&content)
            .copied();
        let Some(object) = object else {
            return Ok(None);
        };
        let Some(found) = self.object(catalog, content, stored(object)).await? else {
            return Ok(None);
        };
        let state = Snapshot::from_stored(&found.answer.body)?;
        equal("the content of a snapshot", &state.content_hash, &content)?;
        let state = Arc::new(state);
        keep(
            &mut self.shared.history.of(catalog).states,
            content,
            Arc::clone(&state),
        );
        Ok(Some(state))
    }

    /// Returns all lines of a content, read without the server's index.
    async fn all_lines(
        &mut self,
        catalog: &str,
        content: Sha256,
    ) -> Result<Option<Arc<CatalogLines>>, Violation> {
        if let Some(lines) = find(&self.shared.history.of(catalog).lines, content) {
            return Ok(Some(lines));
        }
        let Some(state) = self.state(catalog, content).await? else {
            return Ok(None);
        };
        let object = state.all.zstd.with_kind(Kind::All(Encoding::Zstd));
        let Some(found) = self.object(catalog, content, stored(object)).await? else {
            return Ok(None);
        };
        equal("the hash of a whole catalog", &found.hash, &content)?;
        let lines = Arc::new(CatalogLines::parse(&found.plain)?);
        keep(
            &mut self.shared.history.of(catalog).lines,
            content,
            Arc::clone(&lines),
        );
        Ok(Some(lines))
    }

    /// Checks a 404: the object may be deleted only if neither the pointer nor its `previous` names
    /// its content.
    async fn gone(
        &mut self,
        catalog: &str,
        content: Sha256,
        wanted: &CheckedRequest,
    ) -> Result<(), Violation> {
        let current = self.current(catalog).await?;
        let named = current
            .previous
            .iter()
            .any(|previous| previous.content_hash == content);
        if named || current.content_hash == content {
            return Err(Violation::Missing(wanted.path.clone()));
        }
        self.shared
            .statistics
            .with(wanted.route, |row| row.gone += 1);
        Ok(())
    }

    /// Returns a stored object of a content, or `None` if it was deleted.
    async fn object(
        &mut self,
        catalog: &str,
        content: Sha256,
        wanted: CheckedRequest,
    ) -> Result<Option<VerifiedAnswer>, Violation> {
        match self.get(&wanted).await? {
            Some(found) => Ok(Some(found)),
            None => self.gone(catalog, content, &wanted).await.map(|()| None),
        }
    }
}

/// Returns the request for a stored object.
fn stored(object: ObjectRef) -> CheckedRequest {
    CheckedRequest::new(
        OBJECT,
        format!("/{}", object.key()),
        Expectation::Object(object.digest),
    )
}

/// Returns the elements of a list; none if it is something else.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns a random element.
fn any<T>(things: &[T]) -> &T {
    &things[rand::random_range(0..things.len())]
}
