//! Trees of files for web servers: `export --static`.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use ::http::HeaderMap;
use async_trait::async_trait;
use bytes::Bytes;
use flate2::read::GzDecoder;
use model::{Current, Document, Key, Snapshot, StoredDocument};
use serde_json::{Value, json};
use store::StorePlace;
use testkit::S3;
use tree::{FileBody, FolderTree, TreeError, TreeForm, TreeTarget, export};

use crate::support::{
    catalogs::{self, Files},
    http,
    site::{Site, ten_but},
    work::Work,
};

fn tree(work: &Work) -> Value {
    let reports = work.run("export --store store --static tree --json").exits(0).json();
    reports[0].clone()
}

fn files(folder: &Path) -> Files {
    let mut files = catalogs::files(folder);
    files.retain(|(path, _)| !path.starts_with(".tmp"));
    files
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

#[tokio::test(flavor = "multi_thread")]
async fn tree_has_the_answers_of_serve_by_name() {
    let work = Work::published();
    work.poll("v2").exits(0);
    let made = tree(&work);
    assert_eq!((&made["catalogs"], &made["leftOut"]), (&json!(1), &json!([])));
    let server = work.serve("");
    let found = files(&work.path("tree"));
    let paths: BTreeSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    for wanted in [
        "catalogs.json",
        "catalogs/demo/current.json",
        "catalogs/demo/status.json",
        "catalogs/demo/content-hash",
        "catalogs/demo/search.json.gz",
        "catalogs/demo/api/v1/all",
        "catalogs/demo/packages/demo-vault",
        "v2/demo/tags/list",
        "v2/demo/manifests/latest.index",
        "openapi.json",
        "index.html.gz",
    ] {
        assert!(paths.contains(wanted), "{wanted} is not in {paths:?}");
    }
    for (path, bytes) in &found {
        if path == "static.json" {
            continue;
        }
        let name = path.trim_end_matches(".index").trim_end_matches(".manifest");
        let text = name.strip_suffix(".gz").filter(|plain| paths.contains(plain));
        let url = format!("/{}", text.unwrap_or(name)).replace("/index.html", "/");
        let answer = http::get(&server.url(&url), &[("accept-encoding", "identity")]).await;
        assert_eq!(answer.status(), 200, "{path}");
        let expected = answer.bytes().await.unwrap();
        let plain = text.map(|_| gunzip(bytes));
        assert!(plain.as_ref().unwrap_or(bytes) == &expected, "{path} has other bytes");
    }
    work.run("sync tree copy").exits(0);
    work.run("verify --store copy").exits(0);
}

#[test]
fn second_run_writes_what_changed_and_nothing_else() {
    let work = Work::published();
    let first = tree(&work);
    let before = files(&work.path("tree"));
    let again = tree(&work);
    assert_eq!((&again["written"], &again["linked"]), (&json!(0), &json!(0)), "{again}");
    assert!(files(&work.path("tree")) == before);

    work.poll("v2").exits(0);
    let update = tree(&work);
    assert!(update["written"].as_u64() < first["written"].as_u64(), "{update}");
    let unchanged = "catalogs/demo/packages/demo-queue";
    assert!(
        !work
            .path("tree/catalogs/demo/packages/demo-vault")
            .metadata()
            .unwrap()
            .is_dir()
    );
    // A package that is gone stays for two hours, the catalog of `rm` for no time.
    assert!(work.exists("tree/catalogs/demo/packages/demo-search") && work.exists(&format!("tree/{unchanged}")));
    // A file that was damaged in size is written again.
    work.write(&format!("tree/{unchanged}"), "x");
    assert_eq!(tree(&work)["written"], 1);
    work.run("rm --store store demo").exits(0);
    assert!(tree(&work)["deleted"].as_u64() > Some(10));
    assert!(!work.exists("tree/catalogs/demo") && !work.exists("tree/v2/demo"));
}

#[test]
fn gzip_only_tree_has_no_plain_texts() {
    let work = Work::published();
    work.run("export --store store --static tree --gzip-only").exits(0);
    assert!(work.exists("tree/catalogs/demo/api/v1/all.gz") && !work.exists("tree/catalogs/demo/api/v1/all"));
    // What `sync` compares byte for byte.
    assert!(work.exists("tree/catalogs/demo/current.json"));
}

#[test]
fn names_that_no_file_can_have_are_left_out() {
    let work = Work::new();
    let long = "n".repeat(300);
    let lines = ["..", "a/../../b", "c", "c/d", "e", "e.gz", "f%2fg", "h i", &long]
        .map(|name| json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}).to_string());
    work.write("configs/catalog.json", lines.join("\n"));
    work.run("poll --store store --catalog odd=dir:configs").exits(0);
    let left_out = tree(&work)["leftOut"].clone();
    let left_out: BTreeSet<&str> = left_out
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let folder = "catalogs/odd/packages";
    for name in ["..", "a/../../b", "c", "e.gz", long.as_str()] {
        assert!(
            left_out.contains(format!("{folder}/{name}").as_str()),
            "{name}: {left_out:?}"
        );
    }
    for name in ["c/d", "e", "f%2fg", "h i"] {
        assert!(work.exists(&format!("tree/{folder}/{name}")), "{name}");
    }
    assert!(!work.exists("tree/b") && !work.exists("tree/catalogs/b"));
}

