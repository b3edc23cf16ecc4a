use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::{HttpMetrics, HttpSettings};
use async_trait::async_trait;
use axum::{Router, body::Body};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use model::text::line;
use parking_lot::Mutex;
use reader::{PublishedCatalogs, ReaderError, ReaderSettings};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempPath;
use tokio::sync::OnceCell;
use tower::ServiceExt;

use crate::TreeForm;
use crate::index::{INDEX, TreeIndex, WrittenFile};
use crate::layout::{NamedFile, Phase, TreeLayout};

/// Number of files that are written at a time.
const CONCURRENT_WRITES: usize = 4;

/// Memory for small objects that several files show, in bytes.
const CACHE_BYTES: u64 = 16 << 20;

/// Maximum number of packages that are named because they are left out. One catalog may have any
/// number of them.
const NOTICES_MAX: usize = 20;

/// Longest path in a notice, in characters.
const NOTICE_CHARS: usize = 500;

/// Place of a tree.
#[async_trait]
pub trait TreeTarget: Send + Sync + 'static {
    /// Returns the form of its files.
    fn form(&self) -> TreeForm;

    /// Returns the folder for files before they are put.
    fn temporary(&self) -> PathBuf {
        env::temp_dir()
    }

    /// Returns the list of files, or `None` for an empty place.
    ///
    /// # Errors
    /// [`TreeError::Foreign`] for a place with other files, and failures of the place.
    async fn index(&self) -> Result<Option<Bytes>, TreeError>;

    /// Returns the sizes in bytes of those of these files that are there, without a request for
    /// each file.
    ///
    /// # Errors
    /// Failures of the place.
    async fn sizes(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, TreeError>;

    /// Returns a temporary link to `source`, an earlier file of the tree with the same bytes, or to
    /// the object of the store for `path` itself. Returns nothing where that cannot be done.
    fn link(&self, _path: &str, _source: &str) -> Option<TempPath> {
        None
    }

    /// Gives a temporary file its name, and the header fields of its answer. Others see all of it
    /// or nothing of it.
    ///
    /// # Errors
    /// Failures of the place.
    async fn put(&self, path: &str, fields: &HeaderMap, file: TempPath) -> io::Result<()>;

    /// Deletes a file. One that is not there is no error.
    ///
    /// # Errors
    /// Failures of the place.
    async fn delete(&self, path: &str) -> io::Result<()>;
}

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
    /// Number of files that became links to files of the store or of the tree.
    pub linked: usize,
    /// Number of files that were deleted.
    pub deleted: usize,
    /// Paths of the packages that the tree has no file for, because their names are no DNS labels.
    pub left_out: Vec<String>,
}

impl TreeReport {
    /// Returns lines for people about what is left out.
    pub fn notices(&self) -> Vec<String> {
        let named = self.left_out.iter().take(NOTICES_MAX).map(|path| {
            let path = line(path, NOTICE_CHARS);
            format!("left out: {path}: only packages whose names are DNS labels have files")
        });
        let mut notices: Vec<String> = named.collect();
        let more = self.left_out.len() - notices.len();
        if more > 0 {
            notices.push(format!("left out: {more} more packages; --json lists all"));
        }
        notices
    }
}

