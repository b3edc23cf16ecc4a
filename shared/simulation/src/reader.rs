use std::{collections::BTreeSet, io::Read, sync::Arc};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Collected};
use layout::{CatalogName, Key, Sha256};
use serve::{Metrics, Settings, router};
use tower::ServiceExt;

use crate::{
    catalogs::{self, NAMES, PACKAGES},
    chance::Chance,
    history::State,
    line::Line,
    snapshot::sha256,
};

/// How long a reader takes at most from the pointer to the last object that it leads to: the shortest grace period, less
/// what clocks may be wrong by, and some time for the requests themselves.
const LONGEST_MS: u64 = 40 * 60 * 1000;

/// Somebody who asks the server, through a line on which nothing fails, while others write.
pub(crate) struct Reader {
    line: Line,
    router: Router,
}

/// Somebody on the way from the pointer, which was asked for then, to all objects.
struct Walk<'a> {
    name: &'a CatalogName,
    asked: u64,
}

/// An answer that was read to its end.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reader {
    pub(crate) fn new(line: Line, chance: Chance) -> Self {
        let settings = Settings {
            cache_bytes: chance.of("cache").pick(&[0, 64 << 20]),
            ..Settings::default()
        };
        let router = router(Arc::new(line.clone()), settings, Metrics::default());
        Self { line, router }
    }

    /// One request, or a walk from the pointer to all objects.
    ///
    /// # Errors
    /// What a reader must never see.
    pub(crate) async fn read(&self, chance: Chance) -> Result<(), String> {
        let name = catalogs::name(chance.of("catalog").number(0..NAMES.len() as u64) as usize);
        match chance.of("what").number(0..5) {
            0 => self.walk(&name, chance).await,
            1 => self.package(&name, chance).await,
            2 => self.metas(&name, chance).await,
            _ => self.all(&name, chance).await,
        }
    }

    /// The whole catalog in some coding.
    async fn all(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
        let coding = chance.of("coding").pick(&["identity", "gzip", "zstd"]);
        let path = format!("/catalogs/{name}/api/v1/all");
        let Some((answer, states)) = self.ask_at(name, &path, coding).await? else {
            return Ok(());
        };
        let lines = answer.lines(&path)?;
        let hash = Sha256::of(&lines);
        answer.has_tag(&path, hash)?;
        if states.iter().any(|state| state.content == hash) {
            return Ok(());
        }
        Err(format!("{path}: {hash} was not published then"))
    }

    /// One package: of one of the states that were published while it was asked for.
    async fn package(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
        let package = chance.of("package").pick(&PACKAGES);
        let path = format!("/catalogs/{name}/packages/{package}");
        let coding = chance.of("coding").pick(&["identity", "gzip", "zstd"]);
        let Some((answer, states)) = self.ask_at(name, &path, coding).await? else {
            return Ok(());
        };
        let lines = answer.lines(&path)?;
        answer.has_tag(&path, Sha256::of(&lines))?;
        self.is_of(&path, &states, |packages| packages.get(package) == Some(&lines))
    }

    /// The lines of one package, found by the index.
    async fn metas(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
        let package = chance.of("package").pick(&PACKAGES);
        let path = format!("/catalogs/{name}/api/v1/metas?package={package}");
        let Some((answer, states)) = self.ask_at(name, &path, "identity").await? else {
            return Ok(());
        };
        let found = String::from_utf8_lossy(&answer.body).into_owned();
        // The `olm.package` itself names no package.
        self.is_of(&path, &states, |packages| {
            let lines = packages.get(package).map_or(&[][..], Vec::as_slice);
            let lines = String::from_utf8_lossy(lines);
            let mine = lines.lines().filter(|line| line.contains("\"package\":"));
            mine.eq(found.lines())
        })
    }

    fn is_of(
        &self,
        path: &str,
        states: &[State],
        fits: impl Fn(&std::collections::BTreeMap<String, Vec<u8>>) -> bool,
    ) -> Result<(), String> {
        let witness = self.line.site.witness();
        let mut contents = states.iter().filter_map(|state| witness.content(&state.content));
        if contents.any(|content| fits(&content.packages)) {
            Ok(())
        } else {
            Err(format!("{path}: no state that was published then has these lines"))
        }
    }

    /// From the pointer to every object that it leads to, however slowly within the grace period.
    async fn walk(&self, name: &CatalogName, chance: Chance) -> Result<(), String> {
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

    /// Asks, and tells what was published at some time meanwhile; nothing where there was no such catalog yet.
    async fn ask_at(
        &self,
        name: &CatalogName,
        path: &str,
        coding: &str,
    ) -> Result<Option<(Answer, Vec<State>)>, String> {
        let asked = self.line.world.now();
        let answer = self.ask(path, coding).await?;
        let states = self.line.site.witness().between(name, asked, self.line.world.now());
        match answer.status {
            StatusCode::OK => Ok(Some((answer, states))),
            StatusCode::NOT_FOUND if self.line.site.witness().was_absent(name, asked, self.line.world.now()) => {
                Ok(None)
            }
            StatusCode::SERVICE_UNAVAILABLE if self.may_fail(name, path, asked, &states) => Ok(None),
            status => Err(format!("{path} is answered with {status}")),
        }
    }

    /// Whether something that it takes to answer was damaged, or the catalog removed, while somebody asked.
    fn may_fail(&self, name: &CatalogName, path: &str, asked: u64, states: &[State]) -> bool {
        let witness = self.line.site.witness();
        let named = states.iter().flat_map(|state| witness.named_by(name, state));
        let named: BTreeSet<Key> = named.chain([Key::Current(name.clone())]).collect();
        let is_needed = |key: &Key| named.contains(key) && is_read_for(path, key);
        witness.was_absent(name, asked, self.line.world.now()) || witness.rotten.since(asked, is_needed)
    }

    async fn ask(&self, path: &str, coding: &str) -> Result<Answer, String> {
        let request = Request::get(path).header("accept-encoding", coding);
        let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
        let answered = self.router.clone().oneshot(request).await;
        let (parts, body) = answered.map_err(|error| error.to_string())?.into_parts();
        // A body that breaks off is no answer either.
        let body = body.collect().await.ok();
        Ok(Answer {
            status: body.as_ref().map_or(StatusCode::SERVICE_UNAVAILABLE, |_| parts.status),
            headers: parts.headers,
            body: body.map(Collected::to_bytes).unwrap_or_default(),
        })
    }
}

