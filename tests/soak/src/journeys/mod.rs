//! What visitors come for: each journey asks for some things and checks that they fit.

mod changes;
mod documents;
mod lines;
mod refused;
mod registry;
mod stored;

use std::sync::Arc;

use layout::{Current, Document, Key, Sha256, Snapshot};

use crate::{
    lines::Lines,
    promise::Promise,
    visitor::{Visitor, Wanted},
    wrong::{Wrong, equal},
};

const CURRENT: &str = "/catalogs/{catalog}/current.json";
const SNAPSHOT: &str = "/catalogs/{catalog}/{contentHash}/snapshot.json";
const ALL_ZSTD: &str = "/catalogs/{catalog}/{contentHash}/all.json.zst";

impl Visitor {
    /// One journey, any.
    pub(crate) async fn journey(&mut self) -> Result<(), Wrong> {
        let names = self.shared.world.names();
        let Some(catalog) = names.get(rand::random_range(0..names.len().max(1))) else {
            return Ok(());
        };
        // That everything fits takes a request for each package.
        match rand::random_range(0..60) {
            0..14 => self.documents(catalog).await,
            14..23 => self.whole(catalog).await,
            23..32 => self.package(catalog).await,
            32..41 => self.metas(catalog).await,
            41..46 => self.changes(catalog).await,
            46 => self.everything_fits(catalog).await,
            47..51 => self.earlier(catalog).await,
            51..57 => self.registry(catalog).await,
            _ => self.refused(catalog).await,
        }
    }

    /// What is published now.
    pub(crate) async fn current(&mut self, catalog: &str) -> Result<Current, Wrong> {
        let floor = self.shared.world.serial(catalog);
        let path = format!("/catalogs/{catalog}/current.json");
        let found = self.must_get(&Wanted::new(CURRENT, path, Promise::Body)).await?;
        let current = Current::from_bytes(&found.plain)?;
        self.shared.world.learn(catalog, &current, floor)?;
        Ok(current)
    }

    /// The contents that were published since `floor` was the latest serial. None if there were too many to be known.
    async fn since(&mut self, catalog: &str, floor: u64) -> Result<Option<Vec<Sha256>>, Wrong> {
        let current = self.current(catalog).await?;
        Ok(self.shared.world.between(catalog, floor, current.serial))
    }

    /// That a content, told by an answer to a request from when `floor` was the latest serial, was published then.
    async fn was_published(&mut self, catalog: &str, floor: u64, content: Sha256) -> Result<(), Wrong> {
        match self.since(catalog, floor).await? {
            Some(contents) if !contents.contains(&content) => Err(Wrong::Mixed(content.to_string())),
            _ => Ok(()),
        }
    }

    /// The snapshot of a content. None if that was replaced so long ago that it is gone.
    async fn state(&mut self, catalog: &str, content: Sha256) -> Result<Option<Arc<Snapshot>>, Wrong> {
        if let Some(state) = self.shared.world.state(catalog, content) {
            return Ok(Some(state));
        }
        let path = format!("/catalogs/{catalog}/{content}/snapshot.json");
        let wanted = Wanted::new(SNAPSHOT, path, Promise::object(content, "-snapshot", None));
        let Some(found) = self.get(&wanted).await? else {
            return self.gone(catalog, content, &wanted).await.map(|()| None);
        };
        if let Some(expected) = self.shared.world.snapshot_hash(catalog, content) {
            equal("the hash of a snapshot", &found.hash, &expected)?;
        }
        let state = Snapshot::from_bytes(&found.plain)?;
        equal("the content of a snapshot", &state.content_hash, &content)?;
        let state = Arc::new(state);
        self.shared.world.keep_state(catalog, content, Arc::clone(&state));
        Ok(Some(state))
    }

    /// All lines of a content, by a way that has nothing to do with the index.
    async fn all_lines(&mut self, catalog: &str, content: Sha256) -> Result<Option<Arc<Lines>>, Wrong> {
        if let Some(lines) = self.shared.world.lines(catalog, content) {
            return Ok(Some(lines));
        }
        let path = format!("/catalogs/{catalog}/{content}/all.json.zst");
        let wanted = Wanted::new(ALL_ZSTD, path, Promise::object(content, "-zstd", None));
        let Some(found) = self.get(&wanted).await? else {
            return self.gone(catalog, content, &wanted).await.map(|()| None);
        };
        equal("the hash of a whole catalog", &found.hash, &content)?;
        let lines = Arc::new(Lines::parse(found.plain)?);
        self.shared.world.keep_lines(catalog, content, Arc::clone(&lines));
        Ok(Some(lines))
    }

    /// After a 404: it may be gone if neither the pointer nor what it remembers names its content. Whoever has to read
    /// something older comes too late.
    async fn gone(&mut self, catalog: &str, content: Sha256, wanted: &Wanted) -> Result<(), Wrong> {
        let current = self.current(catalog).await?;
        let named = current.previous.iter().any(|previous| previous.content_hash == content);
        if named || current.content_hash == content {
            return Err(Wrong::Missing(wanted.path.clone()));
        }
        self.shared.tally.with(wanted.route, |row| row.gone += 1);
        Ok(())
    }

    /// A stored object of a content.
    async fn object(
        &mut self,
        catalog: &str,
        content: Sha256,
        wanted: Wanted,
    ) -> Result<Option<crate::promise::Checked>, Wrong> {
        match self.get(&wanted).await? {
            Some(found) => Ok(Some(found)),
            None => self.gone(catalog, content, &wanted).await.map(|()| None),
        }
    }
}

/// The path of an object.
fn path(key: &Key) -> String {
    format!("/{key}")
}

/// One of some things.
fn any<T>(things: &[T]) -> &T {
    &things[rand::random_range(0..things.len())]
}