/// Brings a tree up to date with the published states of a store. `now` is the time of the run. A
/// run that is killed leaves a tree that serves the old or the new state of each catalog, and that
/// the next run completes.
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
        offload: api::offload,
        ..ReaderSettings::default()
    };
    let catalogs = PublishedCatalogs::new(store, settings);
    let mut known = match target.index().await? {
        Some(bytes) => serde_json::from_slice(&bytes).map_err(TreeError::Index)?,
        None => TreeIndex::default(),
    };
    known.forget_unfinished();
    let planned = known.clone();
    let there = target
        .sizes(&planned.files.keys().cloned().collect())
        .await?;
    known
        .files
        .retain(|path, file| there.get(path) == Some(&file.size));
    let mut run = ExportRun {
        router: api::router(
            catalogs.clone(),
            HttpSettings {
                is_static: true,
                ..HttpSettings::default()
            },
            HttpMetrics::default(),
        ),
        planned,
        known,
        begun: OnceCell::new(),
        report: Mutex::default(),
        target,
    };
    let mut layout = TreeLayout::new(run.target.form());
    let mut names = BTreeSet::new();
    for state in catalogs.all().await? {
        let file = NamedFile::new(format!("v2/{}/tags/list", state.name()), Phase::Tags);
        let answer = run.ask(&file, None).await.into_body().collect().await;
        let bytes = answer.map(Collected::to_bytes).unwrap_or_default();
        let list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let tags = list["tags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let path = format!("catalogs/{}/api/v1/metas", state.name());
        let mut metas = NamedFile::new(path, Phase::Documents);
        metas.url.push_str("?schema=olm.channel");
        let metas = run.ask(&metas, None).await.into_body().collect().await;
        let metas = metas.map(Collected::to_bytes).unwrap_or_default();
        // A line that is no channel has no file.
        let channels = metas.split(|byte| *byte == b'\n');
        let channels = channels.filter_map(|line| serde_json::from_slice(line).ok());
        layout
            .add_catalog(&catalogs, &state, tags, channels)
            .await?;
        names.insert(state.name().to_string());
    }
    let (files, left_out) = layout.finish();
    run.planned.is_unfinished = true;
    for file in &files {
        run.planned.files.entry(file.path.clone()).or_default();
    }
    run.clear_the_way(&files).await?;
    let mut index = TreeIndex::default();
    for phase in files.chunk_by(|one, other| one.phase == other.phase) {
        let mut updates = stream::iter(phase.to_vec())
            .map(|file| run.update(file))
            .buffer_unordered(CONCURRENT_WRITES);
        while let Some(update) = updates.try_next().await? {
            index.files.extend(update);
        }
    }
    let mut unnamed = run.planned.files.clone();
    unnamed.retain(|path, _| !index.files.contains_key(path) && there.contains_key(path));
    for (path, mut file) in unnamed {
        if file.tag.is_empty() || file.is_due(now) || is_of_other_catalog(&path, &names) {
            run.delete(&path).await?;
        } else {
            index.files.insert(path, file);
        }
    }
    if run.begun.initialized() || index != run.known {
        run.write_index(&index).await?;
    }
    Ok(TreeReport {
        catalogs: names.len(),
        files: index.files.len(),
        left_out,
        ..run.report.into_inner()
    })
}

struct ExportRun {
    router: Router,
    target: Arc<dyn TreeTarget>,
    /// Files of the run before that are there.
    known: TreeIndex,
    /// Files of the run before and of this one: the next run deletes what a killed one leaves and
    /// nothing names.
    planned: TreeIndex,
    /// Set after `planned` was written, which is before the first change.
    begun: OnceCell<()>,
    /// Counts of what was written, linked and deleted.
    report: Mutex<TreeReport>,
}

impl ExportRun {
    async fn begin(&self) -> Result<(), TreeError> {
        let begun = self
            .begun
            .get_or_try_init(|| self.write_index(&self.planned));
        begun.await.copied()
    }

    async fn write_index(&self, index: &TreeIndex) -> Result<(), TreeError> {
        let body = serde_json::to_vec(index).expect("texts and numbers become JSON");
        self.write(INDEX, &HeaderMap::new(), body.into())
            .await
            .map(drop)
    }

    async fn delete(&self, path: &str) -> Result<(), TreeError> {
        self.begin().await?;
        let deleted = self.target.delete(path).await;
        deleted.map_err(TreeError::at(path))?;
        self.report.lock().deleted += 1;
        Ok(())
    }

    /// Deletes files in whose place a folder is needed, and those in a folder that is to be a file.
    /// Earlier versions wrote files for packages such as `a/b`.
    async fn clear_the_way(&mut self, files: &[NamedFile]) -> Result<(), TreeError> {
        let named: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let mut in_the_way = Vec::new();
        for path in self.planned.files.keys() {
            let inside = format!("{path}/");
            let next = named.range(inside.as_str()..).next();
            let is_folder = next.is_some_and(|next| next.starts_with(&inside));
            let mut slashes = path.match_indices('/');
            let is_in_file = slashes.any(|(at, _)| named.contains(&path[..at]));
            if is_folder || is_in_file {
                in_the_way.push(path.clone());
            }
        }
        for path in in_the_way {
            self.delete(&path).await?;
            self.planned.files.remove(&path);
        }
        Ok(())
    }

