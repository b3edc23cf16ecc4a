//! Sources other than folders and registries: archives, git repositories and other mirrors.

use model::Sha256;
use serde_json::Value;
use testkit::{FileServer, GitRepo, Layer};

use crate::support::{catalogs, work::Work};

const ARCHIVE: &str = "/catalog-1.0.tar.gz";
const REPOSITORY: &str = "/owner/catalogs.git";

/// Packs a version of the example into a folder, as forges do.
fn archive(version: &str) -> Layer {
    catalogs::add(Layer::new(), "catalog-1.0", &catalogs::example(version))
}

/// A change of the folder in the URL has to be published although the archive is the same.
#[tokio::test(flavor = "multi_thread")]
async fn poll_publishes_changed_archive_and_changed_folder() {
    let (server, work) = (FileServer::start().await, Work::new());
    let poll = |folder: &str, code| {
        let source = format!("{}{folder}", server.url(ARCHIVE));
        work.poll_plain(server.host(), &source).exits(code);
    };
    server.put(ARCHIVE, archive("v1").archive());
    poll("", 10);
    poll("", 0);
    server.put(ARCHIVE, archive("v2").archive());
    poll("", 10);
    let old = catalogs::add(Layer::new(), "old", &catalogs::example("v1"));
    let both = catalogs::add(old, "new", &catalogs::example("v2"));
    server.put(ARCHIVE, both.archive());
    poll("#old", 10);
    poll("#new", 10);
    poll("#new", 0);
}

/// Commits a version of the example in the folder `catalog` to the main branch.
fn commit(repo: &GitRepo, version: &str) {
    let files = catalogs::example(version);
    let files: Vec<_> = files
        .iter()
        .map(|(path, bytes)| {
            (
                format!("catalog/{path}"),
                std::str::from_utf8(bytes).unwrap(),
            )
        })
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    repo.set("refs/heads/main", &repo.commit(&files));
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_follows_branch_and_keeps_catalog_when_branch_is_gone() {
    let (server, repo, work) = (FileServer::start().await, GitRepo::default(), Work::new());
    repo.serve(&server, REPOSITORY);
    let source = format!("git:{}#main:catalog", server.url(REPOSITORY));
    let poll = |source: &str, code| work.poll_plain(server.host(), source).exits(code);
    let published = || work.json("store/catalogs/demo/current.json")["contentHash"].clone();
    for version in ["v1", "v2"] {
        commit(&repo, version);
        poll(&source, 10);
        let hash = published();
        poll(&source, 0);
        poll(&format!("dir:{}", catalogs::folder(version).display()), 0);
        assert_eq!(published(), hash, "a checkout has the same content");
        poll(&source, 0);
    }
    let hash = published();
    repo.remove("refs/heads/main");
    poll(&source, 1).complains("has no branch or tag main");
    assert_eq!(published(), hash, "the published state stays");
    let status = work.json("store/catalogs/demo/status.json");
    assert!(
        status["error"].as_str().unwrap().contains(&source),
        "{status}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_of_mirror_gives_equal_content_and_image() {
    let work = Work::published();
    let server = work.serve("");
    let host = server.url.trim_start_matches("http://");
    let poll = |reference: &str| {
        work.run(&format!(
            "poll --plain-http {host} --store second --catalog copy={host}/{reference}"
        ))
    };
    // Returns the hash of the content and the digest of the image.
    let state = |store: &str| {
        let listed = work
            .run(&format!("ls --json --store {store}"))
            .exits(0)
            .json();
        [&listed[0]["current"]["contentHash"], &listed[0]["image"]].map(Value::clone)
    };
    let first = state("store");
    let index = server.body("/v2/demo/manifests/latest").await;
    assert_eq!(first[1], format!("sha256:{}", Sha256::of(&index)));
    for _ in 0..2 {
        poll("demo:latest").exits(0);
        assert_eq!(state("second"), first);
    }
    work.poll("v2").exits(0);
    poll("demo:latest").exits(0);
    assert_eq!(state("second"), state("store"));
    poll(&format!("demo@{}", first[1].as_str().unwrap())).exits(0);
    assert_eq!(state("second"), first);
    work.run("verify --store second").exits(0);
    let refused = poll("other:latest").exits(1);
    refused.complains("repository other");
    refused.complains("no tag latest");
}
