//! Trees on places that fail, and of stores that change during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use ::http::HeaderMap;
use async_trait::async_trait;
use bytes::Bytes;
use model::{Availability, Current, Document, Snapshot, StoredDocument};
use serde_json::Value;
use tempfile::TempPath;
use tokio::{runtime::Handle, task::block_in_place};
use tree::{FolderTree, TreeError, TreeForm, TreeReport, TreeTarget, export};
use upkeep::RollbackOptions;

use crate::static_tree::files;
use crate::support::catalogs;
use crate::support::site::{Site, ten_but};

/// Fault of the n-th change of a file, or of a link, whose path begins with `link `.
type Fault = Box<dyn Fn(usize, &str) -> Option<ErrorKind> + Send + Sync>;

/// A folder with a fault.
struct FaultyFolder {
    folder: FolderTree,
    changes: AtomicUsize,
    fault: Fault,
}

impl FaultyFolder {
    fn change(&self, path: &str) -> io::Result<()> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst);
        (self.fault)(number, path).map_or(Ok(()), |kind| Err(kind.into()))
    }
}

#[async_trait]
impl TreeTarget for FaultyFolder {
    fn form(&self) -> TreeForm {
        self.folder.form()
    }

    fn temporary(&self) -> PathBuf {
        self.folder.temporary()
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        self.folder.index().await
    }

