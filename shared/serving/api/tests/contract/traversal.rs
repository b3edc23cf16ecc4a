//! Paths that try to leave the store, a folder with a secret beside it.

use std::path::Path;

use api::HttpSettings;
use axum::{Router, body::Body};
use http::{Request, StatusCode, Uri};
use reader::ReaderSettings;
use store::FolderStore;
use testkit::Answer;

use crate::fixture::{LINES, Publication, publish};
use crate::openapi::CONTRACT;
use crate::world::router;

const SECRET: &str = "what-lies-outside";

/// Spellings of a step upwards, a separator, or the end of a name, for one parser or another, with
/// a bar between them.
const STEPS: &str = "..|.|...|%2e%2e|%2E.|.%2e|%252e%252e|..%2f|..%2F..|..%5c|..\\|%5c..%5c|..%00|%00|..;|..%3b|\
    %c0%ae%c0%ae|%c0%ae%c0%ae%c0%af|%e0%80%ae%e0%80%ae|%f0%80%80%ae|%uff0e%uff0e|%ef%bc%8e%ef%bc%8e|%ff|\
    %|%2|%zz|~|%7e||%20|..%20|..%0d%0a|C:|file:%2f%2f|con|.tmp|secret.txt";

/// Paths beside the routes; `*` is where a step goes.
const OTHER_PATHS: &str = "/* /*/secret.txt /*/*/secret.txt /catalogs/* /catalogs/*/secret.txt /catalogs/*/*/secret.txt \
    /catalogs/demo/* /catalogs/demo/*/*/*/secret.txt /catalogs/demo/api/*/all \
    /catalogs/demo/packages/*/secret.txt /all/*/*/secret.txt /all/sha256/*.json /all/sha256/*.json.gz \
    /all/sha256/*.json.zst /indexes/sha256/*.json.zst /snapshots/sha256/*.json.zst \
    /packages/sha256/*.json.zst /blobs/sha256/* /packages/* /packages/sha256/* \
    /packages/sha256/*/*/*/secret.txt /packages/*/secret.txt /garbage/sha256/* /blobs/*/*/secret.txt \
    /v2/* /v2/*/*/tags/list /v2/demo/manifests/sha256:* /v2/demo/blobs/sha256:* \
    /v2/demo/blobs/sha256:*/*/secret.txt /v2/demo/*/latest //* /.//* \
    /catalogs/demo/api/v1/metas?package=* /catalogs/demo/api/v1/metas?schema=*&name=* \
    /catalogs/demo/api/v1/metas?package=*%2fsecret.txt";

/// Returns every route with a step in the place of each of its parameters, and the other paths.
fn paths() -> Vec<String> {
    let mut paths: Vec<String> = OTHER_PATHS.split(' ').map(ToOwned::to_owned).collect();
    for route in CONTRACT["paths"].as_object().unwrap().keys() {
        let names = route
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split('}').next());
        let names: Vec<&str> = names.collect();
        for stepped in &names {
            let fill = |path: String, name: &&str| {
                let value = match *name {
                    name if name == *stepped => "*",
                    "catalog" => "demo",
                    _ => "alpha",
                };
                path.replace(&format!("{{{name}}}"), value)
            };
            paths.push(names.iter().fold(route.clone(), fill));
        }
    }
    paths
}

async fn site(root: &Path) -> Router {
    std::fs::write(root.join("secret.txt"), SECRET).unwrap();
    let folder = root.join("store");
    let store = FolderStore::open(&folder).unwrap();
    publish(&store, Publication::default(), LINES).await;
    // Files inside the folder that are not objects, and a link that leads outside.
    std::fs::write(folder.join("secret.txt"), SECRET).unwrap();
    std::fs::write(folder.join("catalogs/demo/secret.txt"), SECRET).unwrap();
    std::os::unix::fs::symlink(root.join("secret.txt"), folder.join("catalogs/demo/link")).unwrap();
    router(&store, ReaderSettings::default(), HttpSettings::default())
}

async fn ask(router: &Router, uri: Uri) -> (StatusCode, String) {
    let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
    let answer = Answer::to(request, router).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn steps_in_any_parameter_serve_nothing_outside() {
    let root = tempfile::tempdir().unwrap();
    let router = site(root.path()).await;
    let mut refused = 0;
    for route in paths() {
        for step in STEPS.split('|') {
            let path = route.replace('*', step);
            // A text that is not a URI never reaches the router.
            let Ok(uri) = path.parse::<Uri>() else {
                continue;
            };
            let (status, body) = ask(&router, uri).await;
            assert!(!body.contains(SECRET), "{path}");
            match status.as_u16() {
                400 | 404 => refused += 1,
                // An empty parameter at the end of a path of another route.
                308 => {}
                // A filter takes any text.
                200 if path.contains('?') => {}
                200 => assert!(
                    ["/", "/v2/", "/catalogs/demo/packages/"].contains(&&*path),
                    "{path}"
                ),
                _ => panic!("{path}: {status}"),
            }
        }
    }
    assert!(refused > 1000, "{refused} paths were refused");
}

#[tokio::test]
async fn names_of_any_length_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let router = site(root.path()).await;
    for length in [253, 254, 255, 256, 4096, 60_000] {
        for letter in ["a", ".", "%2e", "../", "%00"] {
            let name = letter.repeat(length / letter.len());
            let routes = "/catalogs/*/all.json /catalogs/demo/packages/* /v2/*/tags/list /v2/demo/manifests/* /*";
            for route in routes.split(' ') {
                let Ok(uri) = route.replace('*', &name).parse::<Uri>() else {
                    continue;
                };
                let (status, body) = ask(&router, uri).await;
                let is_refused = [400, 404].contains(&status.as_u16());
                assert!(is_refused, "{route} {letter} {length}: {status}");
                assert!(!body.contains(SECRET));
            }
        }
    }
}