/// Which objects an answer may be made of.
fn is_read_for(path: &str, key: &Key) -> bool {
    match key {
        Key::Current(_) | Key::Snapshot(..) => true,
        Key::All(..) => path.contains("/api/"),
        Key::Index(..) => path.contains("/metas"),
        Key::Shard(_) => path.contains("/metas") || path.contains("/packages/"),
        _ => false,
    }
}

impl Answer {
    fn field(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body without its coding.
    fn lines(&self, path: &str) -> Result<Vec<u8>, String> {
        let mut lines = Vec::new();
        let read = match self.field("content-encoding") {
            "gzip" => flate2::read::GzDecoder::new(&self.body[..]).read_to_end(&mut lines),
            "zstd" => zstd::stream::read::Decoder::new(&self.body[..]).and_then(|mut all| all.read_to_end(&mut lines)),
            _ => return Ok(self.body.to_vec()),
        };
        read.map_err(|error| format!("{path} does not decompress: {error}"))?;
        Ok(lines)
    }

    /// A tag starts with the hash of the content.
    fn has_tag(&self, path: &str, hash: Sha256) -> Result<(), String> {
        let tag = self.field("etag");
        if tag.starts_with(&format!("\"{}", hash.to_base64url())) {
            Ok(())
        } else {
            Err(format!("{path}: the tag {tag} is not that of {hash}"))
        }
    }
}
