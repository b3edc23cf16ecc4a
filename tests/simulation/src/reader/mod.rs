mod walk;

use std::{collections::BTreeSet, sync::Arc};

use ::reader::{PublishedCatalogs, ReaderSettings};
use api::{HttpMetrics, HttpSettings, router};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use model::{CatalogName, Key, Kind, Sha256};
use testkit::Answer;

use crate::catalogs::{self, NAMES, PACKAGES};
use crate::chance::Chance;
use crate::handle::StoreHandle;
use crate::history::State;
use crate::snapshot::Content;

/// Client of the HTTP API over a store handle without faults, while others write.
pub(crate) struct Reader {
    handle: StoreHandle,
    router: Router,
}

impl Reader {
    pub(crate) fn new(handle: StoreHandle, chance: Chance) -> Self {
        let settings = ReaderSettings {
            cache_bytes: chance.of("cache").pick(&[0, 64 << 20]),
            ..ReaderSettings::default()
        };
        let catalogs = PublishedCatalogs::new(Arc::new(handle.clone()), settings);
        let router = router(catalogs, HttpSettings::default(), HttpMetrics::default());
        Self { handle, router }
    }

    /// Sends one request, or walks from the pointer to all objects.
    ///
    /// # Errors
    /// An answer that no client may get.
    pub(crate) async fn read(&self, chance: Chance) -> Result<(), String> {
        let name = catalogs::name(chance.of("catalog").number(0..NAMES.len() as u64) as usize);
        let package = chance.of("package").pick(&PACKAGES);
        let path = match chance.of("what").number(0..5) {
            0 => return self.walk(&name, chance).await,
            1 => format!("/catalogs/{name}/packages/{package}"),
            2 => format!("/catalogs/{name}/api/v1/metas?package={package}"),
            _ => format!("/catalogs/{name}/api/v1/all"),
        };
        let coding = chance.of("coding").pick(&["identity", "gzip", "zstd"]);
        let Some((answer, states)) = self.ask_at(&name, &path, coding).await? else {
            return Ok(());
        };
        let lines = answer.decoded();
        // The tag of selected lines names the content and the query.
        if !path.contains("/metas") {
            check_tag(&answer, &path, Sha256::of(&lines))?;
        }
        let checker = self.handle.observed.checker();
        let mut contents = states
            .iter()
            .filter_map(|state| checker.contents.get(&state.content));
        if contents.any(|content| expected(content, &path, package) == lines) {
            return Ok(());
        }
        Err(format!(
            "{path}: no state that was published then has these lines"
        ))
    }

    /// Sends a request. Returns the answer with the states that were published meanwhile; `None` if
    /// the failure is excused.
    async fn ask_at(
        &self,
        name: &CatalogName,
        path: &str,
        coding: &str,
    ) -> Result<Option<(Answer, Vec<State>)>, String> {
        let asked = self.handle.world.now();
        let answer = self.ask(path, coding).await?;
        let (checker, now) = (self.handle.observed.checker(), self.handle.world.now());
        let history = checker.history(name);
        let states: Vec<State> = history.between(asked, now).cloned().collect();
        let named = states.iter().flat_map(|state| checker.named_by(state));
        let named: BTreeSet<Key> = named.chain([Key::Current(name.clone())]).collect();
        let is_needed = |key: &Key| named.contains(key) && is_read_for(path, key);
        let is_damaged = checker.damage.since(asked, is_needed);
        let was_absent = history.was_absent(asked, now);
        match answer.status {
            // The server hashes a large object once an hour, so damage may show in its bytes until
            // then.
            StatusCode::OK if is_damaged => Ok(None),
            StatusCode::OK => Ok(Some((answer, states))),
            StatusCode::NOT_FOUND if was_absent => Ok(None),
            StatusCode::SERVICE_UNAVAILABLE if was_absent || is_damaged => Ok(None),
            status => Err(format!("{path} is answered with {status}")),
        }
    }

    async fn ask(&self, path: &str, coding: &str) -> Result<Answer, String> {
        let request = Request::get(path).header("accept-encoding", coding);
        let request = request
            .body(Body::empty())
            .map_err(|error| error.to_string())?;
        let mut answer = Answer::to(request, &self.router).await;
        // A body that breaks off counts as no answer.
        if answer.body.is_none() {
            answer.status = StatusCode::SERVICE_UNAVAILABLE;
        }
        Ok(answer)
    }
}

/// Returns the lines of a content that a path answers with.
fn expected(content: &Content, path: &str, package: &str) -> Vec<u8> {
    if path.ends_with("/all") {
        return content.all.clone();
    }
    let lines = content.packages.get(package).cloned().unwrap_or_default();
    if !path.contains("/metas") {
        return lines;
    }
    let lines = lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(String::from_utf8_lossy);
    // The `olm.package` itself names no package.
    let mine = lines.filter(|line| line.contains("\"package\":"));
    mine.collect::<String>().into()
}

/// Checks the ETag: it names the stored bytes of the body, or the lines of a body that was encoded
/// for the answer.
fn check_tag(answer: &Answer, path: &str, lines: Sha256) -> Result<(), String> {
    let tag = answer.header("etag");
    let hashes = [Sha256::of(answer.bytes()), lines];
    let is_named = |hash: &Sha256| tag.starts_with(&format!("\"{}", hash.to_base64url()));
    if hashes.iter().any(is_named) {
        return Ok(());
    }
    Err(format!("{path}: the tag {tag} is not that of {lines}"))
}

/// True if the answer for a path may need an object.
fn is_read_for(path: &str, key: &Key) -> bool {
    match key {
        Key::Current(_) | Key::Object(Kind::Snapshot, _) => true,
        Key::Object(Kind::All(_), _) => path.contains("/api/"),
        Key::Object(Kind::Index, _) => path.contains("/metas"),
        Key::Object(Kind::Package, _) => path.contains("/metas") || path.contains("/packages/"),
        _ => false,
    }
}