    /// Writes a file unless it is there. Returns it with its path; nothing for one that the state
    /// lacks.
    async fn update(&self, file: NamedFile) -> Result<Option<(String, WrittenFile)>, TreeError> {
        let known = self.known.files.get(&file.path);
        let answer = self
            .ask(&file, known.and_then(|known| known.tag.parse().ok()))
            .await;
        let fields = answer.headers();
        let mut written = WrittenFile {
            tag: text(fields, &ETAG).to_owned(),
            size: text(fields, &CONTENT_LENGTH).parse().unwrap_or_default(),
            unnamed_since: None,
        };
        match (answer.status(), known) {
            (StatusCode::NOT_MODIFIED, Some(known)) => written.size = known.size,
            (StatusCode::NOT_FOUND | StatusCode::GONE, _) if !file.is_needed => return Ok(None),
            (StatusCode::OK, _) => {
                self.begin().await?;
                let link = file
                    .same
                    .as_ref()
                    .and_then(|same| self.target.link(&file.path, same));
                if let Some(link) = link {
                    let linked = self.target.put(&file.path, fields, link).await;
                    linked.map_err(TreeError::at(&file.path))?;
                    self.report.lock().linked += 1;
                } else {
                    let (parts, body) = answer.into_parts();
                    written.size = self.write(&file.path, &parts.headers, body).await?;
                    let mut report = self.report.lock();
                    report.written += 1;
                    report.bytes += written.size;
                }
            }
            (status, _) => {
                let answered = format!("{} is answered with {status}", file.url);
                return Err(TreeError::at(&file.path)(io::Error::other(answered)));
            }
        }
        Ok(Some((file.path, written)))
    }

    /// Asks the router for a file, unless it still has a tag.
    async fn ask(&self, file: &NamedFile, known: Option<HeaderValue>) -> Response<Body> {
        let coding = file.coding.content_encoding().unwrap_or("identity");
        let mut request =
            Request::get(&file.url).header(ACCEPT_ENCODING, format!("{coding}, *;q=0"));
        if let Some(tag) = known {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Body::empty()).expect("paths are escaped");
        let Ok(answer) = self.router.clone().oneshot(request).await;
        answer
    }

    /// Writes a file with the header fields of its answer. Returns its size in bytes.
    async fn write(&self, path: &str, fields: &HeaderMap, body: Body) -> Result<u64, TreeError> {
        let write = async {
            let mut file = tempfile::Builder::new()
                // A web server is often another user.
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(self.target.temporary())?;
            let mut chunks = body.into_data_stream();
            let mut size = 0;
            while let Some(chunk) = chunks.try_next().await.map_err(io::Error::other)? {
                file.write_all(&chunk)?;
                size += chunk.len() as u64;
            }
            self.target.put(path, fields, file.into_temp_path()).await?;
            Ok(size)
        };
        write.await.map_err(TreeError::at(path))
    }
}

/// Returns the text of a field, which is empty if there is none.
fn text<'a>(fields: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let value = fields.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Returns true for a name below a catalog that is not there any more.
fn is_of_other_catalog(path: &str, names: &BTreeSet<String>) -> bool {
    let rest = path
        .strip_prefix("catalogs/")
        .or_else(|| path.strip_prefix("v2/"));
    rest.and_then(|rest| rest.split_once('/'))
        .is_some_and(|(name, _)| !names.contains(name))
}

/// The reason for which a tree is not brought up to date. It still serves the state before, or that
/// of the run.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The store cannot be read.
    #[error("cannot read the mirror")]
    Reader(#[from] ReaderError),
    /// A file or an object of a bucket cannot be read or written.
    #[error("cannot write {path}")]
    Write {
        /// Path in the tree.
        path: String,
        /// Error of the place, or of what was to be written.
        source: io::Error,
    },
    /// The target has something and no `static.json`.
    #[error("{0} holds files that are no static tree: name an empty or a new place")]
    Foreign(String),
    /// The target is the store, lies in it, or holds it.
    #[error("{0} is the store, lies in it, or holds it: name another place")]
    Store(String),
    /// The list of files is damaged, or of a newer program.
    #[error("static.json cannot be used: delete the tree and write it anew")]
    Index(#[source] serde_json::Error),
    /// Another program writes the tree.
    #[error("another run writes {0}")]
    Busy(PathBuf),
}

impl TreeError {
    pub(crate) fn at(path: &str) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}
