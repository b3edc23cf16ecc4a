use axum::http::StatusCode;
use bytes::Bytes;
use model::{CatalogName, Key, Kind, Sha256};
use serde_json::{Map, Value};

use super::{Reader, check_tag};
use crate::chance::Chance;
use crate::snapshot::{decode, referenced, sha256};

/// Longest time that a client takes from the pointer to the last object that it leads to, in
/// milliseconds. Collection keeps for two hours what a pointer named; some minutes are for the
/// requests themselves.
const LONGEST_MS: u64 = 110 * 60_000;

/// Walk of a client from the pointer to all objects.
struct Walk<'a> {
    name: &'a CatalogName,
    /// Time of the request for the pointer.
    asked: u64,
}

impl Reader {
    /// Reads the pointer and then, maybe much later, all objects that it leads to.
    pub(super) async fn walk(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
        let (path, asked) = (
            format!("/catalogs/{name}/current.json"),
            self.handle.world.now(),
        );
        let Some((answer, states)) = self.ask_at(name, &path, "identity").await? else {
            return Ok(());
        };
        check_tag(&answer, &path, Sha256::of(answer.bytes()))?;
        if !states.iter().any(|state| state.bytes == answer.bytes()) {
            return Err(format!("{path} was not the pointer then"));
        }
        let current: Value =
            serde_json::from_slice(answer.bytes()).map_err(|error| error.to_string())?;
        let within = chance.of("slow").pick(&[100, 60_000, LONGEST_MS]);
        let pause = chance.of("pause").number(1..within);
        self.handle.world.wait(self.handle.actor, pause).await;
        let walk = Walk { name, asked };
        let snapshot = Key::Object(Kind::Snapshot, referenced(&current["snapshot"])?);
        let Some(bytes) = self.object(&walk, &snapshot).await? else {
            return Ok(());
        };
        let document = decode(&bytes, Kind::Snapshot.encoding())?;
        let document: Value =
            serde_json::from_slice(&document).map_err(|error| error.to_string())?;
        for field in ["gzip", "zstd"] {
            let key = current["all"][field]["key"].as_str().and_then(Key::parse);
            self.object(&walk, &key.ok_or("all.* has no key")?).await?;
        }
        let facts = document["facts"]
            .as_object()
            .into_iter()
            .flat_map(Map::values);
        let shards = document["packages"].as_array().into_iter().flatten();
        let named = [(Kind::Index, &document["index"])].into_iter();
        let named = named.chain(facts.map(|facts| (Kind::Facts, facts)));
        for (kind, recorded) in named.chain(shards.map(|shard| (Kind::Package, shard))) {
            self.object(&walk, &Key::Object(kind, sha256(&recorded["sha256"])?))
                .await?;
        }
        for (route, blob) in [("manifests", "index"), ("blobs", "layer")] {
            let hash = sha256(&document["image"][blob]["sha256"])?;
            let path = format!("/v2/{name}/{route}/sha256:{hash}");
            self.fetch(&walk, &path, Key::Object(Kind::Blob, hash))
                .await?;
        }
        Ok(())
    }

    async fn object(&self, walk: &Walk<'_>, key: &Key) -> Result<Option<Bytes>, String> {
        self.fetch(walk, &format!("/{key}"), key.clone()).await
    }

    /// Fetches an object and checks its hash. Returns `None` if the failure is excused.
    async fn fetch(&self, walk: &Walk<'_>, path: &str, key: Key) -> Result<Option<Bytes>, String> {
        let answer = self.ask(path, "identity").await?;
        if answer.status != StatusCode::OK {
            return if self.is_excused(walk, &key, answer.status) {
                Ok(None)
            } else {
                Err(format!("{path} is answered with {}", answer.status))
            };
        }
        let checker = self.handle.observed.checker();
        match key {
            Key::Object(_, hash) if Sha256::of(answer.bytes()) == hash => Ok(answer.body),
            // The server hashes a large object once an hour.
            key if checker.damage.since(walk.asked, |damaged| *damaged == key) => Ok(None),
            _ => Err(format!("{path} has other bytes than its name says")),
        }
    }

    /// True if a failure is excused: since the walk began the catalog was removed, or its pointer,
    /// its snapshot or the object was damaged.
    fn is_excused(&self, walk: &Walk<'_>, key: &Key, status: StatusCode) -> bool {
        let checker = self.handle.observed.checker();
        let is_needed = |damaged: &Key| match damaged {
            Key::Current(name) => name == walk.name,
            Key::Object(Kind::Snapshot, _) => true,
            damaged => damaged == key,
        };
        let is_known = matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE
        );
        let is_gone = checker
            .history(walk.name)
            .was_absent(walk.asked, self.handle.world.now());
        is_known && (is_gone || checker.damage.since(walk.asked, is_needed))
    }
}
