//! Commits and trees that no git writes.

use catalog_mirror_source::{LayerError, TreeFault};
use testkit::tree;

use super::GitHost;
use crate::kit::exceeded;

/// A tree names a tree as a file, or a file as a tree.
#[tokio::test]
async fn object_of_another_kind_is_refused() {
    let host = GitHost::start().await;
    let (blob, folder) = (host.repo.object("blob", "x"), host.repo.folder(&[("y", "y")]));
    for (mode, object) in [("40000", &blob), ("100644", &folder), ("120000", &folder)] {
        host.point(&host.repo.commit_of_entries(&[(mode, "x", object)]));
        // A tree in place of a file is a file of its bytes, which are no text.
        assert!(host.files("").await.is_err(), "{mode}");
    }
    host.point(&host.repo.commit_of(&blob));
    let (fault, text) = host.fault(host.files("").await);
    assert!(matches!(fault, TreeFault::Git(_) | TreeFault::Commit(_)), "{text}");
}

#[tokio::test]
async fn tree_with_names_that_no_checkout_can_have_is_refused() {
    let host = GitHost::start().await;
    let file = host.repo.object("blob", "x");
    let folder = host.repo.folder(&[("x", "x")]);
    for name in ["..", ".", ".git", ".GIT", "../x", "/etc"] {
        for (mode, object) in [("100644", &file), ("40000", &folder)] {
            host.point(&host.repo.commit_of_entries(&[(mode, name, object)]));
            let (fault, text) = host.fault(host.files("").await);
            assert!(
                matches!(fault, TreeFault::Name(_) | TreeFault::NotFolder(_)) && fault.is_of_content(),
                "{name}: {text}"
            );
        }
    }
    for name in ["a\u{1b}[31m", "a\nb"] {
        host.point(&host.repo.commit_of_entries(&[("100644", name, &file)]));
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, TreeFault::Unpack(LayerError::Unprintable(_))), "{text}");
    }
    let twice = tree(&[("100644", "x", &file), ("100644", "x", &file)]);
    host.point(&host.repo.commit_of(&host.repo.object("tree", twice)));
    let (fault, text) = host.fault(host.files("").await);
    assert!(matches!(fault, TreeFault::Unpack(LayerError::Duplicate(_))), "{text}");
}

#[tokio::test]
async fn commit_that_git_cannot_read_is_refused() {
    let host = GitHost::start().await;
    let missing = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    for commit in [
        host.repo.object("commit", "tree xyz\n"),
        host.repo.commit_of(missing),
        host.repo.commit_of_entries(&[("100644", "x", missing)]),
        host.repo.commit_of(&host.repo.object("tree", b"100644 x\0short")),
    ] {
        host.point(&commit);
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, TreeFault::Git(_) | TreeFault::Commit(_)), "{text}");
    }
}

/// Trees that use one another: a thousand million files in a kilobyte.
#[tokio::test]
async fn tree_that_is_used_many_times_meets_the_limit_of_entries() {
    let host = GitHost::with(|settings| settings.limits.entries = 10_000).await;
    let mut object = host.repo.object("blob", "x");
    for level in 0..9 {
        let mode = if level == 0 { "100644" } else { "40000" };
        let names: Vec<_> = (0..10).map(|at| at.to_string()).collect();
        let entries: Vec<_> = names
            .iter()
            .map(|name| (mode, name.as_str(), object.as_str()))
            .collect();
        object = host.repo.object("tree", tree(&entries));
    }
    host.point(&host.repo.commit_of(&object));
    exceeded(host.files("").await, "entries", 10_000);
}
