//! Trees of files for web servers: `export --static`.

use std::{
    collections::BTreeSet, fs, io::Read, os::unix::fs::MetadataExt, path::Path, process::Stdio,
};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use store::StorePlace;
use testkit::{S3, S3Call, S3Fault, until};
use tree::FolderTree;

use crate::support::binary::Ran;
use crate::support::catalogs::{self, Files};
use crate::support::http;
use crate::support::work::Work;

fn tree(work: &Work) -> Value {
    let reports = work
        .run("export --store store --static tree --json")
        .exits(0)
        .json();
    reports[0].clone()
}

pub(crate) fn files(folder: &Path) -> Files {
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
    assert_eq!(
        (&made["catalogs"], &made["leftOut"]),
        (&json!(1), &json!([]))
    );
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
        let name = path
            .trim_end_matches(".index")
            .trim_end_matches(".manifest");
        let text = name
            .strip_suffix(".gz")
            .filter(|plain| paths.contains(plain));
        let url = format!("/{}", text.unwrap_or(name)).replace("/index.html", "/");
        let answer = http::get(&server.url(&url), &[("accept-encoding", "identity")]).await;
        assert_eq!(answer.status(), 200, "{path}");
        let expected = answer.bytes().await.unwrap();
        let plain = text.map(|_| gunzip(bytes));
        assert!(
            plain.as_ref().unwrap_or(bytes) == &expected,
            "{path} has other bytes"
        );
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
    assert_eq!(
        (&again["written"], &again["linked"]),
        (&json!(0), &json!(0)),
        "{again}"
    );
    assert!(files(&work.path("tree")) == before);

    work.poll("v2").exits(0);
    let update = tree(&work);
    assert!(
        update["written"].as_u64() < first["written"].as_u64(),
        "{update}"
    );
    let unchanged = "catalogs/demo/packages/demo-queue";
    assert!(
        work.path("tree/catalogs/demo/packages/demo-vault")
            .is_file()
    );
    // A package that is gone stays for two hours, the catalog of `rm` for no time.
    assert!(
        work.exists("tree/catalogs/demo/packages/demo-search")
            && work.exists(&format!("tree/{unchanged}"))
    );
    // A file that was damaged in size is written again.
    work.write(&format!("tree/{unchanged}"), "x");
    assert_eq!(tree(&work)["written"], 1);
    work.run("rm --store store demo").exits(0);
    assert!(tree(&work)["deleted"].as_u64() > Some(10));
    assert!(!work.exists("tree/catalogs/demo") && !work.exists("tree/v2/demo"));
}

