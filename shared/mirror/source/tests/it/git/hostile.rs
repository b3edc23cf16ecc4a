//! Commits and trees that no git writes.

use testkit::tree;

use super::{GitHost, MISSING};
use crate::kit::{chain, exceeded, verdict};

#[tokio::test]
async fn commit_that_no_git_writes_is_refused() {
    let host = GitHost::with(|_| {}).await;
    let repo = &host.repo;
    let (file, folder) = (repo.object("blob", "x"), repo.folder(&[("y", "y")]));
    let entry = |mode, name, object| repo.commit_of_entries(&[(mode, name, object)]);
    let (name, unprintable, unread) = (
        "name or not folder",
        "archive: unprintable",
        "git or commit",
    );
    let (twice, broken) = (
        [("100644", "x", &*file); 2],
        repo.object("tree", b"100644 x\0short"),
    );
    let mut rows = vec![
        ("a file as a folder", entry("40000", "x", &file), unread),
        // The content of a tree is no text.
        ("a folder as a file", entry("100644", "x", &folder), "sink"),
        (
            "a folder as a link",
            entry("120000", "x", &folder),
            "link: broken",
        ),
        ("a commit of a file", repo.commit_of(&file), unread),
        (
            "colours",
            entry("100644", "a\u{1b}[31m", &file),
            unprintable,
        ),
        ("two lines", entry("100644", "a\nb", &file), unprintable),
        (
            "a name twice",
            repo.commit_of_entries(&twice),
            "archive: duplicate",
        ),
        (
            "a broken commit",
            repo.object("commit", "tree xyz\n"),
            unread,
        ),
        ("no tree", repo.commit_of(MISSING), unread),
        ("no file", entry("100644", "x", MISSING), unread),
        ("a broken tree", repo.commit_of(&broken), unread),
    ];
    for no_name in ["..", ".", ".git", ".GIT", "../x", "/etc"] {
        rows.push((no_name, entry("100644", no_name, &file), name));
        rows.push((no_name, entry("40000", no_name, &folder), name));
    }
    for (what, commit, want) in rows {
        host.point(&commit);
        let read = host.files("").await;
        let found = verdict(&read);
        let is_wanted = want.split(" or ").any(|want| want == found);
        assert!(is_wanted, "{what}: {found}: {}", chain(&read.unwrap_err()));
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
        let entries: Vec<_> = names.iter().map(|name| (mode, &**name, &*object)).collect();
        object = host.repo.object("tree", tree(&entries));
    }
    host.point(&host.repo.commit_of(&object));
    exceeded(host.files("").await, "entries", 10_000);
}
