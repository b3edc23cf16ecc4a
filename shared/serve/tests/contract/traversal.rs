//! Paths that try to leave the store. It is a folder here, with something to find beside it.

use std::{path::Path, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, StatusCode, Uri};
use serve::{Metrics, Settings, router};
use store::FolderStore;
use testkit::Answer;

use crate::fixture::{LINES, Publication, publish};

const SECRET: &str = "what-lies-outside";

/// What stands for a step upwards, a separator, or the end of a name somewhere.
const STEPS: &[&str] = &[
    "..",
    ".",
    "...",
    "%2e%2e",
    "%2E.",
    ".%2e",
    "%252e%252e",
    "..%2f",
    "..%2F..",
    "..%5c",
    "..\\",
    "%5c..%5c",
    "..%00",
    "%00",
    "..;",
    "..%3b",
    "%c0%ae%c0%ae",
    "%c0%ae%c0%ae%c0%af",
    "%e0%80%ae%e0%80%ae",
    "%f0%80%80%ae",
    "%uff0e%uff0e",
    "%ef%bc%8e%ef%bc%8e",
    "%ff",
    "%",
    "%2",
    "%zz",
    "~",
    "%7e",
    "",
    "%20",
    "..%20",
    "..%0d%0a",
    "C:",
    "file:%2f%2f",
    "con",
    ".tmp",
    "secret.txt",
];

/// The rows of the contract; `*` is where a step goes.
const ROUTES: &[&str] = &[
    "/*",
    "/*/secret.txt",
    "/*/*/secret.txt",
    "/catalogs/*",
    "/catalogs/*/secret.txt",
    "/catalogs/*/*/secret.txt",
    "/catalogs/*/current.json",
    "/catalogs/*/all.json",
    "/catalogs/*/api/v1/all",
    "/catalogs/*/api/v1/metas",
    "/catalogs/*/packages/alpha",
    "/catalogs/*/content-hash",
    "/catalogs/*/changes",
    "/catalogs/*/status.json",
    "/catalogs/demo/*",
    "/catalogs/demo/*/*/*/secret.txt",
    "/catalogs/demo/*/snapshot.json",
    "/catalogs/demo/*/all.json.gz",
    "/catalogs/demo/api/*/all",
    "/catalogs/demo/packages/*",
    "/catalogs/demo/packages/*/secret.txt",
    "/packages/*",
    "/packages/sha256/*",
    "/packages/sha256/*/*/*/secret.txt",
    "/packages/*/secret.txt",
    "/blobs/sha256/*",
    "/blobs/*/*/secret.txt",
    "/v2/*",
    "/v2/*/tags/list",
    "/v2/*/*/tags/list",
    "/v2/*/manifests/latest",
    "/v2/demo/manifests/*",
    "/v2/demo/manifests/sha256:*",
    "/v2/demo/blobs/*",
    "/v2/demo/blobs/sha256:*",
    "/v2/demo/blobs/sha256:*/*/secret.txt",
    "/v2/demo/referrers/*",
    "/v2/demo/*/latest",
    "//*",
    "/.//*",
];

async fn site(root: &Path) -> Router {
    std::fs::write(root.join("secret.txt"), SECRET).unwrap();
    let folder = root.join("store");
    let store = FolderStore::open(&folder).unwrap();
    publish(&store, Publication::default(), LINES).await;
    // Also what lies inside but is no object, and what leads outside.
    std::fs::write(folder.join("secret.txt"), SECRET).unwrap();
    std::fs::write(folder.join("catalogs/demo/secret.txt"), SECRET).unwrap();
    std::os::unix::fs::symlink(root.join("secret.txt"), folder.join("catalogs/demo/link")).unwrap();
    router(Arc::new(store), Settings::default(), Metrics::default())
}

async fn ask(router: &Router, uri: Uri) -> (StatusCode, String) {
    let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
    let answer = Answer::to(request, router).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn nothing_outside_is_ever_served() {
    let root = tempfile::tempdir().unwrap();
    let router = site(root.path()).await;
    let mut refused = 0;
    for route in ROUTES {
        for step in STEPS {
            let path = route.replace('*', step);
            // What is no URI at all does not get as far as this.
            let Ok(uri) = path.parse::<Uri>() else { continue };
            let (status, body) = ask(&router, uri).await;
            assert!(!body.contains(SECRET), "{path}");
            let harmless = ["/v2/", "/catalogs/demo/packages/"];
            let expected = [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST];
            assert!(
                expected.contains(&status) || (status == StatusCode::OK && harmless.contains(&path.as_str())),
                "{path}: {status}"
            );
            refused += usize::from(expected.contains(&status));
        }
    }
    assert!(refused > 1000, "{refused} paths were refused");
}

#[tokio::test]
async fn names_of_any_length_are_only_refused() {
    let root = tempfile::tempdir().unwrap();
    let router = site(root.path()).await;
    for length in [253, 254, 255, 256, 4096, 60_000] {
        for letter in ["a", ".", "%2e", "../", "%00"] {
            let name = letter.repeat(length / letter.len());
            for route in [
                "/catalogs/*/all.json",
                "/catalogs/demo/packages/*",
                "/v2/*/tags/list",
                "/v2/demo/manifests/*",
                "/*",
            ] {
                let Ok(uri) = route.replace('*', &name).parse::<Uri>() else {
                    continue;
                };
                let (status, body) = ask(&router, uri).await;
                assert!(
                    [400, 404].contains(&status.as_u16()),
                    "{route} {letter} {length}: {status}"
                );
                assert!(!body.contains(SECRET));
            }
        }
    }
}

#[tokio::test]
async fn queries_name_nothing_on_disk() {
    let root = tempfile::tempdir().unwrap();
    let router = site(root.path()).await;
    for step in STEPS {
        for query in ["package=*", "schema=*&name=*", "package=*%2fsecret.txt"] {
            let path = format!("/catalogs/demo/api/v1/metas?{}", query.replace('*', step));
            let Ok(uri) = path.parse::<Uri>() else { continue };
            let (status, body) = ask(&router, uri).await;
            assert!(!body.contains(SECRET), "{path}");
            assert!([200, 400].contains(&status.as_u16()), "{path}: {status}");
        }
    }
}