#[test]
fn name_with_new_bytes_of_the_same_size_has_another_second() {
    let work = Work::published();
    tree(&work);
    let changed = || {
        work.path("tree/catalogs/demo/content-hash")
            .metadata()
            .unwrap()
            .mtime()
    };
    // Of a third run only if the clock reaches the next second.
    for version in ["v2", "v1", "v2"] {
        let before = changed();
        work.poll(version).exits(0);
        tree(&work);
        assert!(
            changed() > before,
            "{version}: web servers would answer 304"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_follows_the_store() {
    let work = Work::published();
    let line = "export --store store --static tree --watch 1s";
    let mut watching = work.command(line).stdout(Stdio::null()).spawn().unwrap();
    let pointer =
        |folder: &str| fs::read(work.path(folder).join("catalogs/demo/current.json")).ok();
    let follows = async || {
        until("the tree follows", async || {
            pointer("tree") == pointer("store")
        })
        .await
    };
    follows().await;
    work.poll("v2").exits(0);
    follows().await;
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn gzip_only_tree_has_no_plain_texts() {
    let work = Work::published();
    work.run("export --store store --static tree --gzip-only")
        .exits(0);
    assert!(
        work.exists("tree/catalogs/demo/api/v1/all.gz")
            && !work.exists("tree/catalogs/demo/api/v1/all")
    );
    // What `sync` compares byte for byte.
    assert!(work.exists("tree/catalogs/demo/current.json"));
}

#[test]
fn names_that_no_file_can_have_are_left_out() {
    let work = Work::new();
    let long = "n".repeat(300);
    let lines = [
        "..",
        "a/../../b",
        "c",
        "c/d",
        "e",
        "e.gz",
        "f%2fg",
        "h i",
        &long,
    ]
    .map(|name| json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}).to_string());
    work.write("configs/catalog.json", lines.join("\n"));
    work.run("poll --store store --catalog odd=dir:configs")
        .exits(0);
    let made = tree(&work);
    let folder = "catalogs/odd/packages";
    let left_out = ["..", "a/../../b", "e.gz", &long, "c"].map(|name| format!("{folder}/{name}"));
    assert_eq!(made["leftOut"], json!(left_out));
    for name in ["c/d", "e", "f%2fg", "h i"] {
        assert!(work.exists(&format!("tree/{folder}/{name}")), "{name}");
    }
    assert!(!work.exists("tree/b") && !work.exists("tree/catalogs/b"));
}

#[test]
fn place_that_is_no_tree_is_refused() {
    let work = Work::published();
    work.write("other/file", "mine");
    work.plays(&format!(
        "1 export --store store --static store
         ! is the store
         1 export --store store --static store/tree
         ! is the store
         1 export --store store --static {}
         ! is the store
         1 export --store store --static other
         ! other holds files that are no static tree
         2 export --store store --static tree --to x.tar
         2 export --store store",
        work.root().display()
    ));
    assert_eq!(work.read("other/file"), "mine");
    assert!(!work.exists("store/tree"));
    tree(&work);
    let _open = FolderTree::open(
        &work.path("tree"),
        &StorePlace::Folder(work.path("store")),
        false,
    )
    .unwrap();
    work.plays("1 export --store store --static tree\n! another run writes");
}

/// Runs the export into a bucket, below `tree`.
fn bucket_tree(work: &Work, bucket: &S3) -> Ran {
    work.run_on_s3(
        bucket,
        "export --store store --static s3://bucket/tree --json",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_has_gzip_bytes_and_media_types() {
    let work = Work::published();
    let bucket = S3::start().await;
    let run = || bucket_tree(&work, &bucket).exits(0).json()[0].clone();
    let first = run();
    let object = |name: &str| bucket.object(&format!("tree/{name}")).expect(name);
    let field =
        |name: &str, field: &str| object(name).headers.get(field).cloned().unwrap_or_default();
    let (all, pointer) = ("catalogs/demo/api/v1/all", "catalogs/demo/current.json");
    let index = "application/vnd.oci.image.index.v1+json";
    for (name, kind, coding) in [
        (all, "application/jsonl", "gzip"),
        (pointer, "application/json", "gzip"),
        ("catalogs/demo/status.json", "application/json", ""),
        ("v2/demo/manifests/latest", index, ""),
    ] {
        let fields = ["content-type", "content-encoding"].map(|wanted| field(name, wanted));
        assert_eq!(fields, [kind, coding], "{name}");
    }
    assert!(gunzip(&object(all).bytes).starts_with(b"{"));
    let stored = work.read(&format!("store/{pointer}")).into_bytes();
    assert_eq!(gunzip(&object(pointer).bytes), stored);
    assert_eq!(first["linked"], 0);
    assert_eq!(run()["written"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_that_is_no_place_for_a_tree_is_refused() {
    let work = Work::published();
    let no_fields = S3::builder().ignoring_fields().start().await;
    let read_only = S3::start().await;
    let foreign = S3::start().await;
    for _ in 0..5 {
        read_only.script(S3Call::Put, S3Fault::Status(403, "AccessDenied"));
    }
    bucket_tree(&work, &foreign).exits(0);
    foreign.remove("tree/static.json");
    for (bucket, said) in [
        (
            no_fields,
            "the bucket does not keep Content-Type and Content-Encoding",
        ),
        (read_only, "AccessDenied"),
        (foreign, "holds files that are no static tree"),
    ] {
        bucket_tree(&work, &bucket).exits(1).complains(said);
        let is_there = bucket.object("tree/catalogs.json").is_some();
        assert_eq!(is_there, said.contains("holds"), "{said}");
    }
}
