use bytes::Bytes;
use http::StatusCode;
use layout::{CatalogName, Key, Sha256};

use super::Reader;
use crate::{chance::Chance, snapshot::sha256};

/// How long a reader takes at most from the pointer to the last object that it leads to: the shortest grace period, less
/// what clocks may be wrong by, and some time for the requests themselves.
const LONGEST_MS: u64 = 40 * 60 * 1000;

/// Somebody on the way from the pointer, which was asked for then, to all objects.
struct Walk<'a> {
    name: &'a CatalogName,
    asked: u64,
}

impl Reader {
    /// From the pointer to every object that it leads to, however slowly within the grace period.
    pub(super) async fn walk(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
        let (path, asked) = (format!("/catalogs/{name}/current.json"), self.line.world.now());
        let Some((answer, states)) = self.ask_at(name, &path, "identity").await? else {
            return Ok(());
        };
        answer.has_tag(&path, Sha256::of(&answer.body))?;
        if !states.iter().any(|state| state.bytes == answer.body) {
            return Err(format!("{path} was not the pointer then"));
        }
        let current: serde_json::Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let within = chance.of("slow").pick(&[100, 60_000, LONGEST_MS]);
        self.pause(chance.of("pause").number(1..within)).await;
        let walk = Walk { name, asked };
        let snapshot = format!("/{}", current["snapshot"]["key"].as_str().unwrap_or_default());
        let Some(bytes) = self.object(&walk, &snapshot, &current["snapshot"]["sha256"]).await? else {
            return Ok(());
        };
        let snapshot: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let hash = sha256(&current["contentHash"])?;
        for (file, field) in [("all.json.gz", "gzip"), ("all.json.zst", "zstd")] {
            let path = format!("/catalogs/{name}/{hash}/{file}");
            self.object(&walk, &path, &snapshot["all"][field]["sha256"]).await?;
        }
        let index = format!("/catalogs/{name}/{hash}/index.json.zst");
        self.object(&walk, &index, &snapshot["index"]["sha256"]).await?;
        for shard in snapshot["packages"].as_array().into_iter().flatten() {
            let path = format!("/packages/sha256/{}.json.zst", sha256(&shard["sha256"])?);
            self.object(&walk, &path, &shard["stored"]["sha256"]).await?;
        }
        self.image(&walk, &snapshot["image"]).await
    }

    async fn image(&self, walk: &Walk<'_>, image: &serde_json::Value) -> Result<(), String> {
        let name = walk.name;
        for (kind, blob) in [("manifests", &image["index"]), ("blobs", &image["layer"])] {
            let path = format!("/v2/{name}/{kind}/sha256:{}", sha256(&blob["sha256"])?);
            self.object(walk, &path, &blob["sha256"]).await?;
        }
        Ok(())
    }

    /// None where it is excused.
    async fn object(&self, walk: &Walk<'_>, path: &str, recorded: &serde_json::Value) -> Result<Option<Bytes>, String> {
        let answer = self.ask(path, "identity").await?;
        if answer.status != StatusCode::OK {
            return match self.is_excused(walk, path, answer.status) {
                true => Ok(None),
                false => Err(format!("{path} is answered with {}", answer.status)),
            };
        }
        if Sha256::of(&answer.body) != sha256(recorded)? {
            return Err(format!("{path} is not what was recorded"));
        }
        Ok(Some(answer.body))
    }

    /// Whether somebody who began to walk then has to bear with no answer: the catalog was removed since, or its
    /// pointer, its Snapshot or the very object was damaged.
    fn is_excused(&self, walk: &Walk<'_>, path: &str, status: StatusCode) -> bool {
        let witness = self.line.site.witness();
        let is_needed = |key: &Key| match key {
            Key::Current(name) | Key::Snapshot(name, _) => name == walk.name,
            Key::Blob(hash) => path.ends_with(&hash.to_string()),
            key => path.ends_with(&key.to_string()),
        };
        let known = matches!(status, StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE);
        let gone = witness.was_absent(walk.name, walk.asked, self.line.world.now());
        known && (gone || witness.rotten.since(walk.asked, is_needed))
    }

    async fn pause(&self, milliseconds: u64) {
        self.line.world.wait(self.line.actor, milliseconds).await;
    }
}
