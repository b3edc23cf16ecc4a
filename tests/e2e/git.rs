//! Catalogs from git repositories.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use testkit::{FileServer, GitRepo};

use crate::support::{
    binary::{poll_plain, run},
    catalogs,
};

const PATH: &str = "/owner/catalogs.git";

/// Commits a version of the example in the folder `catalog` to the main branch.
fn commit(repo: &GitRepo, version: &str) {
    let files = catalogs::files(&catalogs::folder(version));
    let files: Vec<_> = files
        .into_iter()
        .map(|(path, bytes)| (format!("catalog/{path}"), String::from_utf8(bytes).unwrap()))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    repo.set("refs/heads/main", &repo.commit(&files));
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_follows_branch_and_keeps_catalog_when_branch_is_gone() {
    let (server, repo, store) = (FileServer::start().await, GitRepo::default(), TempDir::new().unwrap());
    repo.serve(&server, PATH);
    let source = format!("git:{}#main:catalog", server.url(PATH));
    let poll = |source: &str, code| poll_plain(&store, server.host(), source).exits(code);
    let published = || json(&store.path().join("catalogs/demo/current.json"))["contentHash"].clone();
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
    let failed = poll(&source, 1);
    assert!(failed.stderr.contains("has no branch or tag main"), "{}", failed.stderr);
    assert_eq!(published(), hash, "the published state stays");
    let status = json(&store.path().join("catalogs/demo/status.json"));
    assert!(status["error"].as_str().unwrap().contains(&source), "{status}");
}

#[test]
fn source_over_ssh_is_refused_with_what_to_write() {
    let refused = run([
        "poll",
        "--store",
        "/nowhere",
        "--catalog",
        "demo=git@github.com:owner/repo",
    ])
    .exits(2);
    assert!(
        refused.stderr.contains("git:https://HOST/PATH#REF:PATH"),
        "{}",
        refused.stderr
    );
}
