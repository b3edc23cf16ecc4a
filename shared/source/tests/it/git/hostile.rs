//! Packs and trees that no git writes.

use catalog_mirror_source::{Error, LayerError, TreeFault};
use testkit::{DeltaBuilder, GitKind, PackBuilder, object_name, tree};

use super::GitHost;
use crate::kit::chain;

/// A commit of one file, and the objects of its pack.
struct OneFile {
    host: GitHost,
    pack: PackBuilder,
}

impl OneFile {
    async fn start() -> Self {
        let host = GitHost::start().await;
        host.commit(&[("x.yaml", "x")]);
        let pack = host.repo.pack();
        Self { host, pack }
    }

    async fn read(&self, pack: Vec<u8>) -> Result<Vec<String>, Error> {
        self.host.repo.send_pack(pack);
        self.host.files("").await
    }
}

#[tokio::test]
async fn malformed_pack_is_refused() {
    let one = OneFile::start().await;
    let pack = || one.pack.clone();
    let whole = pack().finish();
    assert_eq!(one.read(whole.clone()).await.unwrap(), ["x.yaml=x"]);
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let to_self = DeltaBuilder::new(1, 1).copy(0, 1);
    for bytes in [
        changed(whole.len() - 1),
        changed(whole.len() / 2),
        changed(0),
        whole[..20].to_vec(),
        pack().declaring(4).finish(),
        pack().declaring(2).finish(),
        pack().compressed(GitKind::Blob, 5, b"no zlib").finish(),
        pack().object_of_size(GitKind::Blob, 5, b"four").finish(),
        pack().delta_back(0, &to_self).finish(),
        pack()
            .delta_of_name(&object_name(GitKind::Blob, b"circle"), &to_self)
            .finish(),
        // More memory than a process may have.
        pack()
            .object(GitKind::Blob, b"b")
            .delta_of(3, &DeltaBuilder::new(1, 100 << 30).copy(0, 1))
            .finish(),
    ] {
        let (fault, text) = one.host.fault(one.read(bytes).await);
        assert!(matches!(fault, TreeFault::Git(_)) && !fault.is_of_content(), "{text}");
    }
}

#[tokio::test]
async fn pack_without_an_object_of_the_commit_is_refused() {
    let one = OneFile::start().await;
    let commit = one.host.commit(&[("x.yaml", "x")]);
    let folder = one.host.repo.folder(&[("x.yaml", "x")]);
    let commit = (GitKind::Commit, one.host.repo.content(&commit));
    let folder = (GitKind::Tree, one.host.repo.content(&folder));
    let file = (GitKind::Blob, b"x".to_vec());
    let (evil, other_kind) = ((GitKind::Blob, b"evil".to_vec()), (GitKind::Tag, b"x".to_vec()));
    for objects in [
        vec![&folder, &file],
        vec![&commit, &file],
        vec![&commit, &folder, &evil, &other_kind],
    ] {
        let add = |pack: PackBuilder, (kind, content): &&(GitKind, Vec<u8>)| pack.object(*kind, content);
        let pack = objects.iter().fold(PackBuilder::default(), add);
        let (fault, text) = one.host.fault(one.read(pack.finish()).await);
        assert!(matches!(fault, TreeFault::Git(_) | TreeFault::Commit(_)), "{text}");
    }
}

/// A tree names a tree as a file, or a file as a tree.
#[tokio::test]
async fn object_of_another_kind_is_refused() {
    let host = GitHost::start().await;
    let (blob, folder) = (host.repo.object(GitKind::Blob, "x"), host.repo.folder(&[("y", "y")]));
    for (mode, object) in [("40000", &blob), ("100644", &folder), ("120000", &folder)] {
        let top = host.repo.object(GitKind::Tree, tree(&[(mode, "x", object)]));
        host.point(&host.repo.commit_of(&top));
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
    let file = host.repo.object(GitKind::Blob, "x");
    let folder = host.repo.folder(&[("x", "x")]);
    for name in ["..", ".", ".git", ".GIT", "../x", "/etc"] {
        for (mode, object) in [("100644", &file), ("40000", &folder)] {
            let top = host.repo.object(GitKind::Tree, tree(&[(mode, name, object)]));
            host.point(&host.repo.commit_of(&top));
            let (fault, text) = host.fault(host.files("").await);
            assert!(
                matches!(fault, TreeFault::Name(_) | TreeFault::NotFolder(_)) && fault.is_of_content(),
                "{name}: {text}"
            );
        }
    }
    for name in ["a\u{1b}[31m", "a\nb"] {
        let top = host.repo.object(GitKind::Tree, tree(&[("100644", name, &file)]));
        host.point(&host.repo.commit_of(&top));
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, TreeFault::Unpack(LayerError::Unprintable(_))), "{text}");
    }
    let twice = tree(&[("100644", "x", &file), ("100644", "x", &file)]);
    host.point(&host.repo.commit_of(&host.repo.object(GitKind::Tree, twice)));
    let (fault, text) = host.fault(host.files("").await);
    assert!(matches!(fault, TreeFault::Unpack(LayerError::Duplicate(_))), "{text}");
}

#[tokio::test]
async fn malformed_tree_and_commit_are_refused() {
    let host = GitHost::start().await;
    for content in [
        &b"100644"[..],
        b"100644 x",
        b"100644 x\0short",
        b"999999 x\0aaaaaaaaaaaaaaaaaaaa",
    ] {
        let top = host.repo.object(GitKind::Tree, content);
        host.point(&host.repo.commit_of(&top));
        let (fault, text) = host.fault(host.files("").await);
        assert!(
            matches!(fault, TreeFault::Git(_) | TreeFault::Commit(_)),
            "{content:?}: {text}"
        );
    }
    for content in [
        "",
        "tree",
        "tree xyz\n",
        "parent da39a3ee5e6b4b0d3255bfef95601890afd80709\n",
    ] {
        host.point(&host.repo.object(GitKind::Commit, content));
        let (fault, text) = host.fault(host.files("").await);
        assert!(
            matches!(fault, TreeFault::Git(_) | TreeFault::Commit(_)),
            "{content:?}: {text}"
        );
    }
}

/// Trees that use one another: a thousand million files in a kilobyte.
#[tokio::test]
async fn tree_that_is_used_many_times_meets_the_limit_of_entries() {
    let host = GitHost::with(|settings| settings.limits.entries = 10_000).await;
    let mut object = host.repo.object(GitKind::Blob, "x");
    for level in 0..9 {
        let mode = if level == 0 { "100644" } else { "40000" };
        let names: Vec<_> = (0..10).map(|at| at.to_string()).collect();
        let entries: Vec<_> = names
            .iter()
            .map(|name| (mode, name.as_str(), object.as_str()))
            .collect();
        object = host.repo.object(GitKind::Tree, tree(&entries));
    }
    host.point(&host.repo.commit_of(&object));
    match host.files("").await.unwrap_err() {
        Error::Limit(limit) => assert_eq!(limit.name, "entries"),
        other => panic!("{}", chain(&other)),
    }
}
