//! Limits on packs and on what is in them.

use catalog_mirror_source::{DownloadSpace, Error, ImageLimits};
use testkit::{GitKind, Random};

use super::{GitHost, PATH};
use crate::kit::chain;

/// One file of a thousand bytes in a folder.
fn files() -> Vec<(&'static str, String)> {
    let lines: String = (0..100).map(|line| format!("{:09}\n", line * line * 7919)).collect();
    vec![("folder/file.yaml", lines)]
}

async fn read(change: impl Fn(&mut ImageLimits)) -> Result<Vec<String>, Error> {
    let host = GitHost::with(|settings| change(&mut settings.limits)).await;
    let files = files();
    let files: Vec<_> = files.iter().map(|(path, content)| (*path, content.as_str())).collect();
    host.commit(&files);
    host.files("").await
}

fn limit(read: Result<Vec<String>, Error>) -> String {
    match read.unwrap_err() {
        Error::Limit(limit) => {
            assert!(limit.place.contains(PATH), "{}", limit.place);
            limit.name.to_owned()
        }
        other => panic!("{}", chain(&other)),
    }
}

#[tokio::test]
async fn limits_of_images_hold_at_their_value() {
    let host = GitHost::start().await;
    let files = files();
    let files: Vec<_> = files.iter().map(|(path, content)| (*path, content.as_str())).collect();
    host.commit(&files);
    let stored = host.pull("").await.unwrap().1.bytes;
    type Change = fn(&mut ImageLimits, u64);
    let rows: [(&str, Change, u64); 5] = [
        // The size to which git fills an archive.
        ("decompressedBytes", |limits, at| limits.decompressed_bytes = at, 10_240),
        // A folder and a file.
        ("entries", |limits, at| limits.entries = at, 2),
        ("fileBytes", |limits, at| limits.file_bytes = at, 1000),
        ("pathBytes", |limits, at| limits.path_bytes = at, 16),
        // Both paths, and 64 bytes for each.
        ("treeBytes", |limits, at| limits.tree_bytes = at, 22 + 2 * 64),
    ];
    for (name, change, at) in rows {
        read(|limits| change(limits, at))
            .await
            .unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
        assert_eq!(limit(read(|limits| change(limits, at - 1)).await), name);
    }
    // The index of the pack counts too, and its size depends on the version of git.
    assert!(read(|limits| limits.compressed_bytes = stored + 4096).await.is_ok());
    assert_eq!(
        limit(read(|limits| limits.compressed_bytes = stored - 1).await),
        "compressedBytes"
    );
    assert_eq!(
        limit(read(|limits| (limits.ratio, limits.ratio_floor_bytes) = (1, 1)).await),
        "ratio"
    );
}

/// Few bytes of a pack that are many of a file.
#[tokio::test]
async fn bomb_is_refused_by_its_size() {
    let host = GitHost::start().await;
    let zeros = "\0".repeat(80 << 20);
    host.commit(&[("x.yaml", &zeros)]);
    assert_eq!(limit(host.files("").await), "ratio");
}

#[tokio::test]
async fn pack_that_is_too_large_is_cut_off_and_gives_its_space_back() {
    let space = DownloadSpace::new(4 << 20);
    let host = GitHost::with(|settings| settings.download_space = space.clone()).await;
    host.commit(&[("x.yaml", "x")]);
    let mut noise = Vec::new();
    let mut random = Random(1);
    noise.resize_with(2 << 20, || random.number() as u8);
    host.repo
        .send_pack(host.repo.pack().object(GitKind::Blob, &noise).finish());
    assert_eq!(limit(host.files("").await), "downloadBytes");
    assert_eq!(space.taken(), 0);
}

#[tokio::test]
async fn list_of_branches_is_limited() {
    let host = GitHost::with(|settings| settings.limits.manifest_bytes = 1000).await;
    let commit = host.commit(&[("x.yaml", "x")]);
    for at in 0..20 {
        host.repo.set(&format!("refs/heads/main-{at}"), &commit);
    }
    assert!(host.files("#main").await.is_ok(), "only what is asked for is listed");
    for at in 0..20 {
        host.repo.set(&format!("refs/heads/{at}/main"), &commit);
    }
    assert_eq!(limit(host.files("#main").await), "manifestBytes");
}
