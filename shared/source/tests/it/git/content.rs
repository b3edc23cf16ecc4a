//! The files of a commit.

use catalog_mirror_source::{Error, TreeFault, UnpackError};
use testkit::tree;

use super::GitHost;
use crate::kit::{Collect, chain, read};

const TWO: &[(&str, &str)] = &[("a/x.yaml", "x"), ("a/b/y.yaml", "y"), ("z.yaml", "z")];

#[tokio::test]
async fn commit_is_read_as_a_whole_or_below_its_folder() {
    let host = GitHost::start().await;
    host.commit(TWO);
    assert_eq!(
        host.files("").await.unwrap(),
        ["a/b/y.yaml=y", "a/x.yaml=x", "z.yaml=z"]
    );
    assert_eq!(host.files("#main:a").await.unwrap(), ["b/y.yaml=y", "x.yaml=x"]);
    assert_eq!(host.files("#:a/b").await.unwrap(), ["y.yaml=y"]);
    for (end, want) in [
        ("#main:c", "pathspec 'c' did not match"),
        ("#main:a/c/d", "pathspec 'a/c/d' did not match"),
        ("#main:a/x.yaml", "has no folder at a/x.yaml but something else"),
        ("#main:a/x.yaml/y", "pathspec 'a/x.yaml/y' did not match"),
    ] {
        let (fault, text) = host.fault(host.files(end).await);
        assert!(text.contains(want) && fault.is_of_content(), "{end}: {text}");
    }
}

#[tokio::test]
async fn read_takes_three_requests_and_one_commit() {
    let host = GitHost::start().await;
    let commit = host.commit(TWO);
    let (_, pull) = host.pull("").await.unwrap();
    assert_eq!(pull.traffic.requests, 3);
    assert_eq!(host.server.statuses(), [200; 6]);
    let commands = host.repo.commands();
    for part in ["deepen 1", "done", &format!("want {commit}")] {
        assert!(commands[1].contains(part), "{}", commands[1]);
    }
}

/// A folder with the same tree gives the same files.
#[tokio::test]
async fn links_follow_the_rules_of_archives() {
    let host = GitHost::start().await;
    let repo = &host.repo;
    let file = repo.object("blob", "x");
    let link = |target: &str| repo.object("blob", target);
    let commit = |target: &str| {
        let inner = repo.object(
            "tree",
            tree(&[("120000", "l.yaml", &link(target)), ("100755", "x.yaml", &file)]),
        );
        let top = tree(&[("40000", "a", &inner), ("100644", "y.yaml", &file)]);
        host.point(&repo.commit_of(&repo.object("tree", top)));
    };
    commit("x.yaml");
    assert_eq!(host.files("#main:a").await.unwrap(), ["l.yaml=-> x.yaml", "x.yaml=x"]);
    commit("../y.yaml");
    assert_eq!(
        host.files("").await.unwrap(),
        ["a/l.yaml=-> y.yaml", "a/x.yaml=x", "y.yaml=x"]
    );
    for target in [
        "../y.yaml",
        "/etc/passwd",
        "../../../etc/passwd",
        "missing",
        ".",
        "l.yaml",
    ] {
        commit(target);
        let error = host.files("#main:a").await.unwrap_err();
        assert!(
            matches!(error, Error::Unpack(UnpackError::Link { .. })),
            "{target}: {}",
            chain(&error)
        );
    }
    commit("missing");
    let source = host.source("#main:a");
    let digest = host.images.resolve(&source).await.unwrap();
    let sink = Collect {
        excluded: ["l.yaml".to_owned()].into(),
        ..Collect::default()
    };
    let found = read(&host.images, &source, &digest, sink).await;
    assert_eq!(found.unwrap().0.list(), ["x.yaml=x"], "a broken link that is excluded");
}

#[tokio::test]
async fn submodule_is_refused_with_its_path() {
    let host = GitHost::start().await;
    let repo = &host.repo;
    let other = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let file = repo.object("blob", "x");
    let inner = repo.object("tree", tree(&[("160000", "sub", other)]));
    let top = tree(&[
        ("40000", "a", &inner),
        ("40000", "b", &repo.folder(&[("y.yaml", "y")])),
        ("100644", "f", &file),
    ]);
    host.point(&repo.commit_of(&repo.object("tree", top)));
    let (fault, text) = host.fault(host.files("#main:a").await);
    assert!(
        matches!(&fault, TreeFault::Submodule(path) if path == "a/sub"),
        "{text}"
    );
    assert_eq!(
        host.files("#main:b").await.unwrap(),
        ["y.yaml=y"],
        "it is outside of the folder"
    );
}
