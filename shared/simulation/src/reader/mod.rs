mod answer;
mod walk;

use std::{collections::BTreeSet, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Collected};
use layout::{CatalogName, Key, Sha256};
use serve::{Metrics, Settings, router};
use tower::ServiceExt;

use self::answer::Answer;
use crate::{
    catalogs::{self, NAMES, PACKAGES},
    chance::Chance,
    history::State,
    line::Line,
};

/// Somebody who asks the server, through a line on which nothing fails, while others write.
pub(crate) struct Reader {
    line: Line,
    router: Router,
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