#[test]
fn place_that_is_no_tree_is_refused() {
    let work = Work::published();
    work.write("other/file", "mine");
    let root = work.root().display().to_string();
    for (place, said) in [
        ("store", "is the store"),
        ("store/tree", "is the store"),
        (root.as_str(), "is the store"),
        ("other", "other holds files that are no static tree"),
    ] {
        let refused = work
            .run(&format!("export --store store --static {place}"))
            .exits(1)
            .stderr;
        assert!(refused.contains(said), "{place}: {refused}");
    }
    assert_eq!(work.read("other/file"), "mine");
    assert!(!work.exists("store/tree"));
    tree(&work);
    let _open = FolderTree::open(&work.path("tree"), &StorePlace::Folder(work.path("store")), false).unwrap();
    let busy = work.run("export --store store --static tree").exits(1).stderr;
    assert!(busy.contains("another run writes"), "{busy}");
    work.run("export --store store --static tree --to x.tar").exits(2);
    work.run("export --store store").exits(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_has_gzip_bytes_and_media_types() {
    let work = Work::published();
    let bucket = S3::start().await;
    let run = || {
        let mut command = work.command("export --store store --static s3://bucket/tree --s3-path-style --json");
        command.args(["--s3-endpoint", bucket.url()]);
        command
            .env("AWS_ACCESS_KEY_ID", "a")
            .env("AWS_SECRET_ACCESS_KEY", "b")
            .env("AWS_REGION", "us-east-1");
        crate::support::binary::Ran::of(&mut command).exits(0).json()[0].clone()
    };
    let first = run();
    let object = |name: &str| {
        bucket
            .object(&format!("tree/{name}"))
            .unwrap_or_else(|| panic!("{name} is missing"))
    };
    let field = |name: &str, field: &str| object(name).headers.get(field).cloned().unwrap_or_default();
    let all = "catalogs/demo/api/v1/all";
    assert_eq!(
        [field(all, "content-type"), field(all, "content-encoding")],
        ["application/jsonl", "gzip"]
    );
    assert!(gunzip(&object(all).bytes).starts_with(b"{"));
    assert_eq!(
        field("v2/demo/manifests/latest", "content-type"),
        "application/vnd.oci.image.index.v1+json"
    );
    assert_eq!(field("catalogs/demo/current.json", "content-encoding"), "");
    assert_eq!(first["linked"], 0);
    assert_eq!(run()["written"], 0);
}

/// A folder whose writes and links fail from the n-th on, as if the process was killed there.
struct Killed {
    folder: FolderTree,
    left: AtomicUsize,
}

impl Killed {
    fn write(&self, path: &str) -> Result<(), TreeError> {
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| TreeError::File {
            path: path.to_owned(),
            source: std::io::Error::other("killed"),
        })
    }
}

#[async_trait]
impl TreeTarget for Killed {
    fn form(&self) -> TreeForm {
        self.folder.form()
    }

    async fn index(&self) -> Result<Option<Bytes>, TreeError> {
        self.folder.index().await
    }

    async fn has(&self, path: &str, size: u64) -> bool {
        self.folder.has(path, size).await
    }

    async fn link(&self, path: &str, key: &Key) -> Result<bool, TreeError> {
        self.folder.link(path, key).await
    }

    async fn write(&self, path: &str, fields: &HeaderMap, body: FileBody) -> Result<u64, TreeError> {
        self.write(path)?;
        self.folder.write(path, fields, body).await
    }

    async fn delete(&self, path: &str) -> Result<(), TreeError> {
        self.write(path)?;
        self.folder.delete(path).await
    }
}

/// Returns the objects and blobs that the tree names and does not have.
fn missing(folder: &Path) -> Vec<String> {
    let Ok(pointer) = fs::read(folder.join("catalogs/site/current.json")) else {
        return Vec::new();
    };
    let current = Current::from_bytes(&pointer).unwrap();
    let snapshot = fs::read(folder.join(current.snapshot.key().to_string())).unwrap();
    let snapshot = Snapshot::from_stored(&snapshot).unwrap();
    let mut named: Vec<String> = snapshot.objects().iter().map(|entry| entry.key().to_string()).collect();
    let repository = folder.join("v2/site");
    let tagged = fs::read(repository.join("manifests/latest.index")).unwrap_or_default();
    let mut manifests: Vec<Value> = serde_json::from_slice(&tagged).into_iter().collect();
    while let Some(manifest) = manifests.pop() {
        for part in manifest["manifests"].as_array().into_iter().flatten() {
            let path = format!("v2/site/manifests/{}.manifest", part["digest"].as_str().unwrap());
            manifests
                .push(serde_json::from_slice(&fs::read(folder.join(&path)).unwrap_or_default()).unwrap_or_default());
            named.push(path);
        }
        let blobs = manifest["layers"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([&manifest["config"]]);
        named.extend(blobs.filter_map(|blob| Some(format!("v2/site/blobs/{}", blob["digest"].as_str()?))));
    }
    named.retain(|path| !folder.join(path).exists());
    named
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_run_leaves_a_whole_state_that_the_next_run_completes() {
    let site = Site::published().await;
    let now = SystemTime::now();
    let target = |folder: &Path, left: usize| {
        let folder = FolderTree::open(folder, &"s3://bucket".parse().unwrap(), false).unwrap();
        Arc::new(Killed {
            folder,
            left: AtomicUsize::new(left),
        })
    };
    let run = |folder: &Path, left: usize, later: u64| {
        export(
            Arc::new(site.store.clone()),
            target(folder, left),
            now + Duration::from_secs(later),
        )
    };
    let first = tempfile::tempdir().unwrap();
    let writes = run(first.path(), usize::MAX, 0).await.unwrap().written;
    for left in (0..writes + 2).step_by(11) {
        let folder = tempfile::tempdir().unwrap();
        let killed = run(folder.path(), left, 0).await;
        assert!(killed.is_err() || left >= writes, "{left} of {writes}");
        assert_eq!(missing(folder.path()), [""; 0], "new, {left} of {writes}");
        run(folder.path(), usize::MAX, 0).await.unwrap();
        assert!(files(folder.path()) == files(first.path()), "{left} of {writes}");
    }
    site.push(&ten_but(3, 7)[..9].to_vec());
    site.poll().await;
    let changed = tempfile::tempdir().unwrap();
    run(changed.path(), usize::MAX, 0).await.unwrap();
    for left in (0..30).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files(first.path()) {
            catalogs::write(folder.path(), &path, &bytes);
        }
        let _ = run(folder.path(), left, 0).await;
        assert_eq!(missing(folder.path()), [""; 0], "changed, {left}");
        run(folder.path(), usize::MAX, 1).await.unwrap();
        assert_eq!(missing(folder.path()), [""; 0], "changed and completed, {left}");
        // Two hours later nothing of the old state is there but what is kept.
        run(folder.path(), usize::MAX, 7_202).await.unwrap();
        let paths = |folder: &Path| files(folder).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(paths(folder.path()), paths(changed.path()), "{left}");
    }
}
