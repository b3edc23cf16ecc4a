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
        "catalogs-list.json",
        "catalogs/demo/current.json",
        "catalogs/demo/status.json",
        "catalogs/demo/content-hash",
        "catalogs/demo/search.json.gz",
        "catalogs/demo/days.json",
        "catalogs/demo/changes",
        "catalogs/demo/versions/demo-queue.json",
        "catalogs/demo/versions/demo-queue/fast.json",
        "catalogs/demo/api/v1/all",
        "catalogs/demo/packages/demo-queue",
        "v2/demo/tags/list",
        "v2/demo/manifests/latest.index",
        "openapi.json",
        "index.html.gz",
    ] {
        assert!(paths.contains(wanted), "{wanted} is not in {paths:?}");
    }
    for (path, bytes) in &found {
        // Only a server has the other routes.
        if path == "static.json" || path == "openapi.json" {
            continue;
        }
        let name = path
            .trim_end_matches(".index")
            .trim_end_matches(".manifest");
        let text = name
            .strip_suffix(".gz")
            .filter(|plain| paths.contains(plain));
        let url = format!("/{}", text.unwrap_or(name)).replace("/index.html", "/");
        let url = url.replace("/catalogs-list.json", "/catalogs");
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

/// Returns true if a path without a slash at its start is one that a pattern describes.
fn is_described(pattern: &str, path: &str) -> bool {
    let [pattern, path]: [Vec<&str>; 2] =
        [&pattern[1..], path].map(|path| path.split('/').collect());
    let is_part = |(pattern, part): (&&str, &&str)| pattern.starts_with('{') || pattern == part;
    pattern.len() == path.len() && pattern.iter().zip(&path).all(is_part)
}

/// Returns the path under which a web server answers with a file.
fn served(file: &str) -> &str {
    let endings = [".index", ".manifest"];
    let plain = endings.iter().find_map(|ending| file.strip_suffix(ending));
    match plain.unwrap_or(file) {
        "index.html" => "",
        path => path,
    }
}

#[test]
fn description_of_a_tree_lists_what_is_there() {
    let work = Work::new();
    let icon = "schema: olm.package\nicon: {base64data: iVBORw0KGgoAAAANSUhEUgAAABAAAAAQ, mediatype: image/png}";
    for (path, bytes) in catalogs::files(&catalogs::folder("v1")) {
        let text = String::from_utf8(bytes).unwrap();
        let text = text.replacen("schema: olm.package", icon, 1);
        catalogs::write(&work.path("demo"), &path, text.as_bytes());
    }
    work.run("poll --store store --catalog demo=dir:demo")
        .exits(0);
    tree(&work);
    let description = fs::read(work.path("tree/openapi.json")).unwrap();
    let description: Value = serde_json::from_slice(&description).unwrap();
    let patterns: Vec<&String> = description["paths"].as_object().unwrap().keys().collect();
    let files = files(&work.path("tree"));
    let files = files.iter().map(|(path, _)| path.as_str());
    let plain = files.filter(|path| *path != "static.json" && !path.ends_with(".gz"));
    let mut paths: BTreeSet<&str> = plain.map(served).collect();
    // Web servers answer it by their settings.
    paths.insert("v2/");
    for pattern in &patterns {
        let is_there = paths.iter().any(|path| is_described(pattern, path));
        assert!(is_there, "nothing in the tree is {pattern}");
    }
    for path in &paths {
        let is_listed = patterns.iter().any(|pattern| is_described(pattern, path));
        assert!(is_listed, "{path} is not described");
    }
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
        .await;
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

/// Returns the lines of packages with these names.
fn packages(names: &[&str]) -> String {
    let line = |name| json!({"schema": "olm.package", "name": name, "defaultChannel": "c"});
    let lines: Vec<String> = names.iter().map(|name| line(name).to_string()).collect();
    lines.join("\n")
}

#[test]
fn package_whose_name_is_no_dns_label_has_no_file_and_is_named() {
    let work = Work::new();
    let long = "n".repeat(64);
    let odd = [
        "..",
        "Etcd",
        "a/../../b",
        "c/d",
        "e.gz",
        "etcd/x",
        "etcd/x/",
        "f%2fg",
        "h i",
        &long,
        "x.html",
        "\u{202e}x",
    ];
    let names = [&odd[..], &["c", "e", "etcd"]].concat();
    work.write("configs/catalog.json", packages(&names));
    work.write("good/catalog.json", packages(&["etcd"]));
    let poll = "poll --store store --catalog odd=dir:configs --catalog good=dir:good";
    work.run(poll).exits(0);
    let made = tree(&work);
    let folder = "catalogs/odd/packages";
    let mut left_out = odd.map(|name| format!("{folder}/{name}"));
    left_out.sort();
    let mut named: Vec<String> = serde_json::from_value(made["leftOut"].clone()).unwrap();
    named.sort();
    assert_eq!(named, left_out);
    let found: BTreeSet<String> = fs::read_dir(work.path(&format!("tree/{folder}")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["c", "c.gz", "e", "e.gz", "etcd", "etcd.gz"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
    assert!(!work.exists("tree/b") && !work.exists("tree/catalogs/b"));
    let told = work.run("export --store store --static tree").exits(0);
    told.complains("left out: catalogs/odd/packages/x.html: ");
    told.complains("left out: catalogs/odd/packages/\\u{202e}x: ");
    assert_eq!(told.stderr.lines().count(), odd.len(), "{told:?}");
}

#[test]
fn notices_of_packages_without_files_are_bounded() {
    let work = Work::new();
    let names: Vec<String> = (0..21).map(|number| format!("x.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    work.write("configs/catalog.json", packages(&names));
    work.run("poll --store store --catalog odd=dir:configs")
        .exits(0);
    let told = work.run("export --store store --static tree").exits(0);
    assert_eq!(told.stderr.lines().count(), 21, "{told:?}");
    told.complains("left out: 1 more packages");
}

/// Earlier versions wrote the package `etcd/x` as a file in a folder `etcd`.
#[test]
fn file_that_stands_in_the_way_of_another_goes() {
    let work = Work::new();
    work.write("configs/catalog.json", packages(&["etcd", "zoo"]));
    work.run("poll --store store --catalog c=dir:configs")
        .exits(0);
    tree(&work);
    let folder = "catalogs/c/packages";
    let mut index = work.json("tree/static.json");
    let mut rename = |from: &str, to: &str| {
        let (from, to) = (format!("{folder}/{from}"), format!("{folder}/{to}"));
        let files = index["files"].as_object_mut().unwrap();
        let file = files.remove(&from).unwrap();
        files.insert(to.clone(), file);
        let content = fs::read(work.path(&format!("tree/{from}"))).unwrap();
        fs::remove_file(work.path(&format!("tree/{from}"))).unwrap();
        work.write(&format!("tree/{to}"), content);
    };
    rename("etcd", "etcd/x");
    rename("zoo.gz", "zoo.gz/a/b");
    work.write("tree/static.json", index.to_string());
    let made = tree(&work);
    assert_eq!([&made["written"], &made["deleted"]], [2, 2], "{made}");
    for name in ["etcd", "zoo.gz"] {
        assert!(work.path(&format!("tree/{folder}/{name}")).is_file());
    }
    assert_eq!(tree(&work)["written"], 0);
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
async fn objects_that_a_bucket_lost_are_written_again() {
    let work = Work::published();
    // Several pages of the listing.
    let bucket = S3::builder().page(7).start().await;
    let run = || bucket_tree(&work, &bucket).exits(0).json()[0].clone();
    let first = run();
    let names = bucket.names();
    let lost = [
        "catalogs.json",
        "catalogs/demo/current.json",
        "catalogs/demo/api/v1/all",
        "catalogs/demo/packages/demo-queue",
        "v2/demo/tags/list",
        "v2/demo/manifests/latest",
        "v2/",
        "index.html",
    ];
    for name in lost {
        bucket.remove(&format!("tree/{name}"));
    }
    let object = names.iter().find(|name| name.contains("/sha256/")).unwrap();
    bucket.remove(object);
    assert_eq!(run()["written"], lost.len() + 1);
    assert_eq!(bucket.names(), names);
    assert_eq!(run()["written"], 0);
    for name in names.iter().filter(|name| !name.ends_with("static.json")) {
        bucket.remove(name);
    }
    assert_eq!(run()["written"], first["written"]);
    assert_eq!(bucket.names(), names);
    // What nothing names any more and the bucket lost is not asked for again.
    work.poll("v2").exits(0);
    run();
    bucket.remove("tree/catalogs/demo/packages/demo-search");
    let last = run();
    assert_eq!([&last["written"], &last["deleted"]], [0, 0], "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_that_does_not_list_its_objects_is_not_taken_for_an_empty_one() {
    let work = Work::published();
    let bucket = S3::start().await;
    bucket_tree(&work, &bucket).exits(0);
    for _ in 0..5 {
        bucket.script(S3Call::List, S3Fault::Status(403, "AccessDenied"));
    }
    let refused = bucket_tree(&work, &bucket).exits(1);
    refused.complains("AccessDenied");
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
