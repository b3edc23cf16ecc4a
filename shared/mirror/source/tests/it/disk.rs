//! Layouts and folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use source::{Error, ImageContent, Source, Traffic};
use tempfile::TempDir;
use testkit::{Layer, index};

use crate::kit::{self, catalog, client, client_with, failed, pull_source, small};

/// Reads a source on disk. A text with `DIR` is one in this folder.
async fn read(dir: &TempDir, source: &str) -> Result<Vec<String>, Error> {
    let source = source.replace("DIR", &dir.path().display().to_string());
    let (sink, pull) = pull_source(&client(""), &source.parse().unwrap()).await?;
    assert_eq!(pull.traffic, Traffic::default(), "a disk is no wire");
    Ok(sink.list())
}

/// Returns the path of a blob in a layout.
fn blob(digest: &str) -> String {
    format!("blobs/sha256/{}", digest.trim_start_matches("sha256:"))
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "a/b/c.yaml", "c");
    write(dir.path(), ".indexignore", "x");
    dir
}

#[tokio::test]
async fn layout_is_read_by_tag_or_as_only_image() {
    let dir = TempDir::new().unwrap();
    small().write_layout(dir.path(), Some("v1"));
    assert_eq!(read(&dir, "oci:DIR").await.unwrap(), ["a.yaml=a"]);
    let other = catalog([Layer::new().file("configs/b", "b")]);
    index(&[("linux/amd64", &other)]).write_layout(dir.path(), Some("v2"));
    assert_eq!(read(&dir, "oci:DIR:v1").await.unwrap(), ["a.yaml=a"]);
    assert_eq!(read(&dir, "oci:DIR:v2").await.unwrap(), ["b=b"]);
    for (source, says) in [
        (
            "oci:DIR",
            "without a tag that is the only one; it has v1, v2",
        ),
        ("oci:DIR:v3", "tagged v3; it has v1, v2"),
    ] {
        let error = read(&dir, source).await.unwrap_err();
        assert!(error.to_string().ends_with(says), "{error}");
    }
}

/// Opening a FIFO waits for a writer for ever, so it must be refused before.
#[tokio::test]
async fn fifo_in_layout_is_refused() {
    let image = small();
    for part in ["index.json", &blob(&image.digest), &blob(&image.layers[0])] {
        let dir = TempDir::new().unwrap();
        image.write_layout(dir.path(), None);
        let path = dir.path().join(part);
        fs::remove_file(&path).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let text = failed(read(&dir, "oci:DIR").await, "io");
        assert!(text.contains("not a regular file"), "{part}: {text}");
    }
}

#[tokio::test]
async fn damaged_or_missing_layout_or_folder_is_refused() {
    let (dir, image) = (TempDir::new().unwrap(), small());
    image.write_layout(dir.path(), None);
    let layer = dir.path().join(blob(&image.layers[0]));
    let mut bytes = fs::read(&layer).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&layer, bytes).unwrap();
    let text = failed(read(&dir, "oci:DIR").await, "digest");
    assert!(text.starts_with("layer "), "{text}");
    fs::remove_file(&layer).unwrap();
    write(dir.path(), "catalog.yaml", "schema: olm.package");
    for source in [
        "oci:DIR",
        "oci:DIR/none",
        "dir:DIR/none",
        "dir:DIR/catalog.yaml",
    ] {
        failed(read(&dir, source).await, "io");
    }
}

#[tokio::test]
async fn folder_source_reads_all_files_and_links_inside() {
    let dir = folder();
    symlink("a/b/c.yaml", dir.path().join("link")).unwrap();
    let files = read(&dir, "dir:DIR").await.unwrap();
    assert_eq!(
        files,
        [".indexignore=x", "a/b/c.yaml=c", "link=-> a/b/c.yaml"]
    );
    symlink("/etc/passwd", dir.path().join("out")).unwrap();
    failed(read(&dir, "dir:DIR").await, "link: outside");
}

#[tokio::test]
async fn bundle_folder_is_read_without_what_is_beside() {
    let dir = folder();
    for name in ["manifests", "metadata"] {
        write(&dir.path().join(name), "a.yaml", name);
    }
    let images = client_with("", |settings| settings.content = ImageContent::Bundle);
    let source = Source::Dir(dir.path().to_owned());
    let (sink, pull) = pull_source(&images, &source).await.unwrap();
    assert_eq!(
        sink.list(),
        ["manifests/a.yaml=manifests", "metadata/a.yaml=metadata"]
    );
    assert_eq!(pull.folders, ["manifests", "metadata"]);
}

#[tokio::test]
async fn folder_digest_depends_on_paths_and_contents() {
    let images = client("");
    let (one, two) = (folder(), folder());
    let [one, other] = [&one, &two].map(|dir| Source::Dir(dir.path().to_owned()));
    let digest = images.resolve(&one).await.unwrap();
    assert_eq!(digest, images.resolve(&other).await.unwrap());
    fs::rename(two.path().join("a/b/c.yaml"), two.path().join("a/c.yaml")).unwrap();
    assert_ne!(digest, images.resolve(&other).await.unwrap());
    let result = kit::read(&images, &other, &digest).await;
    failed(result, "image: changed");
}
