//! Branches, tags and commits, and how they move.

use source::Sources;

use super::{GitHost, MISSING, failed};
use crate::kit::read;

#[tokio::test]
async fn reference_of_each_kind_leads_to_its_commit() {
    let host = GitHost::with(|_| {}).await;
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
    assert_eq!(
        Some(&host.images.resolve(&pinned).await.unwrap()),
        pinned.pinned()
    );
    assert_eq!(
        host.server.requests().len(),
        before,
        "a commit needs no request"
    );
}

#[tokio::test]
async fn moved_branch_has_another_revision_and_the_old_one_is_still_read() {
    let host = GitHost::of(&[("x", "1")]).await;
    let source = host.source("#main");
    let first = host.resolve("#main").await.unwrap();
    assert_eq!(host.resolve("#main").await.unwrap(), first);
    assert_ne!(host.resolve("#main:a").await.unwrap(), first);
    host.commit(&[("x", "2")]);
    let found = read(&host.images, &source, &first).await;
    assert_eq!(
        found.unwrap().0.list(),
        ["x=1"],
        "the commit that was resolved"
    );
    assert_ne!(host.resolve("#main").await.unwrap(), first);
    // Another process knows only the revision.
    let other = Sources::new((*host.images.settings).clone()).unwrap();
    failed(read(&other, &source, &first).await, "changed");
}

#[tokio::test]
async fn missing_reference_or_commit_is_named() {
    let host = GitHost::of(&[("x", "1")]).await;
    let text = failed(host.files("#mian").await, "no ref");
    let advice = "no branch or tag mian: `git ls-remote` lists them";
    assert!(text.contains(advice), "{text}");
    let text = failed(host.files(&format!("#{MISSING}")).await, "git");
    assert!(text.contains(&format!("not our ref {MISSING}")), "{text}");
}
