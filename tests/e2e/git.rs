//! Catalogs from git repositories.

use testkit::{FileServer, GitRepo};

use crate::support::{catalogs, work::Work};

const PATH: &str = "/owner/catalogs.git";

/// Commits a version of the example in the folder `catalog` to the main branch.
fn commit(repo: &GitRepo, version: &str) {
    let files = catalogs::example(version);
    let files: Vec<_> = files
        .iter()
        .map(|(path, bytes)| (format!("catalog/{path}"), std::str::from_utf8(bytes).unwrap()))
        .collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    repo.set("refs/heads/main", &repo.commit(&files));
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_follows_branch_and_keeps_catalog_when_branch_is_gone() {
    let (server, repo, work) = (FileServer::start().await, GitRepo::default(), Work::new());
    repo.serve(&server, PATH);
    let source = format!("git:{}#main:catalog", server.url(PATH));
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
    assert!(status["error"].as_str().unwrap().contains(&source), "{status}");
}
