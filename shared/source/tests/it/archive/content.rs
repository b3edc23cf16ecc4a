//! The files of an archive, well-formed and not.

use catalog_mirror_source::{Error, LayerError, TreeFault, UnpackError};
use testkit::{FileAnswer, FileServer, Layer, gzip};

use super::{PATH, files, source, two_folders};
use crate::kit::{chain, client, pull_source as pull};

#[tokio::test]
async fn single_top_folder_is_stripped() {
    let inside = Layer::new()
        .dir("./")
        .dir("cat-1.0")
        .file("cat-1.0/a/x.yaml", "x")
        .file("./cat-1.0/.indexignore", "i");
    for archive in [inside.clone(), inside.clone().plain(), inside.zstd()] {
        assert_eq!(files(&archive, "").await.unwrap(), [".indexignore=i", "a/x.yaml=x"]);
    }
    let links = Layer::new()
        .file("top/a/x.yaml", "x")
        .symlink("top/soft", "a/x.yaml")
        .hardlink("top/hard", "top/a/x.yaml");
    assert_eq!(
        files(&links, "").await.unwrap(),
        ["a/x.yaml=x", "hard=-> a/x.yaml", "soft=-> a/x.yaml"]
    );
}

#[tokio::test]
async fn content_coding_of_archive_is_that_of_its_file_or_named() {
    let server = FileServer::start().await;
    server.put(PATH, two_folders().archive());
    let (images, source) = (client(server.host()), source(&server, ""));
    // On the way, and in the header alone.
    for bytes in [gzip(&two_folders().plain().archive()).into(), two_folders().archive()] {
        server.script(PATH, FileAnswer::Coded("gzip", bytes));
        let files = pull(&images, &source).await.unwrap().0;
        assert_eq!(files.list(), ["a/x.yaml=x", "b/y.yaml=y"]);
    }
    server.script(PATH, FileAnswer::Coded("br", vec![1; 100].into()));
    let error = images.resolve(&source).await.unwrap_err();
    assert!(chain(&error).contains("the content coding br"), "{}", chain(&error));
}

#[tokio::test]
async fn several_entries_at_the_top_are_kept() {
    assert_eq!(files(&two_folders(), "").await.unwrap(), ["a/x.yaml=x", "b/y.yaml=y"]);
    let beside = Layer::new().file("a/x.yaml", "x").file("y.yaml", "y");
    assert_eq!(files(&beside, "").await.unwrap(), ["a/x.yaml=x", "y.yaml=y"]);
    let single = Layer::new().file("y.yaml", "y");
    assert_eq!(files(&single, "").await.unwrap(), ["y.yaml=y"]);
}

#[tokio::test]
async fn folder_of_url_is_read_alone() {
    assert_eq!(files(&two_folders(), "#b").await.unwrap(), ["y.yaml=y"]);
    let single = Layer::new().file("top/a/x.yaml", "x");
    assert_eq!(files(&single, "#top/a").await.unwrap(), ["x.yaml=x"]);
    assert_eq!(files(&single, "#.").await.unwrap(), ["top/a/x.yaml=x"]);
    for (folder, want) in [
        ("#c", "has no folder c"),
        ("#b/y.yaml", "has no folder at b/y.yaml"),
        ("#b/y.yaml/z", "has no folder b/y.yaml/z"),
    ] {
        let error = files(&two_folders(), folder).await.unwrap_err();
        assert!(chain(&error).contains(want), "{folder}: {}", chain(&error));
    }
}

/// An archive is not a layer: nothing below it can be hidden.
#[tokio::test]
async fn whiteouts_are_files() {
    let archive = two_folders().whiteout("a/x.yaml").opaque("b");
    let want = ["a/.wh.x.yaml=", "a/x.yaml=x", "b/.wh..wh..opq=", "b/y.yaml=y"];
    assert_eq!(files(&archive, "").await.unwrap(), want);
}

#[tokio::test]
async fn entries_outside_the_archive_are_never_read() {
    let archive = two_folders().file("../evil.yaml", "e").file("a/../../evil.yaml", "e");
    assert_eq!(files(&archive, "").await.unwrap(), ["a/x.yaml=x", "b/y.yaml=y"]);
    for (link, folder) in [
        (two_folders().symlink("a/l.yaml", "/etc/passwd"), ""),
        (two_folders().symlink("a/l.yaml", "../../etc/passwd"), ""),
        (two_folders().hardlink("a/l.yaml", "../etc/passwd"), ""),
        // A link out of the folder, to a file that the archive has.
        (two_folders().symlink("a/l.yaml", "../b/y.yaml"), "#a"),
    ] {
        let error = files(&link, folder).await.unwrap_err();
        assert!(
            matches!(error, Error::Unpack(UnpackError::Link { .. })),
            "{}",
            chain(&error)
        );
    }
}

#[tokio::test]
async fn malformed_archive_is_refused_with_its_url() {
    let whole = gzip(&two_folders().tar());
    let mut wrong_checksum = whole.clone();
    let at = whole.len() - 8;
    wrong_checksum[at] ^= 1;
    for (bytes, folder) in [
        (b"not an archive".to_vec(), ""),
        (whole[..whole.len() / 2].to_vec(), "#a"),
        (whole[..whole.len() / 2].to_vec(), ""),
        (wrong_checksum, ""),
        (b"\xfd7zXZ\0".to_vec(), ""),
        (two_folders().file("a/x.yaml", "again").tar(), ""),
        (Layer::new().entry(tar::EntryType::Fifo, b"a/f", b"", b"").tar(), ""),
    ] {
        let error = files(&Layer::new().raw(bytes), folder).await.unwrap_err();
        let Error::Tree { place: url, source } = &error else {
            panic!("{}", chain(&error));
        };
        assert!(matches!(source, TreeFault::Unpack(_)), "{source:?}");
        assert!(url.ends_with(PATH), "{url}");
    }
    let error = files(&Layer::new().raw(gzip(b"BZh91AY")), "").await.unwrap_err();
    let is_tar = matches!(
        &error,
        Error::Tree {
            source: TreeFault::Unpack(LayerError::Tar { .. }),
            ..
        }
    );
    assert!(is_tar, "only the outer compression counts: {}", chain(&error));
}
