//! The files of a commit.

use source::TreeFault;
use testkit::tree;

use super::{GitHost, MISSING, failed};
use crate::kit;

const TWO: &[(&str, &str)] = &[("a/x.yaml", "x"), ("a/b/y.yaml", "y"), ("z.yaml", "z")];

#[tokio::test]
async fn commit_is_read_as_a_whole_or_below_its_folder() {
    let host = GitHost::of(TWO).await;
    for (end, want) in [
        ("", "a/b/y.yaml=y a/x.yaml=x z.yaml=z"),
        ("#main:a", "b/y.yaml=y x.yaml=x"),
        ("#:a/b", "y.yaml=y"),
    ] {
        assert_eq!(host.files(end).await.unwrap().join(" "), want, "{end}");
    }
    for (end, want, says) in [
        ("#main:c", "commit", "pathspec 'c' did not match"),
        ("#main:a/c/d", "commit", "pathspec 'a/c/d' did not match"),
        (
            "#main:a/x.yaml",
            "not folder",
            "has no folder at a/x.yaml but",
        ),
        (
            "#main:a/x.yaml/y",
            "commit",
            "pathspec 'a/x.yaml/y' did not match",
        ),
    ] {
        let text = failed(host.files(end).await, want);
        assert!(text.contains(says), "{end}: {text}");
    }
}

#[tokio::test]
async fn read_takes_three_requests_and_one_commit() {
    let host = GitHost::with(|_| {}).await;
    let commit = host.commit(TWO);
    let (_, pull) = host.pull("").await.unwrap();
    assert_eq!(pull.traffic.requests, 3);
    assert_eq!(host.server.statuses(), [200; 6]);
    let commands = host.repo.commands();
    for part in ["deepen 1", "done", &format!("want {commit}")] {
        assert!(commands[1].contains(part), "{}", commands[1]);
    }
}

#[tokio::test]
async fn links_are_followed_within_the_folder() {
    let host = GitHost::with(|_| {}).await;
    let repo = &host.repo;
    let [file, link] = ["x", "../y.yaml"].map(|content| repo.object("blob", content));
    let inner = [("120000", "l.yaml", &*link), ("100755", "x.yaml", &file)];
    let inner = repo.object("tree", tree(&inner));
    host.point(&repo.commit_of_entries(&[("40000", "a", &inner), ("100644", "y.yaml", &file)]));
    let files = host.files("").await.unwrap();
    assert_eq!(files, ["a/l.yaml=-> y.yaml", "a/x.yaml=x", "y.yaml=x"]);
    kit::failed(host.files("#main:a").await, "link: outside");
}

#[tokio::test]
async fn submodule_is_refused_with_its_path() {
    let host = GitHost::with(|_| {}).await;
    let repo = &host.repo;
    let inner = repo.object("tree", tree(&[("160000", "sub", MISSING)]));
    host.point(&repo.commit_of_entries(&[
        ("40000", "a", &inner),
        ("40000", "b", &repo.folder(&[("y.yaml", "y")])),
        ("100644", "f", &repo.object("blob", "x")),
    ]));
    let text = failed(host.files("#main:a").await, "submodule");
    assert!(text.contains("has the submodule a/sub, "), "{text}");
    let beside = host.files("#main:b").await.unwrap();
    assert_eq!(beside, ["y.yaml=y"], "it is outside of the folder");
}

#[test]
fn fault_is_of_content_if_the_same_revision_fails_again() {
    use TreeFault::{Changed, Commit, Git, Name, NoFolder, NotFolder};
    for fault in [NoFolder, NotFolder, Name, Commit].map(|fault| fault(String::new())) {
        assert!(fault.is_of_content(), "{fault}");
    }
    for fault in [Git(String::new()), Changed] {
        assert!(!fault.is_of_content(), "{fault}");
    }
}