    async fn sizes(&self, paths: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, TreeError> {
        self.folder.sizes(paths).await
    }

    fn link(&self, path: &str, source: &str) -> Option<TempPath> {
        match (self.fault)(0, &format!("link {path}")) {
            None => self.folder.link(path, source),
            Some(_) => None,
        }
    }

    async fn put(&self, path: &str, fields: &HeaderMap, file: TempPath) -> io::Result<()> {
        self.change(path)?;
        self.folder.put(path, fields, file).await
    }

    async fn delete(&self, path: &str) -> io::Result<()> {
        self.change(path)?;
        self.folder.delete(path).await
    }
}

fn fault(fault: impl Fn(usize, &str) -> Option<ErrorKind> + Send + Sync + 'static) -> Fault {
    Box::new(fault)
}

/// A process that is killed before its n-th change.
fn killed(at: usize) -> Fault {
    fault(move |number, _| (number >= at).then_some(ErrorKind::Other))
}

/// Runs [`export`] into a folder, so many seconds from now.
async fn run(
    site: &Site,
    folder: &Path,
    later: u64,
    fault: Fault,
) -> Result<TreeReport, TreeError> {
    // A blocking thread of a run that failed may write a last file, and holds the folder until
    // then.
    let opened = loop {
        match FolderTree::open(folder, &"s3://bucket".parse().unwrap(), false) {
            Err(TreeError::Busy(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => break opened.unwrap(),
        }
    };
    let target = FaultyFolder {
        folder: opened,
        changes: AtomicUsize::new(0),
        fault,
    };
    let now = SystemTime::now() + Duration::from_secs(later);
    export(Arc::new(site.store.clone()), Arc::new(target), now).await
}

/// Runs [`export`] into a folder without faults.
async fn update(site: &Site, folder: &Path, later: u64) {
    run(site, folder, later, fault(|_, _| None)).await.unwrap();
}

fn published(folder: &Path, name: &str) -> Option<Current> {
    let pointer = fs::read(folder.join(format!("catalogs/{name}/current.json"))).ok()?;
    Some(Current::from_bytes(&pointer).unwrap())
}

/// Returns the objects and blobs that the tree names and does not have.
fn missing(folder: &Path) -> Vec<String> {
    let Some(current) = published(folder, "site") else {
        return Vec::new();
    };
    let snapshot = fs::read(folder.join(current.snapshot.key().to_string())).unwrap();
    let snapshot = Snapshot::from_stored(&snapshot).unwrap();
    let mut named: Vec<String> = snapshot
        .objects()
        .iter()
        .map(|entry| entry.key().to_string())
        .collect();
    let repository = folder.join("v2/site");
    let tagged = fs::read(repository.join("manifests/latest.index")).unwrap_or_default();
    let mut manifests: Vec<Value> = serde_json::from_slice(&tagged).into_iter().collect();
    while let Some(manifest) = manifests.pop() {
        for part in manifest["manifests"].as_array().into_iter().flatten() {
            let path = format!(
                "v2/site/manifests/{}.manifest",
                part["digest"].as_str().unwrap()
            );
            manifests.push(
                serde_json::from_slice(&fs::read(folder.join(&path)).unwrap_or_default())
                    .unwrap_or_default(),
            );
            named.push(path);
        }
        let blobs = manifest["layers"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([&manifest["config"]]);
        named.extend(
            blobs.filter_map(|blob| Some(format!("v2/site/blobs/{}", blob["digest"].as_str()?))),
        );
    }
    named.retain(|path| !folder.join(path).exists());
    named
}

/// Returns the tree of a site in a new folder.
async fn tree_of(site: &Site) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    update(site, folder.path(), 0).await;
    folder
}

fn paths(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(path, _)| path).collect()
}

/// Returns a site whose one package was updated.
async fn updated() -> Site {
    let site = Site::published().await;
    site.push(&ten_but(3, 7));
    site.poll().await;
    site
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_run_leaves_a_whole_state_that_the_next_run_completes() {
    let site = Site::published().await;
    let first = files(tree_of(&site).await.path());
    let writes = first.len();
    for at in (0..writes + 2).step_by(11) {
        let folder = tempfile::tempdir().unwrap();
        let killed = run(&site, folder.path(), 0, killed(at)).await;
        assert!(killed.is_err() || at >= writes, "{at} of {writes}");
        assert_eq!(missing(folder.path()), [""; 0], "new, {at} of {writes}");
        update(&site, folder.path(), 0).await;
        assert!(files(folder.path()) == first, "{at} of {writes}");
    }
    let earlier = Site::published().await;
    let mut wanted = files(tree_of(&earlier).await.path());
    wanted.retain(|(path, _)| path != "static.json" && !path.ends_with("status.json"));
    site.push(&ten_but(3, 7)[..9].to_vec());
    site.poll().await;
    let changed = paths(tree_of(&site).await.path());
    for at in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in &first {
            catalogs::write(folder.path(), path, bytes);
        }
        let _ = run(&site, folder.path(), 0, killed(at)).await;
        assert_eq!(missing(folder.path()), [""; 0], "changed, {at}");
        if at % 2 == 0 {
            // The store went back to the state before.
            update(&earlier, folder.path(), 1).await;
            let found = files(folder.path());
            for file in &wanted {
                assert!(found.contains(file), "gone back at {at}: {}", file.0);
            }
            continue;
        }
        update(&site, folder.path(), 1).await;
        assert_eq!(
            missing(folder.path()),
            [""; 0],
            "changed and completed, {at}"
        );
        // Two hours later nothing of the old state is there but what is kept.
        update(&site, folder.path(), 7_202).await;
        assert_eq!(paths(folder.path()), changed, "{at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_on_a_bad_place_says_the_path_and_leaves_a_whole_state() {
    let site = updated().await;
    let whole = tree_of(&site).await;
    let full = fault(|number, _| (number > 20).then_some(ErrorKind::StorageFull));
    let read_only = fault(|_, _| Some(ErrorKind::ReadOnlyFilesystem));
    let no_colons = fault(|_, path| path.contains(':').then_some(ErrorKind::InvalidFilename));
    let no_links = fault(|_, path| path.starts_with("link ").then_some(ErrorKind::Unsupported));
    for (fault, said) in [
        (full, "cannot write "),
        (read_only, "cannot write static.json"),
        (no_colons, "sha256:"),
        (no_links, ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        match run(&site, folder.path(), 0, fault).await {
            Ok(report) => assert_eq!((said, report.linked), ("", 0)),
            Err(error) => assert!(
                !said.is_empty() && error.to_string().contains(said),
                "{said}: {error}"
            ),
        }
        assert_eq!(missing(folder.path()), [""; 0], "{said}");
        update(&site, folder.path(), 0).await;
        assert!(files(folder.path()) == files(whole.path()), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_changes_during_a_run_gives_one_of_its_states() {
    type Change = fn(&Site);
    let changes: [(&str, Change); 3] = [
        ("published", |site| {
            site.push(&ten_but(4, 5));
            Handle::current().block_on(site.poll());
        }),
        ("rolled back", |site| {
            Handle::current().block_on(site.rollback(RollbackOptions::default()));
        }),
        ("collected", |site| {
            Handle::current().block_on(site.collect());
        }),
    ];
    for (case, change) in changes {
        for at in [0, 15, 40] {
            let (site, folder) = (Arc::new(updated().await), tempfile::tempdir().unwrap());
            let before = site.current().await.content_hash;
            let changing = site.clone();
            let changes_store = fault(move |number, _| {
                if number == at {
                    block_in_place(|| change(&changing));
                }
                None
            });
            let published = || published(folder.path(), "site").unwrap();
            match run(&site, folder.path(), 0, changes_store).await {
                Ok(_) => assert_eq!(published().content_hash, before, "{case}, {at}"),
                // The image of an earlier state went away under a tag that names it.
                Err(error) => {
                    assert_eq!(case, "collected", "{error}");
                    assert!(error.to_string().contains("v2/site"), "{error}");
                }
            }
            assert_eq!(missing(folder.path()), [""; 0], "{case}, {at}");
            update(&site, folder.path(), 0).await;
            assert_eq!(published(), site.current().await, "{case}, {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_catalog_go_at_once_and_objects_of_others_stay() {
    let mut site = updated().await;
    let folder = tree_of(&site).await;
    // The same content under another name.
    let name = site.catalog.name.clone();
    site.catalog.name = "twin".parse().unwrap();
    site.poll().await;
    site.catalog.name = name;
    update(&site, folder.path(), 0).await;
    site.catalog.availability = Availability::Unavailable;
    site.poll().await;
    update(&site, folder.path(), 0).await;
    let found = paths(folder.path());
    let of_site =
        |path: &&String| path.starts_with("catalogs/site/") || path.starts_with("v2/site/");
    assert_eq!(found.iter().find(of_site), None);
    let twin = published(folder.path(), "twin").unwrap();
    let snapshot = twin.snapshot.key().to_string();
    assert!(
        found.contains(&snapshot) && found.contains(&"v2/twin/manifests/latest.index".to_owned())
    );
    // A clock that jumps deletes nothing that is named, and brings nothing back.
    for later in [4_000_000_000, 0] {
        update(&site, folder.path(), later).await;
        assert!(paths(folder.path()).contains(&snapshot), "{later}");
    }
    site.catalog.availability = Availability::Available;
    site.poll().await;
    update(&site, folder.path(), 0).await;
    assert_eq!(missing(folder.path()), [""; 0]);
}
