//! Packs and trees that no git writes.

use catalog_mirror_source::{Error, GitFault, LayerError};
use testkit::{DeltaBuilder, GitKind, PackBuilder, Random, object_name, tree};

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
    let own_name = object_name(GitKind::Blob, b"circle");
    let zeros = |size: u64| DeltaBuilder::new(1, size).copy(0, 1);
    for (bytes, want) in [
        (changed(whole.len() - 1), "its checksum is wrong"),
        (changed(whole.len() / 2), "its checksum is wrong"),
        (changed(0), "not recognized"),
        (changed(4), "nsupported"),
        (whole[..whole.len() - 25].to_vec(), "its checksum is wrong"),
        (whole[..20].to_vec(), "too small"),
        (pack().declaring(4).finish(), "fewer objects than it declares"),
        (pack().declaring(2).finish(), "bytes follow its last object"),
        (pack().raw(&[0x30]).finish(), "fewer objects than it declares"),
        (pack().raw(&[0x50, 0x78]).finish(), "unsupported"),
        (pack().raw(&[0x00]).finish(), "unsupported"),
        (pack().raw(&[0xff; 40]).finish(), "overflow"),
        (pack().compressed(GitKind::Blob, 5, b"no zlib").finish(), "malformed"),
        (
            pack().object_of_size(GitKind::Blob, 5, b"four").finish(),
            "another size",
        ),
        (
            pack().object_of_size(GitKind::Blob, 3, b"four").finish(),
            "another size",
        ),
        (pack().delta_back(0, &to_self).finish(), "malformed"),
        (
            pack().delta_back(1, &to_self).finish(),
            "the base of a delta is missing",
        ),
        (pack().delta_back(1 << 40, &to_self).finish(), "base before the pack"),
        (pack().delta_back(u64::MAX >> 1, &to_self).finish(), "malformed"),
        (
            pack().delta_of_name(&own_name, &to_self).finish(),
            "the base of a delta is missing",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::new(2, 1).copy(0, 1))
                .finish(),
            "base size",
        ),
        (
            pack().object(GitKind::Blob, b"b").delta_of(3, &zeros(2)).finish(),
            "fewer bytes",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::new(1, 1).copy(0, 2))
                .finish(),
            "exceeds base",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::new(1, 1).copy(u32::MAX, 1))
                .finish(),
            "exceeds base",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::new(1, 1).insert(b"ab"))
                .finish(),
            "more bytes",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::new(1, 1).insert(b""))
                .finish(),
            "reserved",
        ),
        (
            pack()
                .object(GitKind::Blob, b"b")
                .delta_of(3, &DeltaBuilder::default())
                .finish(),
            "declares no size",
        ),
    ] {
        let (fault, text) = one.host.fault(one.read(bytes).await);
        assert!(text.contains(want), "{want}: {text}");
        assert!(
            matches!(fault, GitFault::Pack(_) | GitFault::Object(_)) && !fault.is_of_content(),
            "{text}"
        );
    }
}

#[tokio::test]
async fn object_of_another_hash_is_missing() {
    let one = OneFile::start().await;
    let commit = one.host.commit(&[("x.yaml", "x")]);
    let tree = one.host.repo.folder(&[("x.yaml", "x")]);
    for (lacks, other) in [
        (
            "commit",
            vec![
                (GitKind::Tree, one.host.repo.content(&tree)),
                (GitKind::Blob, b"x".to_vec()),
            ],
        ),
        (
            "tree",
            vec![
                (GitKind::Commit, one.host.repo.content(&commit)),
                (GitKind::Blob, b"x".to_vec()),
            ],
        ),
        (
            "file",
            vec![
                (GitKind::Commit, one.host.repo.content(&commit)),
                (GitKind::Tree, one.host.repo.content(&tree)),
                (GitKind::Blob, b"evil".to_vec()),
                // The right bytes of another kind have another name.
                (GitKind::Tag, b"x".to_vec()),
            ],
        ),
    ] {
        let pack = other.iter().fold(PackBuilder::default(), |pack, (kind, content)| {
            pack.object(*kind, content)
        });
        let (fault, text) = one.host.fault(one.read(pack.finish()).await);
        assert!(
            matches!(&fault, GitFault::Missing { kind, .. } if *kind == lacks),
            "{lacks}: {text}"
        );
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
        let (fault, text) = host.fault(host.files("").await);
        assert!(
            matches!(fault, GitFault::Pack(what) if what.contains("another kind")),
            "{text}"
        );
    }
    host.point(&host.repo.commit_of(&blob));
    let (fault, text) = host.fault(host.files("").await);
    assert!(matches!(fault, GitFault::Pack(_)), "{text}");
}

#[tokio::test]
async fn tree_with_names_that_no_checkout_can_have_is_refused() {
    let host = GitHost::start().await;
    let file = host.repo.object(GitKind::Blob, "x");
    for name in ["..", ".", "", ".git", ".GIT", "a/b", "../x", "/etc"] {
        for mode in ["100644", "40000"] {
            let top = host.repo.object(GitKind::Tree, tree(&[(mode, name, &file)]));
            host.point(&host.repo.commit_of(&top));
            let (fault, text) = host.fault(host.files("").await);
            assert!(
                matches!(fault, GitFault::Name(_)) && fault.is_of_content(),
                "{name}: {text}"
            );
        }
    }
    for name in ["a\u{1b}[31m", "a\nb"] {
        let top = host.repo.object(GitKind::Tree, tree(&[("100644", name, &file)]));
        host.point(&host.repo.commit_of(&top));
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, GitFault::Unpack(LayerError::Unprintable(_))), "{text}");
    }
    let twice = tree(&[("100644", "x", &file), ("100644", "x", &file)]);
    host.point(&host.repo.commit_of(&host.repo.object(GitKind::Tree, twice)));
    let (fault, text) = host.fault(host.files("").await);
    assert!(matches!(fault, GitFault::Unpack(LayerError::Duplicate(_))), "{text}");
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
        assert!(matches!(fault, GitFault::Object(_)), "{content:?}: {text}");
    }
    for content in [
        "",
        "tree",
        "tree xyz\n",
        "parent da39a3ee5e6b4b0d3255bfef95601890afd80709\n",
    ] {
        host.point(&host.repo.object(GitKind::Commit, content));
        let (fault, text) = host.fault(host.files("").await);
        assert!(matches!(fault, GitFault::Object(_)), "{content:?}: {text}");
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

/// Whatever bytes come, a commit is what its name says.
#[tokio::test]
async fn mutated_pack_is_refused_or_has_the_files_of_its_commit() {
    let one = OneFile::start().await;
    let base = object_name(GitKind::Blob, b"x");
    let copy = DeltaBuilder::new(1, 2).copy(0, 1).insert(b"y");
    let pack = one.pack.clone().delta_of(0, &copy).delta_of_name(&base, &copy).finish();
    // Behind the header and before the checksum.
    let entries = &pack[12..pack.len() - 20];
    let mut random = Random(1);
    let mut accepted = 0;
    for _ in 0..500 {
        let mut bytes = entries.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.number() as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes.insert(at, random.number() as u8),
                _ => drop(bytes.remove(at)),
            }
        }
        match one.read(PackBuilder::default().raw(&bytes).declaring(5).finish()).await {
            Ok(files) => {
                assert_eq!(files, ["x.yaml=x"]);
                accepted += 1;
            }
            Err(Error::Git { .. } | Error::Limit(_)) => {}
            Err(other) => panic!("{}", chain(&other)),
        }
    }
    assert!(accepted < 50, "{accepted}");
}
