use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{Router, body::Body};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, ETAG, IF_NONE_MATCH},
};
use http_api::{HttpMetrics, HttpSettings};
use http_body_util::{BodyExt, Collected};
use model::CatalogName;
use reader::{PublishedCatalogs, ReaderSettings};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::{
    TreeError, TreeTarget,
    index::{INDEX, TreeIndex, WrittenFile},
    layout::{NamedFile, Phase, TreeLayout},
};

/// Number of files that are written at a time.
const CONCURRENT_WRITES: usize = 4;

/// Memory for small objects that several files show, in bytes.
const CACHE_BYTES: u64 = 16 << 20;

/// Result of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeReport {
    /// Number of catalogs.
    pub catalogs: usize,
    /// Number of files that the tree has.
    pub files: usize,
    /// Number of files that were written.
    pub written: usize,
    /// Bytes that were written.
    pub bytes: u64,
    /// Number of files that became links to files of the store.
    pub linked: usize,
    /// Number of files that were deleted.
    pub deleted: usize,
    /// Names that no file can have, such as a package `..`.
    pub left_out: Vec<String>,
}

/// Brings a tree up to date with the published states of a store. `now` is the time of the run. A run that is killed leaves a tree that
/// serves the old or the new state of each catalog, and that the next run completes.
///
/// # Errors
/// [`TreeError`]. What was written stays.
pub async fn export(
    store: Arc<dyn store::Store>,
    target: Arc<dyn TreeTarget>,
    now: SystemTime,
) -> Result<TreeReport, TreeError> {
    let settings = ReaderSettings {
        cache_bytes: CACHE_BYTES,
        // One state of each catalog for the whole run.
        freshness: Duration::MAX,
        offload: http_api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(store, settings);
    let router = http_api::router(catalogs.clone(), HttpSettings::default(), HttpMetrics::default());
    let known = target.index().await?;
    let known = known.map(|bytes| TreeIndex::from_bytes(&bytes)).transpose()?;
    let export = Arc::new(Export {
        known: known.unwrap_or_default(),
        router,
        catalogs,
        target,
    });
    export.run(now).await
}

struct Export {
    catalogs: PublishedCatalogs,
    router: Router,
    target: Arc<dyn TreeTarget>,
    /// Files of the run before.
    known: TreeIndex,
}

/// Change of a file by a run.
enum FileChange {
    Kept,
    Linked,
    Written,
}

impl Export {
    async fn run(self: Arc<Self>, now: SystemTime) -> Result<TreeReport, TreeError> {
        let (names, files, mut report) = self.plan().await?;
        // What a killed run was about to write is known to the next one, which deletes what nothing names.
        let mut index = self.known.clone();
        for file in &files {
            index.files.entry(file.path.clone()).or_default();
        }
        if index != self.known {
            self.write_index(&index).await?;
        }
        let mut written = BTreeMap::new();
        for phase in files.chunk_by(|one, other| one.phase == other.phase) {
            self.write_phase(phase, &mut written, &mut report).await?;
        }
        let mut deletions = Vec::new();
        for (path, file) in &mut index.files {
            if let Some(written) = written.remove(path) {
                *file = written;
            } else if is_of_other_catalog(path, &names) || file.tag.is_empty() || file.is_due(now) {
                deletions.push(path.clone());
            }
        }
        for path in &deletions {
            self.target.delete(path).await?;
            index.files.remove(path);
        }
        report.deleted = deletions.len();
        report.files = index.files.len();
        if index != self.known {
            self.write_index(&index).await?;
        }
        Ok(report)
    }

    /// Returns the names of the catalogs, and all files that the tree is to have in the order of writing.
    async fn plan(&self) -> Result<(BTreeSet<CatalogName>, Vec<NamedFile>, TreeReport), TreeError> {
        let mut layout = TreeLayout::new(self.target.form());
        let mut names = BTreeSet::new();
        for state in self.catalogs.all().await? {
            let list = NamedFile::new(format!("v2/{}/tags/list", state.name()), Phase::Tags);
            let list = self.ask(&list, None).await.into_body().collect().await;
            let list = list.map(Collected::to_bytes).unwrap_or_default();
            let list: TagList = serde_json::from_slice(&list).unwrap_or_default();
            layout.add_catalog(&self.catalogs, &state, &list.tags).await?;
            names.insert(state.name().clone());
        }
        let (files, left_out) = layout.finish();
        let report = TreeReport {
            catalogs: names.len(),
            left_out,
            ..TreeReport::default()
        };
        Ok((names, files, report))
    }

    async fn write_index(&self, index: &TreeIndex) -> Result<(), TreeError> {
        let body = stream::iter([Ok(index.to_bytes().into())]).boxed();
        self.target.write(INDEX, &HeaderMap::new(), body).await.map(drop)
    }

    /// Writes the files of a phase, several at a time, in tasks: compressing takes the other processors too.
    async fn write_phase(
        self: &Arc<Self>,
        files: &[NamedFile],
        written: &mut BTreeMap<String, WrittenFile>,
        report: &mut TreeReport,
    ) -> Result<(), TreeError> {
        let (mut waiting, mut updates) = (files.iter().cloned(), JoinSet::new());
        loop {
            for file in waiting.by_ref().take(CONCURRENT_WRITES - updates.len()) {
                let export = Arc::clone(self);
                updates.spawn(async move { (export.update(&file).await, file.path) });
            }
            let Some(updated) = updates.join_next().await else {
                return Ok(());
            };
            let (updated, path) = updated.expect("a task that is not aborted ends");
            if updated.is_err() {
                // Nothing is written any more when the next run begins.
                updates.shutdown().await;
            }
            let Some((change, file)) = updated? else { continue };
            match change {
                FileChange::Kept => {}
                FileChange::Linked => report.linked += 1,
                FileChange::Written => {
                    report.written += 1;
                    report.bytes += file.size;
                }
            }
            written.insert(path, file);
        }
    }

    /// Writes a file unless it is there. Returns nothing for one that the mirror does not have and that is not needed.
    async fn update(&self, file: &NamedFile) -> Result<Option<(FileChange, WrittenFile)>, TreeError> {
        let known = match self.known.files.get(&file.path) {
            Some(known) if self.target.has(&file.path, known.size).await => Some(known),
            _ => None,
        };
        let answer = self.ask(file, known.and_then(|known| known.tag.parse().ok())).await;
        match (answer.status(), known) {
            (StatusCode::OK, _) => {}
            (StatusCode::NOT_MODIFIED, Some(known)) => {
                return Ok(Some((FileChange::Kept, WrittenFile::new(&known.tag, known.size))));
            }
            (StatusCode::NOT_FOUND, _) if !file.is_needed => return Ok(None),
            (status, _) => {
                let path = file.url.clone();
                return Err(TreeError::Answer { path, status });
            }
        }
        let (parts, body) = answer.into_parts();
        let field = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let tag = field(&ETAG).unwrap_or_default();
        if let Some(key) = &file.object
            && let Some(size) = field(&CONTENT_LENGTH).and_then(|size| size.parse().ok())
            && self.target.link(&file.path, key).await?
        {
            return Ok(Some((FileChange::Linked, WrittenFile::new(tag, size))));
        }
        let body = TryStreamExt::map_err(body.into_data_stream(), io::Error::other).boxed();
        let size = self.target.write(&file.path, &parts.headers, body).await?;
        Ok(Some((FileChange::Written, WrittenFile::new(tag, size))))
    }

    /// Asks the router for a file, unless it still has a tag.
    async fn ask(&self, file: &NamedFile, known: Option<HeaderValue>) -> Response<Body> {
        let coding = file.coding.content_encoding().unwrap_or("identity");
        let mut request = Request::get(&file.url).header(ACCEPT_ENCODING, format!("{coding}, *;q=0"));
        if let Some(tag) = known {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Body::empty()).expect("paths are escaped");
        let Ok(answer) = self.router.clone().oneshot(request).await;
        answer
    }
}

/// List of tags (OCI distribution specification, "Listing Tags").
#[derive(Default, Deserialize)]
struct TagList {
    tags: Vec<String>,
}

/// Returns true for a name below a catalog that is not there any more.
fn is_of_other_catalog(path: &str, names: &BTreeSet<CatalogName>) -> bool {
    let rest = path.strip_prefix("catalogs/").or_else(|| path.strip_prefix("v2/"));
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(name, _)| !names.iter().any(|known| known.as_str() == name))
}
