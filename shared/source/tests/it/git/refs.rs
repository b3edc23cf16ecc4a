//! Branches, tags and commits, and how they move.

use catalog_mirror_source::TreeFault;

use super::GitHost;
use crate::kit::{Collect, read};

#[tokio::test]
async fn reference_of_each_kind_leads_to_its_commit() {
    let host = GitHost::start().await;
    let one = host.commit(&[("x", "1")]);
    let two = host.repo.commit(&[("x", "2")]);
    host.repo.set("refs/heads/next", &two);
    host.repo.set("refs/tags/v1", &one);
    host.repo.set_annotated("refs/tags/v2", &two);
    for (end, want) in [
        ("", "x=1"),
        ("#main", "x=1"),
        ("#next", "x=2"),
        ("#v1", "x=1"),
        ("#v2", "x=2"),
        ("#refs/tags/v2", "x=2"),
        ("#heads/next", "x=2"),
        (&format!("#{two}"), "x=2"),
    ] {
        assert_eq!(host.files(end).await.unwrap(), [want], "{end}");
    }
    let pinned = host.source(&format!("#{one}"));
    let before = host.server.requests().len();
    assert_eq!(Some(&host.images.resolve(&pinned).await.unwrap()), pinned.pinned());
    assert_eq!(host.server.requests().len(), before, "a commit needs no request");
}

#[tokio::test]
async fn moved_branch_has_another_revision_and_the_old_one_is_still_read() {
    let host = GitHost::start().await;
    host.commit(&[("x", "1")]);
    let source = host.source("#main");
    let first = host.images.resolve(&source).await.unwrap();
    assert_eq!(host.images.resolve(&source).await.unwrap(), first);
    assert_ne!(host.images.resolve(&host.source("#main:a")).await.unwrap(), first);
    host.commit(&[("x", "2")]);
    let found = read(&host.images, &source, &first, Collect::default()).await;
    assert_eq!(found.unwrap().0.list(), ["x=1"], "the commit that was resolved");
    assert_ne!(host.images.resolve(&source).await.unwrap(), first);
    // Another process knows only the revision.
    let other = catalog_mirror_source::Sources::new(host.images.settings().clone()).unwrap();
    let error = read(&other, &source, &first, Collect::default()).await.unwrap_err();
    let catalog_mirror_source::Error::Tree { source: fault, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(fault, TreeFault::Changed) && !fault.is_of_content(), "{fault}");
}

#[tokio::test]
async fn missing_reference_is_named() {
    let host = GitHost::start().await;
    let commit = host.commit(&[("x", "1")]);
    host.repo.set("refs/tags/v1", &commit);
    let (fault, text) = host.fault(host.files("#mian").await);
    assert!(matches!(fault, TreeFault::NoRef { .. }), "{text}");
    assert!(
        text.contains("no branch or tag mian: `git ls-remote` lists them"),
        "{text}"
    );
}

#[tokio::test]
async fn commit_that_the_server_lacks_is_refused_in_its_words() {
    let host = GitHost::start().await;
    host.commit(&[("x", "1")]);
    let missing = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let (fault, text) = host.fault(host.files(&format!("#{missing}")).await);
    assert!(matches!(fault, TreeFault::Git(_)), "{text}");
    assert!(text.contains(&format!("not our ref {missing}")), "{text}");
}
