use std::{cell::RefCell, fmt::Debug};

use http::{HeaderMap, StatusCode};
use model::{
    Current, Document, Encoding, Index, Key, Kind, ObjectDigest, Sha256, Snapshot, StoredDocument,
};

use crate::site::{Site, name};

/// Parts of the paths whose answers are lines, tagged by their hash: of the whole catalog, and of a
/// package.
const CONTENTS: [&str; 2] = ["/api/v1/all", "/packages/"];

thread_local! {
    static SITE: RefCell<Site> = RefCell::new(Site::new(&["v1", "v2"]));
}

/// Stores a `current.json`: if it is accepted, it reads back, and the server answers every request.
///
/// # Panics
/// If it does not.
pub(crate) fn current(input: &[u8]) {
    round_trip::<Current>(input);
    SITE.with_borrow_mut(|site| {
        site.put(&Key::Current(name()), input.to_vec());
        check(site, &CONTENTS);
    });
}

/// Stores a snapshot, given as JSON, and checks it like [`current`].
///
/// # Panics
/// If an answer is wrong.
pub(crate) fn snapshot(input: &[u8]) {
    round_trip::<Snapshot>(input);
    SITE.with_borrow_mut(|site| {
        point(site, testkit::zstd(input));
        // A publisher is trusted with the hashes of a package's lines, which `verify` and `sync`
        // compare.
        check(site, &CONTENTS[..1]);
    });
}

/// Stores an index, given as JSON, and checks it like [`current`].
///
/// # Panics
/// If an answer is wrong.
pub(crate) fn index(input: &[u8]) {
    round_trip::<Index<'_>>(input);
    SITE.with_borrow_mut(|site| {
        let snapshot = Snapshot {
            index: put(site, Kind::Index, testkit::zstd(input)),
            ..site.snapshot.clone()
        };
        point(
            site,
            snapshot.to_stored().expect("the compressor has memory"),
        );
        check(site, &CONTENTS);
    });
}

fn round_trip<T: Document + PartialEq + Debug>(input: &[u8]) {
    if let Ok(document) = T::from_bytes(input) {
        let bytes = document.to_bytes();
        let again = T::from_bytes(&bytes).expect("what was written can be read");
        assert_eq!(again, document, "{}", String::from_utf8_lossy(&bytes));
    }
}

/// Publishes the stored bytes of a snapshot.
fn point(site: &Site, snapshot: Vec<u8>) {
    let current = Current {
        snapshot: put(site, Kind::Snapshot, snapshot).with_kind(Kind::Snapshot),
        ..site.current.clone()
    };
    site.put(&Key::Current(name()), current.to_bytes());
}

fn put(site: &Site, kind: Kind, bytes: Vec<u8>) -> ObjectDigest {
    let digest = ObjectDigest::of(&bytes);
    site.put(&Key::Object(kind, digest.sha256), bytes);
    digest
}

/// Checks that every request is answered, and that every complete answer whose path holds one of
/// `contents` matches its tag.
fn check(site: &mut Site, contents: &[&str]) {
    site.restart();
    for path in paths(site) {
        let answer = site.get(&path, HeaderMap::new());
        // Gone: the pointer does not remember the older content.
        let (ok, gone) = (StatusCode::OK, StatusCode::GONE);
        let expected = [
            ok,
            gone,
            StatusCode::NOT_FOUND,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        assert!(
            expected.contains(&answer.status),
            "{} to {path}",
            answer.status
        );
        let is_content = contents.iter().any(|content| path.contains(content));
        if let (StatusCode::OK, true, Some(body)) = (answer.status, is_content, &answer.body) {
            assert_eq!(
                answer.header("etag"),
                Sha256::of(body).to_entity_tag(Encoding::Identity),
                "{path}"
            );
        }
    }
}

/// Returns one path for each kind of route.
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
        demo(format!(
            "changes?since={}",
            site.current.previous[0].content_hash
        )),
        "/v2/_catalog".to_owned(),
        "/v2/demo/tags/list".to_owned(),
        "/v2/demo/manifests/latest".to_owned(),
        format!("/v2/demo/blobs/sha256:{layer}"),
    ]
}
