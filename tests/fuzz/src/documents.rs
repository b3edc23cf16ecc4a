use std::{cell::RefCell, fmt::Debug};

use http::{HeaderMap, StatusCode};
use layout::{Current, Document, Index, Key, Sha256, Snapshot, SnapshotRef, Stored};

use crate::site::{Site, name};

thread_local! {
    static SITE: RefCell<Site> = RefCell::new(Site::new(&["v1", "v2"]));
}

/// A `current.json`: what is understood is written as it is meant, and a server that finds it in its store answers.
///
/// # Panics
/// If it is otherwise.
pub fn current(input: &[u8]) {
    round_trip::<Current>(input);
    SITE.with_borrow_mut(|site| {
        site.put(&Key::Current(name()), input.to_vec());
        check(site);
    });
}

/// A `snapshot.json`, as [`current`].
///
/// # Panics
/// If it is otherwise.
pub fn snapshot(input: &[u8]) {
    round_trip::<Snapshot>(input);
    SITE.with_borrow_mut(|site| {
        point(site, input.to_vec());
        check(site);
    });
}

/// The JSON of an `index.json.zst`, as [`current`].
///
/// # Panics
/// If it is otherwise.
pub fn index(input: &[u8]) {
    round_trip::<Index>(input);
    SITE.with_borrow_mut(|site| {
        let bytes = zstd::bulk::compress(input, 1).expect("memory takes all");
        let stored = Stored {
            size: bytes.len() as u64,
            sha256: Sha256::of(&bytes),
        };
        site.put(&Key::Index(name(), site.current.content_hash), bytes);
        let snapshot = Snapshot {
            index: stored,
            ..site.snapshot.clone()
        };
        point(site, snapshot.to_bytes());
        check(site);
    });
}

fn round_trip<T: Document + PartialEq + Debug>(input: &[u8]) {
    if let Ok(document) = T::from_bytes(input) {
        let bytes = document.to_bytes();
        let again = T::from_bytes(&bytes).expect("what was written can be read");
        assert_eq!(again, document, "{}", String::from_utf8_lossy(&bytes));
    }
}

/// Publishes the bytes of a snapshot.
fn point(site: &Site, snapshot: Vec<u8>) {
    let hash = site.current.content_hash;
    let current = Current {
        snapshot: SnapshotRef::new(&name(), hash, &snapshot),
        ..site.current.clone()
    };
    site.put(&Key::Snapshot(name(), hash), snapshot);
    site.put(&Key::Current(name()), current.to_bytes());
}

/// Whatever lies in the store, everything is answered, and what is answered in full is what its tag says.
fn check(site: &mut Site) {
    site.restart();
    for path in paths(site) {
        let answer = site.get(&path, HeaderMap::new());
        let expected = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE];
        assert!(expected.contains(&answer.status), "{} to {path}", answer.status);
        let is_content = path.ends_with("/all") || path.contains("/packages/");
        if let (StatusCode::OK, true, Some(body)) = (answer.status, is_content, &answer.body) {
            assert_eq!(answer.header("etag"), Sha256::of(body).to_entity_tag(), "{path}");
        }
    }
}

/// One path of each kind.
fn paths(site: &Site) -> Vec<String> {
    let demo = |rest: String| format!("/catalogs/demo/{rest}");
    let layer = site.snapshot.image.as_ref().map(|image| image.layer.sha256);
    let layer = layer.expect("every new snapshot has an image");
    vec![
        "/catalogs".to_owned(),
        demo("current.json".to_owned()),
        demo("api/v1/all".to_owned()),
        demo("api/v1/metas?schema=olm.package".to_owned()),
        demo("api/v1/metas?package=demo-queue".to_owned()),
        demo("packages".to_owned()),
        demo("packages/demo-queue".to_owned()),
        demo("content-hash".to_owned()),
        demo(format!("changes?since={}", site.current.previous[0].content_hash)),
        "/v2/_catalog".to_owned(),
        "/v2/demo/tags/list".to_owned(),
        "/v2/demo/manifests/latest".to_owned(),
        format!("/v2/demo/blobs/sha256:{layer}"),
    ]
}
