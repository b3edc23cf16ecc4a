//! The files of an archive, well-formed and not.

use testkit::{FileAnswer, Layer, gzip};

use super::{PATH, host, two_folders};
use crate::kit::failed;

#[tokio::test]
async fn files_of_whole_archive_or_of_its_folder_are_read() {
    let inside = Layer::new()
        .dir("./")
        .dir("cat-1.0")
        .file("cat-1.0/a/x.yaml", "x");
    let inside = inside.file("./cat-1.0/.indexignore", "i");
    let top = || Layer::new().file("top/a/x.yaml", "x");
    let links = top().symlink("top/soft", "a/x.yaml");
    let links = links.hardlink("top/hard", "top/a/x.yaml");
    let outside = two_folders().file("../evil.yaml", "e");
    let outside = outside.file("a/../../evil.yaml", "e");
    let hidden = two_folders().whiteout("a/x.yaml").opaque("b");
    for (archive, folder, want) in [
        // One folder at the top is left out of the paths.
        (inside.clone(), "", ".indexignore=i a/x.yaml=x"),
        (inside.zstd(), "", ".indexignore=i a/x.yaml=x"),
        (links, "", "a/x.yaml=x hard=-> a/x.yaml soft=-> a/x.yaml"),
        // Several entries at the top are kept.
        (two_folders(), "", "a/x.yaml=x b/y.yaml=y"),
        (top().file("y.yaml", "y"), "", "top/a/x.yaml=x y.yaml=y"),
        (Layer::new().file("y.yaml", "y"), "", "y.yaml=y"),
        (two_folders(), "#b", "y.yaml=y"),
        (top(), "#top/a", "x.yaml=x"),
        (top(), "#.", "top/a/x.yaml=x"),
        (outside, "", "a/x.yaml=x b/y.yaml=y"),
        // An archive is not a layer: nothing below it can be hidden.
        (
            hidden,
            "",
            "a/.wh.x.yaml= a/x.yaml=x b/.wh..wh..opq= b/y.yaml=y",
        ),
    ] {
        let files = host(&archive).await.files(folder).await.unwrap();
        assert_eq!(files.join(" "), want, "{folder}");
    }
}

#[tokio::test]
async fn content_coding_of_archive_is_that_of_its_file_or_named() {
    let host = host(&two_folders()).await;
    // On the way, and in the header alone.
    for bytes in [
        gzip(&two_folders().plain().archive()).into(),
        two_folders().archive(),
    ] {
        host.server.script(PATH, FileAnswer::Coded("gzip", bytes));
        assert_eq!(host.files("").await.unwrap(), ["a/x.yaml=x", "b/y.yaml=y"]);
    }
    host.server
        .script(PATH, FileAnswer::Coded("br", vec![1; 100].into()));
    let text = failed(host.resolve("").await, "coding");
    assert!(text.contains("the content coding br"), "{text}");
}

#[tokio::test]
async fn malformed_archive_and_missing_folder_are_refused() {
    let whole = gzip(&two_folders().tar());
    let mut wrong_checksum = whole.clone();
    let at = whole.len() - 8;
    wrong_checksum[at] ^= 1;
    let half = &whole[..whole.len() / 2];
    let fifo = Layer::new().entry(tar::EntryType::Fifo, b"a/f", b"", b"");
    let raw = |bytes: &[u8]| Layer::new().raw(bytes.to_vec());
    let symlink = |target| two_folders().symlink("a/l.yaml", target);
    for (archive, folder, want) in [
        (two_folders(), "#c", "no folder"),
        (two_folders(), "#b/y.yaml", "not folder"),
        (two_folders(), "#b/y.yaml/z", "no folder"),
        (symlink("/etc/passwd"), "", "link: broken"),
        (
            two_folders().hardlink("a/l.yaml", "../etc/passwd"),
            "",
            "link: outside",
        ),
        // A link out of the folder, to a file that the archive has.
        (symlink("../b/y.yaml"), "#a", "link: outside"),
        (raw(b"not an archive"), "", "archive: tar"),
        (raw(half), "#a", "archive: format"),
        (raw(half), "", "archive: format"),
        (raw(&wrong_checksum), "", "archive: format"),
        (raw(b"\xfd7zXZ\0"), "", "archive: compression"),
        (
            two_folders().file("a/x.yaml", "again"),
            "",
            "archive: duplicate",
        ),
        (fifo, "", "archive: kind"),
        // Only the outer compression counts.
        (raw(&gzip(b"BZh91AY")), "", "archive: tar"),
    ] {
        let text = failed(host(&archive).await.files(folder).await, want);
        assert!(text.contains(PATH) || want.starts_with("link"), "{text}");
    }
}
