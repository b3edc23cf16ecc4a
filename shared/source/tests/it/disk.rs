//! Layouts and folders.

use std::fs;
use std::path::{Path, PathBuf};

use catalog_mirror_source::{
    Error, ImageContent, ImageError, LinkError, Source, SourceSettings, Sources, Traffic, UnpackError,
};
use tempfile::TempDir;
use testkit::{Layer, index};

use crate::kit::{self, Collect, catalog, chain, pull_source, small};

async fn read(source: &str) -> Result<Vec<String>, Error> {
    let images = Sources::new(SourceSettings::default())?;
    let source: Source = source.parse().unwrap();
    let (sink, pull) = pull_source(&images, &source).await?;
    assert_eq!(pull.traffic, Traffic::default(), "a disk is no wire");
    Ok(sink.list())
}

fn blob(dir: &TempDir, digest: &str) -> PathBuf {
    let name = digest.trim_start_matches("sha256:");
    dir.path().join("blobs/sha256").join(name)
}

fn layout(dir: &Path) -> String {
    format!("oci:{}", dir.display())
}

#[tokio::test]
async fn layout_is_read_by_tag_or_as_only_image() {
    let dir = TempDir::new().unwrap();
    small().write_layout(dir.path(), Some("v1"));
    assert_eq!(read(&layout(dir.path())).await.unwrap(), ["a.yaml=a"]);
    let other = catalog([Layer::new().file("configs/b", "b")]);
    index(&[("linux/amd64", &other)]).write_layout(dir.path(), Some("v2"));
    assert_eq!(read(&format!("{}:v1", layout(dir.path()))).await.unwrap(), ["a.yaml=a"]);
    assert_eq!(read(&format!("{}:v2", layout(dir.path()))).await.unwrap(), ["b=b"]);
    for (tag, says) in [
        ("", "without a tag that is the only one; it has v1, v2"),
        (":v3", "tagged v3; it has v1, v2"),
    ] {
        let error = read(&format!("{}{tag}", layout(dir.path()))).await.unwrap_err();
        assert!(error.to_string().ends_with(says), "{error}");
    }
}

/// Opening a FIFO waits for a writer for ever, so it must be refused before.
#[tokio::test]
async fn fifo_in_layout_is_refused() {
    for part in ["index.json", "manifest", "layer"] {
        let dir = TempDir::new().unwrap();
        let image = small();
        image.write_layout(dir.path(), None);
        let path = match part {
            "index.json" => dir.path().join("index.json"),
            "manifest" => blob(&dir, &image.digest),
            _ => blob(&dir, &image.layers[0]),
        };
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let error = read(&layout(dir.path())).await.unwrap_err();
        assert!(chain(&error).contains("not a regular file"), "{part}: {error}");
    }
}

#[tokio::test]
async fn folder_source_that_is_a_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("catalog.yaml");
    fs::write(&file, "schema: olm.package").unwrap();
    let error = read(&format!("dir:{}", file.display())).await.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[tokio::test]
async fn damaged_layout_is_refused() {
    let dir = TempDir::new().unwrap();
    let image = small();
    image.write_layout(dir.path(), None);
    let blob = blob(&dir, &image.layers[0]);
    let mut bytes = fs::read(&blob).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&blob, bytes).unwrap();
    let error = read(&layout(dir.path())).await.unwrap_err();
    assert!(matches!(error, Error::Digest { what: "layer", .. }));
    fs::remove_file(&blob).unwrap();
    assert!(matches!(read(&layout(dir.path())).await, Err(Error::Io { .. })));
    assert!(matches!(read("oci:/nonexistent").await, Err(Error::Io { .. })));
}

fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    fs::write(dir.path().join("a/b/c.yaml"), "c").unwrap();
    fs::write(dir.path().join(".indexignore"), "x").unwrap();
    dir
}

#[tokio::test]
async fn folder_source_reads_all_files() {
    let dir = folder();
    let source = format!("dir:{}", dir.path().display());
    assert_eq!(read(&source).await.unwrap(), [".indexignore=x", "a/b/c.yaml=c"]);
    assert!(matches!(read("dir:/nonexistent").await, Err(Error::Io { .. })));
}

#[tokio::test]
async fn bundle_folder_is_read_without_what_is_beside() {
    let dir = folder();
    for name in ["manifests", "metadata"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("a.yaml"), name).unwrap();
    }
    let images = Sources::new(SourceSettings {
        content: ImageContent::Bundle,
        ..SourceSettings::default()
    });
    let source = Source::Dir(dir.path().to_owned());
    let (sink, pull) = pull_source(&images.unwrap(), &source).await.unwrap();
    assert_eq!(sink.list(), ["manifests/a.yaml=manifests", "metadata/a.yaml=metadata"]);
    assert_eq!(pull.folders, ["manifests", "metadata"]);
}

#[tokio::test]
async fn folder_digest_depends_on_paths_and_contents() {
    let images = Sources::new(SourceSettings::default()).unwrap();
    let (one, two) = (folder(), folder());
    let source = |dir: &TempDir| Source::Dir(dir.path().to_owned());
    let digest = images.resolve(&source(&one)).await.unwrap();
    assert_eq!(digest, images.resolve(&source(&two)).await.unwrap());
    fs::rename(two.path().join("a/b/c.yaml"), two.path().join("a/c.yaml")).unwrap();
    assert_ne!(digest, images.resolve(&source(&two)).await.unwrap());
    let result = kit::read(&images, &source(&two), &digest, Collect::default()).await;
    assert!(matches!(result, Err(Error::Image(ImageError::Changed(_)))));
}

#[cfg(unix)]
#[tokio::test]
async fn folder_links_out_of_root_are_refused() {
    use std::os::unix::fs::symlink;
    let dir = folder();
    let source = format!("dir:{}", dir.path().display());
    symlink("a/b/c.yaml", dir.path().join("link")).unwrap();
    assert!(read(&source).await.unwrap().contains(&"link=-> a/b/c.yaml".to_owned()));
    symlink("/etc/hostname", dir.path().join("out")).unwrap();
    let error = read(&source).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Unpack(UnpackError::Link {
                source: LinkError::Outside(_) | LinkError::Broken(_),
                ..
            })
        ),
        "{}",
        chain(&error)
    );
}
