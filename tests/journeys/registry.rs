//! A mirror of a mirror: one serves its catalogs as images, another pulls them with the registry protocol.

use layout::{Current, Sha256};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    binary::{Ran, Server, run},
    catalogs, http,
};

/// A store with the example, served.
struct First {
    server: Server,
    store: TempDir,
}

impl First {
    fn start() -> Self {
        let store = TempDir::new().unwrap();
        let server = Server::start(["serve", "--no-poll", "--store", &path(&store)]);
        let first = Self { server, store };
        first.poll("v1");
        first
    }

    fn poll(&self, version: &str) {
        let source = format!("demo=oci:{}:{version}", catalogs::example_layout().display());
        run(["poll", "--store", &path(&self.store), "--catalog", &source]).exits(10);
    }

    fn host(&self) -> &str {
        self.server.url.trim_start_matches("http://")
    }

    /// A poll of another store, out of this mirror.
    fn is_polled(&self, store: &TempDir, reference: &str) -> Ran {
        let source = format!("copy={}/{reference}", self.host());
        let store = path(store);
        run([
            "poll",
            "--plain-http",
            self.host(),
            "--store",
            &store,
            "--catalog",
            &source,
        ])
    }
}

fn path(store: &TempDir) -> String {
    store.path().display().to_string()
}

fn content_hash(store: &TempDir, name: &str) -> Sha256 {
    let current = store.path().join(format!("catalogs/{name}/current.json"));
    let current: Current = serde_json::from_slice(&std::fs::read(current).unwrap()).unwrap();
    current.content_hash
}

/// The digest of the image, as `ls` tells it.
fn image(store: &TempDir) -> String {
    let listed = run(["ls", "--json", "--store", &path(store)]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed[0]["image"].as_str().unwrap().to_owned()
}

#[test]
fn a_mirror_of_a_mirror_has_the_same_content_and_the_same_image() {
    let first = First::start();
    let second = TempDir::new().unwrap();
    first.is_polled(&second, "demo:latest").exits(10);
    assert_eq!(content_hash(&second, "copy"), content_hash(&first.store, "demo"));
    assert_eq!(image(&second), image(&first.store));
    first.is_polled(&second, "demo:latest").exits(0);
    first.poll("v2");
    first.is_polled(&second, "demo:latest").exits(10);
    assert_eq!(content_hash(&second, "copy"), content_hash(&first.store, "demo"));
    run(["verify", "--store", &path(&second)]).exits(0);
}

#[test]
fn an_earlier_content_is_pulled_by_its_digest() {
    let first = First::start();
    let (content, digest) = (content_hash(&first.store, "demo"), image(&first.store));
    first.poll("v2");
    let second = TempDir::new().unwrap();
    first.is_polled(&second, &format!("demo@{digest}")).exits(10);
    assert_eq!(content_hash(&second, "copy"), content);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_digest_that_ls_tells_is_that_of_the_index() {
    let first = tokio::task::block_in_place(First::start);
    let index = http::body(&format!("{}/v2/demo/manifests/latest", first.server.url)).await;
    let digest = tokio::task::block_in_place(|| image(&first.store));
    assert_eq!(digest, format!("sha256:{}", Sha256::of(&index)));
}

#[test]
fn what_the_first_mirror_does_not_have_fails_the_poll_of_the_second() {
    let first = First::start();
    let second = TempDir::new().unwrap();
    for reference in ["other:latest", "demo:v1"] {
        let refused = first.is_polled(&second, reference).exits(1);
        assert!(refused.stderr.contains(reference), "{}", refused.stderr);
    }
}
